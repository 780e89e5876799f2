// An aggregator at the end of a slow line: what takes seconds is no failure.
#include <array>
#include <chrono>
#include <thread>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/test_server.h"

namespace domicile::wire {
namespace {

using test::TestServer;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

// Hands the bytes of one connection on, both ways; those of the server come late.
class SlowLine {
 public:
  SlowLine(int server_port, std::chrono::milliseconds delay)
      : server_port_(server_port), delay_(delay), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    DOMICILE_CHECK(bind(listener_.descriptor(), plain, size) == 0);
    DOMICILE_CHECK(listen(listener_.descriptor(), 1) == 0);
    DOMICILE_CHECK(getsockname(listener_.descriptor(), plain, &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }

  int port() const { return port_; }

 private:
  // Whether there is something to read, asked until it is or a stop is requested.
  static bool Wait(pollfd& one, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (poll(&one, 1, 50) > 0) {
        return true;
      }
    }
    return false;
  }

  // False at the end of the connection.
  static bool Pass(int from, int to) {
    std::array<char, 16384> bytes{};
    const ssize_t got = read(from, bytes.data(), bytes.size());
    return got > 0 && send(to, bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) == got;
  }

  void Run(const std::stop_token& stop) const {
    pollfd accepting{.fd = listener_.descriptor(), .events = POLLIN, .revents = 0};
    if (!Wait(accepting, stop)) {
      return;
    }
    const FileHandle client(accept(listener_.descriptor(), nullptr, nullptr));
    const FileHandle server(socket(AF_INET, SOCK_STREAM, 0));
    const sockaddr_in address = Loopback(server_port_);
    DOMICILE_CHECK(connect(server.descriptor(), reinterpret_cast<const sockaddr*>(&address),
                           sizeof(address)) == 0);
    bool first = true;
    while (!stop.stop_requested()) {
      std::array<pollfd, 2> both = {
          pollfd{.fd = client.descriptor(), .events = POLLIN, .revents = 0},
          pollfd{.fd = server.descriptor(), .events = POLLIN, .revents = 0}};
      if (poll(both.data(), both.size(), 50) <= 0) {
        continue;
      }
      if (both[0].revents != 0 && !Pass(client.descriptor(), server.descriptor())) {
        return;
      }
      if (both[1].revents != 0) {
        if (first) {
          std::this_thread::sleep_for(delay_);  // the length of the line, not a wait for anything
          first = false;
        }
        if (!Pass(server.descriptor(), client.descriptor())) {
          return;
        }
      }
    }
  }

  const int server_port_;
  const std::chrono::milliseconds delay_;
  const FileHandle listener_;
  int port_ = 0;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace

TEST_CASE("Far server: a handshake that takes more than a second is waited for") {
  TestServer server;
  const SlowLine line(server.Port(), std::chrono::milliseconds(1500));
  ClientOptions options = server.ClientFor(server.authority.Site("charite"));
  options.address = "127.0.0.1:" + std::to_string(line.port());

  const auto client =
      FederationClient::Connect(options, {.timeout = std::chrono::seconds(20), .stop = {}});

  REQUIRE_MESSAGE(client.ok(), Message(client.status()));
  CHECK((*client)->Server().spiffe.role == crypto::Role::kAggregator);
}

}  // namespace domicile::wire

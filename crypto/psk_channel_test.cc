#include "crypto/psk_channel.h"

#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace domicile::crypto {
namespace {

using Wants = PskChannel::Wants;

struct Ends {
  FileHandle a;
  FileHandle b;
};

Ends MakeEnds() {
  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {FileHandle(ends[0]), FileHandle(ends[1])};
}

Bytes Key(std::uint8_t fill) { return Bytes(kPskBytes, fill); }

// Lets both sides go on until each is done or has failed.
std::pair<Status, Status> Shake(PskChannel& a, PskChannel& b) {
  StatusOr<Wants> at_a = Wants::kRead;
  StatusOr<Wants> at_b = Wants::kRead;
  for (int turn = 0; turn < 20; ++turn) {
    if (at_a.ok() && *at_a != Wants::kNothing) {
      at_a = a.Handshake();
    }
    if (at_b.ok() && *at_b != Wants::kNothing) {
      at_b = b.Handshake();
    }
  }
  return {at_a.status(), at_b.status()};
}

}  // namespace

TEST_CASE("PskChannel: two holders of a key exchange bytes that the socket does not show") {
  Ends ends = MakeEnds();
  PskChannel client =
      PskChannel::Make(std::move(ends.a), PskSide::kConnecting, Key(7), "test 1").value();
  PskChannel server =
      PskChannel::Make(std::move(ends.b), PskSide::kAccepting, Key(7), "test 1").value();
  const auto [at_client, at_server] = Shake(client, server);
  REQUIRE(at_client.ok());
  REQUIRE(at_server.ok());

  const std::string text = "forty-two patients and nobody else";
  Wants wants{};
  REQUIRE(client.Write(AsBytes(text), wants).value() == text.size());

  // What lies in the socket is no plain text.
  std::array<char, 512> raw{};
  const ssize_t seen = recv(server.descriptor(), raw.data(), raw.size(), MSG_PEEK);
  REQUIRE(seen > 0);
  CHECK(std::string_view(raw.data(), static_cast<std::size_t>(seen)).find("patients") ==
        std::string_view::npos);

  Bytes received(100);
  const std::size_t size = server.Read(received, wants).value();
  CHECK(AsText(ByteSpan(received).first(size)) == text);
  CHECK(server.Read(received, wants).value() == 0);
  CHECK(wants == Wants::kRead);
}

TEST_CASE("PskChannel: another key, another purpose and plain text are refused by both sides") {
  struct Case {
    Bytes key;
    const char* purpose;
  };
  for (const Case& other : {Case{Key(8), "test 1"}, Case{Key(7), "test 2"}}) {
    CAPTURE(other.purpose);
    Ends ends = MakeEnds();
    PskChannel client =
        PskChannel::Make(std::move(ends.a), PskSide::kConnecting, Key(7), "test 1").value();
    PskChannel server =
        PskChannel::Make(std::move(ends.b), PskSide::kAccepting, other.key, other.purpose).value();
    const auto [at_client, at_server] = Shake(client, server);
    CHECK_FALSE(at_client.ok());
    CHECK_FALSE(at_server.ok());
    CHECK(at_server.code() == StatusCode::kUnauthenticated);
  }
  Ends ends = MakeEnds();
  PskChannel server =
      PskChannel::Make(std::move(ends.b), PskSide::kAccepting, Key(7), "test 1").value();
  REQUIRE(send(ends.a.descriptor(), "GET / HTTP/1.1\r\n\r\n", 18, 0) == 18);
  CHECK_FALSE(server.Handshake().ok());
}

TEST_CASE("PskChannel: a side that goes is told apart from one that is slow") {
  Ends ends = MakeEnds();
  PskChannel server =
      PskChannel::Make(std::move(ends.b), PskSide::kAccepting, Key(7), "test 1").value();
  {
    PskChannel client =
        PskChannel::Make(std::move(ends.a), PskSide::kConnecting, Key(7), "test 1").value();
    REQUIRE(Shake(client, server).second.ok());
    Wants wants{};
    Bytes buffer(10);
    CHECK(server.Read(buffer, wants).value() == 0);
    CHECK(wants == Wants::kRead);
  }
  Wants wants{};
  Bytes buffer(10);
  CHECK(server.Read(buffer, wants).status().code() == StatusCode::kUnavailable);
}

TEST_CASE("PskChannel: a key of another length makes no channel") {
  Ends ends = MakeEnds();
  const Bytes shorter(31, 1);
  CHECK(PskChannel::Make(std::move(ends.a), PskSide::kConnecting, shorter, "x").status().code() ==
        StatusCode::kInvalidArgument);
}

}  // namespace domicile::crypto

#include "base/daemon.h"

#include <csignal>
#include <string>
#include <thread>

#include <doctest/doctest.h>

namespace domicile {
namespace {

using std::chrono::milliseconds;

int RunWith(std::vector<std::string> words, const RunDaemonBody& body) {
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  const Daemon daemon{
      .program = "test-daemon", .log = "test", .description = "Tests.", .version = "1"};
  return RunDaemon(daemon, static_cast<int>(argv.size()), argv.data(), body);
}

TEST_CASE("Signals: SIGTERM and SIGINT ask to stop, SIGHUP to reload, silence is nothing") {
  const Signals signals;
  CHECK(signals.Wait(milliseconds(1)) == Signals::Asked::kNothing);
  pthread_kill(pthread_self(), SIGTERM);
  CHECK(signals.Wait(milliseconds(1)) == Signals::Asked::kStop);
  pthread_kill(pthread_self(), SIGINT);
  CHECK(signals.Wait(milliseconds(1)) == Signals::Asked::kStop);
  pthread_kill(pthread_self(), SIGHUP);
  CHECK(signals.Wait(milliseconds(1)) == Signals::Asked::kReload);
}

TEST_CASE("Daemon: the exit code says whose fault it was") {
  const auto answer = [](const Status& status) {
    return RunWith({"test-daemon", "--config", "x.toml"},
                   [&status](const std::string& config, const Signals&) {
                     CHECK(config == "x.toml");
                     return status;
                   });
  };
  CHECK(answer(OkStatus()) == 0);
  CHECK(answer(Error(StatusCode::kInvalidArgument, "bad line")) == 2);
  CHECK(answer(Error(StatusCode::kUnauthenticated, "not in the roster")) == 2);
  CHECK(answer(Error(StatusCode::kUnavailable, "port in use")) == 3);
}

TEST_CASE("Daemon: wrong use never gets to the body") {
  const auto never = [](const std::string&, const Signals&) {
    FAIL("the body ran");
    return OkStatus();
  };
  CHECK(RunWith({"test-daemon"}, never) == 2);
  CHECK(RunWith({"test-daemon", "--nonsense"}, never) == 2);
  CHECK(RunWith({"test-daemon", "--version"}, never) == 0);
  CHECK(RunWith({"test-daemon", "--help"}, never) == 0);
}

}  // namespace
}  // namespace domicile

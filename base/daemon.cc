#include "base/daemon.h"

#include <csignal>
#include <iostream>

#include <CLI/CLI.hpp>
#include <sys/stat.h>

#include "base/log.h"

namespace domicile {

namespace {

constexpr int kDone = 0;
constexpr int kWrongUse = 2;
constexpr int kCouldNot = 3;

sigset_t AnsweredSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  return signals;
}

}  // namespace

Signals::Signals() {
  const sigset_t signals = AnsweredSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Signals::Asked Signals::Wait(std::chrono::milliseconds period) const {
  const sigset_t signals = AnsweredSignals();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(period);
  const timespec time{.tv_sec = seconds.count(),
                      .tv_nsec = std::chrono::nanoseconds(period - seconds).count()};
  switch (sigtimedwait(&signals, nullptr, &time)) {
    case SIGTERM:
    case SIGINT:
      return Asked::kStop;
    case SIGHUP:
      return Asked::kReload;
    default:
      return Asked::kNothing;
  }
}

int RunDaemon(const Daemon& daemon, int argc, char** argv, const RunDaemonBody& body) {
  CLI::App app(daemon.description + "\nExample: " + daemon.program + " --config /etc/domicile/" +
                   daemon.log + ".toml",
               daemon.program);
  std::string config;
  app.add_option("--config", config, daemon.log + ".toml (docs/formats/daemon-config.md)")
      ->required();
  for (const DaemonOption& option : daemon.options) {
    app.add_option("--" + option.name, *option.words, option.description);
  }
  app.set_version_flag("--version", daemon.version);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kWrongUse;
  }
  umask(077);  // what is kept is nobody else's
  StartLog(daemon.log);
  const Signals signals;
  const Status done = body(config, signals);
  if (done.ok()) {
    return kDone;
  }
  std::cerr << daemon.program << ": " << Message(done) << "\n";
  const bool wrong_input =
      done.code() == StatusCode::kInvalidArgument || done.code() == StatusCode::kUnauthenticated;
  return wrong_input ? kWrongUse : kCouldNot;
}

}  // namespace domicile

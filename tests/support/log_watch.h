// Follows the log of a running program from outside, read-only: waits for events that it names.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "audit/event.h"
#include "base/sqlite.h"
#include "base/status.h"

namespace domicile::test {

// How long a test waits for what should happen soon, on a machine that does other things too.
inline constexpr std::chrono::seconds kSoon{60};

// Whether an event is the one that is waited for.
using LeafTest = std::function<bool(const audit::Leaf&)>;

// Of this type; and of this phase of a job's round, whatever the epoch; and of this site.
LeafTest IsEvent(audit::EventType type);
LeafTest IsEvent(audit::EventType type, const audit::PhaseKey& key);
bool SamePhase(const audit::PhaseKey& one, const audit::PhaseKey& other);

// One thread at a time. Let go of it before the program that writes the log is started again, so
// that the program finds the file as a crash leaves it.
class LogWatch {
 public:
  // `from`: the first leaf that is looked at.
  explicit LogWatch(std::string path, std::uint64_t from = 0)
      : path_(std::move(path)), next_(from) {}

  // The first leaf not yet looked at that passes. Errors: kDeadlineExceeded, and a damaged log.
  StatusOr<audit::Leaf> WaitFor(const LeafTest& test, std::chrono::milliseconds timeout = kSoon);
  // The same, asking again and again without a pause, to act as soon as the leaf is there.
  StatusOr<audit::Leaf> Spin(const LeafTest& test, std::chrono::milliseconds timeout = kSoon);
  // The next leaf that is there already.
  StatusOr<std::optional<audit::Leaf>> Next();
  // How many leaves the log has now.
  StatusOr<std::uint64_t> Size();

 private:
  StatusOr<audit::Leaf> Wait(const LeafTest& test, std::chrono::milliseconds timeout,
                             std::chrono::microseconds pause);
  // False while there is no log yet.
  StatusOr<bool> TryOpen();

  std::string path_;
  std::uint64_t next_ = 0;
  std::optional<Database> db_;
  std::optional<Statement> rows_;
};

// All leaves of a log. A log that is not there yet has none.
StatusOr<std::vector<audit::Leaf>> ReadLeaves(const std::string& path);
// How many of them pass.
std::size_t CountLeaves(const std::vector<audit::Leaf>& leaves, const LeafTest& test);

}  // namespace domicile::test

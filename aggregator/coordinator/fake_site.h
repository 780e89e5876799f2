// A site as the coordinator sees it, and the job of the tests.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "aggregator/coordinator/messages.h"
#include "audit/log.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/sqlite.h"
#include "contracts/identity.h"
#include "contracts/plan_facts.h"

namespace domicile::aggregator {

// Where nothing is written to a disk if there is such a place: no test outlives its folder, and
// waiting for disks would be most of its time.
inline std::filesystem::path FastestFolder() {
  const std::filesystem::path memory = "/dev/shm";
  std::error_code none;
  return std::filesystem::is_directory(memory, none) && access(memory.c_str(), W_OK) == 0
             ? memory
             : std::filesystem::temp_directory_path();
}

// Moves when told, also under the timers' thread.
class MovedClock final : public Clock {
 public:
  explicit MovedClock(WallTime start) : now_(start) {}
  WallTime Now() const override {
    const MutexLock lock(mutex_);
    return now_;
  }
  MonotonicTime Monotonic() const override {
    const MutexLock lock(mutex_);
    return monotonic_;
  }
  void Advance(std::chrono::nanoseconds by) {
    const MutexLock lock(mutex_);
    now_ += by;
    monotonic_ += by;
  }

 private:
  mutable Mutex mutex_;
  WallTime now_ GUARDED_BY(mutex_);
  MonotonicTime monotonic_ GUARDED_BY(mutex_){};
};

inline const std::string kExamples = DOMICILE_SOURCE_DIR "/deploy/examples/heart/";
inline constexpr std::array<std::string_view, 4> kSites = {"budapest", "cleveland", "long-beach",
                                                           "zurich-basel"};

inline std::string Read(const std::string& path) { return ReadFile(path, 1U << 22U).value(); }

// The heart job without normalisation and with two rounds: train, then train and evaluate.
inline std::string ShortJob() {
  std::string job = Read(kExamples + "job.toml");
  std::string kept;
  bool in_normalisation = false;
  for (std::size_t begin = 0; begin < job.size();) {
    const std::size_t end = std::min(job.find('\n', begin), job.size());
    const std::string line = job.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("[")) {
      in_normalisation = line.starts_with("[normalisation]");
    }
    if (!in_normalisation && !line.starts_with("offset") && !line.starts_with("range")) {
      kept += (line == "count = 40" ? "count = 2" : line) + "\n";
    }
  }
  return kept;
}

// Keeps what is pushed. Thread-safe: the timers push too.
class FakePort final : public SitePort {
 public:
  void Push(const ToSite& message) override {
    const MutexLock lock(mutex_);
    pushed_.push_back(message);
  }
  // Ten bytes a message that was heard, a hundred a message that was pushed.
  ControlTally Tally() const override {
    const MutexLock lock(mutex_);
    return {.messages_in = heard_,
            .messages_out = pushed_.size(),
            .bytes_in = 10 * heard_,
            .bytes_out = 100 * pushed_.size()};
  }
  // The site has said something.
  void Hear() {
    const MutexLock lock(mutex_);
    ++heard_;
  }
  void End(const Refusal& why) override {
    const MutexLock lock(mutex_);
    ended_ = why.reason;
  }

  // The last message of a kind, and how many were pushed before it; null and 0 if there is none.
  template <typename T>
  const T* Last(std::size_t* before = nullptr) const {
    const MutexLock lock(mutex_);
    for (std::size_t i = pushed_.size(); i-- > 0;) {
      if (const auto* found = std::get_if<T>(&pushed_[i])) {
        if (before != nullptr) {
          *before = i;
        }
        return found;
      }
    }
    return nullptr;
  }
  policy::Reason Ended() const {
    const MutexLock lock(mutex_);
    return ended_;
  }

 private:
  mutable Mutex mutex_;
  std::deque<ToSite> pushed_ GUARDED_BY(mutex_);  // a deque: what was given out stays where it is
  std::uint64_t heard_ GUARDED_BY(mutex_) = 0;
  policy::Reason ended_ GUARDED_BY(mutex_) = policy::Reason::kNone;
};

struct SentUpdate {
  UpdateHead head;
  Bytes bytes;
};

// A site as the coordinator sees it: a certificate, a log, a port.
struct FakeSite {
  FakeSite(contracts::Identity loaded, std::string policy_statement, const Clock& clock,
           Random& random)
      : identity(std::move(loaded)),
        id(SiteId::Parse(identity.Name().name).value()),
        statement(std::move(policy_statement)),
        time(clock),
        db(Database::Open(":memory:", Database::Mode::kCreate).value()) {
    const std::array<std::string_view, 1> tables = {audit::kLogTables};
    REQUIRE(db.Migrate(1, tables).ok());
    log.emplace(audit::Log::Open(db, *identity.log_key, clock, random).value());
  }

  SiteHello Hello(std::uint64_t start) {
    SiteHello hello;
    hello.instance = start;
    hello.datasets = {DatasetAlias::Parse("heart").value()};
    hello.policy_statement = statement;
    hello.own_head = log->Head().value().note;
    hello.sent_unix_ms = contracts::UnixMilliseconds(time.Now());
    return hello;
  }

  contracts::Identity identity;
  SiteId id;
  std::string statement;
  const Clock& time;
  Database db;
  std::optional<audit::Log> log;
  std::shared_ptr<FakePort> port = std::make_shared<FakePort>();
  std::uint64_t instance = 1;
};

}  // namespace domicile::aggregator

#include "tests/support/log_watch.h"

#include <algorithm>
#include <thread>

#include "base/file.h"

namespace domicile::test {

LeafTest IsEvent(audit::EventType type) {
  return [type](const audit::Leaf& leaf) { return leaf.event.type() == type; };
}

LeafTest IsEvent(audit::EventType type, const audit::PhaseKey& key) {
  return [type, key](const audit::Leaf& leaf) {
    return leaf.event.type() == type && SamePhase(leaf.event.Phase(), key);
  };
}

bool SamePhase(const audit::PhaseKey& one, const audit::PhaseKey& other) {
  return one.job == other.job && one.round == other.round && one.phase == other.phase;
}

StatusOr<bool> LogWatch::TryOpen() {
  if (rows_) {
    return true;
  }
  if (!FileExists(path_)) {
    return false;
  }
  ASSIGN_OR_RETURN(Database db, Database::Open(path_, Database::Mode::kReadOnly));
  StatusOr<Statement> rows =
      db.Prepare("SELECT bytes FROM log_leaf WHERE seq >= ? ORDER BY seq LIMIT 1");
  if (!rows.ok()) {
    return false;  // the program has not made its tables yet
  }
  db_.emplace(std::move(db));
  rows_.emplace(*std::move(rows));
  return true;
}

StatusOr<std::optional<audit::Leaf>> LogWatch::Next() {
  ASSIGN_OR_RETURN(const bool open, TryOpen());
  if (!open) {
    return std::optional<audit::Leaf>();
  }
  rows_->Reset();
  rows_->Bind(1, static_cast<std::int64_t>(next_));
  ASSIGN_OR_RETURN(const bool found, rows_->Step());
  if (!found) {
    rows_->Reset();  // a statement that is not reset would keep its snapshot
    return std::optional<audit::Leaf>();
  }
  const Bytes bytes = rows_->Blob(0);
  rows_->Reset();
  ++next_;
  ASSIGN_OR_RETURN(audit::Leaf leaf, audit::ParseLeaf(AsText(bytes)));
  return std::optional<audit::Leaf>(std::move(leaf));
}

StatusOr<std::uint64_t> LogWatch::Size() {
  ASSIGN_OR_RETURN(const bool open, TryOpen());
  if (!open) {
    return std::uint64_t{0};
  }
  ASSIGN_OR_RETURN(Statement count, db_->Prepare("SELECT count(*) FROM log_leaf"));
  RETURN_IF_ERROR(count.Step().status());
  return static_cast<std::uint64_t>(count.Int(0));
}

StatusOr<audit::Leaf> LogWatch::Wait(const LeafTest& test, std::chrono::milliseconds timeout,
                                     std::chrono::microseconds pause) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<audit::Leaf> leaf, Next());
    if (leaf && test(*leaf)) {
      return *leaf;
    }
    if (!leaf) {
      if (std::chrono::steady_clock::now() >= until) {
        return Error(StatusCode::kDeadlineExceeded, "the log `" + path_ +
                                                        "` has no such event; it has " +
                                                        std::to_string(next_) + " leaves");
      }
      if (pause.count() > 0) {
        std::this_thread::sleep_for(pause);
      }
    }
  }
}

StatusOr<audit::Leaf> LogWatch::WaitFor(const LeafTest& test, std::chrono::milliseconds timeout) {
  return Wait(test, timeout, std::chrono::milliseconds(2));
}

StatusOr<audit::Leaf> LogWatch::Spin(const LeafTest& test, std::chrono::milliseconds timeout) {
  return Wait(test, timeout, std::chrono::microseconds(0));
}

StatusOr<std::vector<audit::Leaf>> ReadLeaves(const std::string& path) {
  std::vector<audit::Leaf> leaves;
  LogWatch log(path);
  while (true) {
    ASSIGN_OR_RETURN(std::optional<audit::Leaf> leaf, log.Next());
    if (!leaf) {
      return leaves;
    }
    leaves.push_back(*std::move(leaf));
  }
}

std::size_t CountLeaves(const std::vector<audit::Leaf>& leaves, const LeafTest& test) {
  return static_cast<std::size_t>(std::count_if(leaves.begin(), leaves.end(), test));
}

}  // namespace domicile::test

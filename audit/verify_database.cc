#include "audit/internal/verify_database.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "audit/internal/verifier.h"
#include "base/sqlite.h"

namespace domicile::audit::internal {

namespace {

constexpr std::uint64_t kProgressEvery = 4096;

std::string Place(std::int64_t level, std::int64_t index) {
  return "the stored hash of level " + std::to_string(level) + ", index " + std::to_string(index);
}

// The stored hashes of one level, read in order beside the leaves.
class LevelCursor {
 public:
  static StatusOr<LevelCursor> Open(Database& db, std::uint32_t level) {
    ASSIGN_OR_RETURN(Statement rows,
                     db.Prepare("SELECT idx, hash FROM log_subtree WHERE level = ? ORDER BY idx"));
    rows.Bind(1, std::int64_t{level});
    LevelCursor cursor(std::move(rows));
    ASSIGN_OR_RETURN(cursor.has_row_, cursor.rows_.Step());
    return cursor;
  }

  // The stored hash at `index`, if there is one; rows before it are too many and were reported by
  // no leaf.
  StatusOr<std::optional<Bytes>> At(std::uint64_t index) {
    while (has_row_ && rows_.Int(0) < static_cast<std::int64_t>(index)) {
      ++extra_;
      ASSIGN_OR_RETURN(has_row_, rows_.Step());
    }
    if (!has_row_ || rows_.Int(0) != static_cast<std::int64_t>(index)) {
      return std::optional<Bytes>();
    }
    std::optional<Bytes> hash = rows_.Blob(1);
    ASSIGN_OR_RETURN(has_row_, rows_.Step());
    return hash;
  }

  // Rows that no subtree of the leaves has.
  StatusOr<std::uint64_t> Extra() {
    while (has_row_) {
      ++extra_;
      ASSIGN_OR_RETURN(has_row_, rows_.Step());
    }
    return extra_;
  }

 private:
  explicit LevelCursor(Statement rows) : rows_(std::move(rows)) {}
  Statement rows_;
  bool has_row_ = false;
  std::uint64_t extra_ = 0;
};

class DatabaseVerifier {
 public:
  DatabaseVerifier(Database& db, const VerifyOptions& options)
      : db_(db), options_(options), verifier_(options) {}

  VerifyReport Run() {
    // Each step reads what it can; an unreadable page ends that step alone.
    Report(CheckFile());
    const auto tables = HasTables();
    Report(tables.status());
    if (tables.ok() && *tables) {
      Report(ReadHeads());
      Report(ReadLeaves());
      Report(CheckLeftOver());
      Report(CheckPeerHeads());
    }
    return verifier_.Finish();
  }

 private:
  void Report(const Status& status) {
    if (!status.ok()) {
      verifier_.Find(FindingKind::kDamage, std::nullopt,
                     "the file is damaged: " + std::string(Message(status)));
    }
  }

  // SQLite's own check of pages, indexes and types.
  Status CheckFile() {
    ASSIGN_OR_RETURN(Statement check, db_.Prepare("PRAGMA integrity_check(10)"));
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, check.Step());
      if (!row) {
        return OkStatus();
      }
      if (const std::string text = check.Text(0); text != "ok") {
        verifier_.Find(FindingKind::kDamage, std::nullopt,
                       "the file is damaged: SQLite says `" + text + "`");
      }
    }
  }

  StatusOr<bool> HasTables() {
    ASSIGN_OR_RETURN(Statement tables,
                     db_.Prepare("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name "
                                 "IN ('log_leaf', 'log_subtree', 'log_head', 'log_peer_head')"));
    ASSIGN_OR_RETURN(const bool row, tables.Step());
    if (row && tables.Int(0) == 4) {
      return true;
    }
    verifier_.Find(FindingKind::kDamage, std::nullopt, "the database has not the tables of a log");
    return false;
  }

  Status ReadHeads() {
    ASSIGN_OR_RETURN(Statement heads,
                     db_.Prepare("SELECT size, root, note FROM log_head ORDER BY size"));
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, heads.Step());
      if (!row) {
        return OkStatus();
      }
      verifier_.AddInsideHead(heads.Int(0), heads.Blob(1), heads.Text(2));
    }
  }

  Status ReadLeaves() {
    ASSIGN_OR_RETURN(Statement leaves,
                     db_.Prepare("SELECT seq, bytes, hash FROM log_leaf ORDER BY seq"));
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, leaves.Step());
      if (!row) {
        return OkStatus();
      }
      const auto seq = static_cast<std::uint64_t>(leaves.Int(0));
      const Bytes bytes = leaves.Blob(1);
      const Verifier::Grown grown = verifier_.AddLeaf(seq, AsText(bytes), leaves.Blob(2));
      if (verifier_.InSequence()) {
        RETURN_IF_ERROR(CheckSubtrees(seq, grown));
      }
      if (options_.progress && verifier_.Size() % kProgressEvery == 0) {
        options_.progress(verifier_.Size());
      }
    }
  }

  Status CheckSubtrees(std::uint64_t seq, const Verifier::Grown& grown) {
    for (std::size_t i = 0; i < grown.by_bytes.size(); ++i) {
      const Subtree& subtree = grown.by_bytes[i];
      if (levels_.size() < subtree.level) {
        ASSIGN_OR_RETURN(LevelCursor cursor, LevelCursor::Open(db_, subtree.level));
        levels_.push_back(std::move(cursor));
      }
      ASSIGN_OR_RETURN(const std::optional<Bytes> stored,
                       levels_[subtree.level - 1].At(subtree.index));
      const auto equals = [&](const Digest& hash) {
        return std::equal(stored->begin(), stored->end(), hash.bytes.begin(), hash.bytes.end());
      };
      if (!stored || (!equals(subtree.hash) && !equals(grown.by_stored[i].hash))) {
        verifier_.Find(FindingKind::kSubtree, seq,
                       Place(subtree.level, static_cast<std::int64_t>(subtree.index)) +
                           " (completed by entry " + std::to_string(seq) + ") " +
                           (stored ? "differs from that of the entries" : "is missing"));
      }
    }
    return OkStatus();
  }

  // Rows that belong to no subtree. After a gap the places no longer fit, and the gap was reported.
  Status CheckLeftOver() {
    if (!verifier_.InSequence()) {
      return OkStatus();
    }
    std::uint64_t extra = 0;
    for (LevelCursor& level : levels_) {
      ASSIGN_OR_RETURN(const std::uint64_t of_level, level.Extra());
      extra += of_level;
    }
    ASSIGN_OR_RETURN(Statement others,
                     db_.Prepare("SELECT count(*) FROM log_subtree WHERE level < 1 OR level > ?"));
    others.Bind(1, static_cast<std::int64_t>(levels_.size()));
    ASSIGN_OR_RETURN(const bool row, others.Step());
    extra += row ? static_cast<std::uint64_t>(others.Int(0)) : 0;
    if (extra != 0) {
      verifier_.Find(FindingKind::kSubtree, std::nullopt,
                     std::to_string(extra) + " stored hashes are of no subtree of the entries");
    }
    return OkStatus();
  }

  // The last heads of others: their keys are not known here, but row and note must agree.
  Status CheckPeerHeads() {
    ASSIGN_OR_RETURN(Statement heads,
                     db_.Prepare("SELECT origin, size, root, note FROM log_peer_head"));
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, heads.Step());
      if (!row) {
        return OkStatus();
      }
      const std::string note = heads.Text(3);
      const std::size_t split = note.rfind("\n\n");
      const auto head = crypto::ParseCheckpoint(
          std::string_view(note).substr(0, split == std::string::npos ? 0 : split + 1));
      const Bytes root = heads.Blob(2);
      if (!head.ok() || head->origin != heads.Text(0) ||
          static_cast<std::int64_t>(head->size) != heads.Int(1) ||
          !std::equal(root.begin(), root.end(), head->root.bytes.begin(), head->root.bytes.end())) {
        verifier_.Find(FindingKind::kHeadForm, std::nullopt,
                       "a remembered head of another log differs from its note, or is none");
      }
    }
  }

  Database& db_;
  const VerifyOptions& options_;
  Verifier verifier_;
  std::vector<LevelCursor> levels_;  // levels 1, 2, ...
};

}  // namespace

StatusOr<VerifyReport> VerifyDatabase(const std::string& path, const VerifyOptions& options) {
  auto db = Database::Open(path, Database::Mode::kReadOnly);
  if (!db.ok() && db.status().code() != StatusCode::kDataLoss) {
    return db.status();
  }
  if (db.ok()) {
    // One snapshot, although its owner may be writing.
    const Status begun = db->Execute("BEGIN");
    if (begun.ok()) {
      return DatabaseVerifier(*db, options).Run();
    }
    db = begun;
  }
  Verifier verifier(options);
  verifier.Find(FindingKind::kDamage, std::nullopt,
                "the file is damaged: " + std::string(Message(db.status())));
  return verifier.Finish();
}

}  // namespace domicile::audit::internal

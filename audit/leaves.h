// Reads the leaves of a log file for people's questions: a party's SQLite database, or an export in
// JSON Lines. Reads what is there; whether it is what was written is audit/verify.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "audit/event.h"
#include "base/bytes.h"
#include "base/status.h"

namespace domicile::audit {

enum class LogFileKind : std::uint8_t { kNone = 0, kDatabase = 1, kExport = 2 };

// By the first bytes of the file; an empty file is an empty export. Errors: kNotFound,
// kPermissionDenied.
StatusOr<LogFileKind> KindOfLogFile(const std::string& path);

struct RawLeaf {
  std::uint64_t seq = 0;  // the row's number, or the line's, from 0
  std::string bytes;
  std::optional<Bytes> stored_hash;  // databases only
};

// One thread at a time.
class LeafReader {
 public:
  static StatusOr<std::unique_ptr<LeafReader>> Open(const std::string& path);
  virtual ~LeafReader() = default;

  // The next leaf, empty after the last. Errors: kInvalidArgument (a line that is too long, ends in
  // CR LF or is torn, by number), kDataLoss (a damaged database), kUnavailable.
  virtual StatusOr<std::optional<RawLeaf>> Next() = 0;
};

// Calls `visit` with every leaf, parsed. Errors: those of reading, of ParseLeaf (with the leaf's
// number), and those that `visit` returns.
template <typename Visit>
Status ForEachLeaf(const std::string& path, Visit visit) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LeafReader> reader, LeafReader::Open(path));
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<RawLeaf> raw, reader->Next());
    if (!raw) {
      return OkStatus();
    }
    auto leaf = ParseLeaf(raw->bytes);
    if (!leaf.ok()) {
      return Annotate(leaf.status(), "log `" + path + "`, leaf " + std::to_string(raw->seq));
    }
    RETURN_IF_ERROR(visit(*leaf));
  }
}

}  // namespace domicile::audit

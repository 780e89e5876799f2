// Exports: the exact leaves of a log as JSON Lines, with a file of leaf hashes beside it and, if
// wanted, the last signed head. Page: docs/formats/log.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace domicile::audit {

struct ExportResult {
  std::uint64_t leaves = 0;
  std::uint64_t head_size = 0;  // of the head written; 0 if none was asked for
};

// Writes FILE and FILE.hashes; with `head_file`, the last stored head too, and then exactly its
// leaves: leaves that no head covers yet are left out. The
// database is opened read only and read in one snapshot, also while its owner writes. Errors:
// kNotFound, kDataLoss, those of WriteFileDurably; kFailedPrecondition (a head is wanted and none
// is stored yet).
StatusOr<ExportResult> ExportLog(const std::string& database, const std::string& file,
                                 const std::string& head_file,
                                 const std::function<void(std::uint64_t)>& progress = {});

// Reads a FILE.hashes. Errors: kInvalidArgument, by line.
StatusOr<std::vector<Digest>> ParseLeafHashes(std::string_view text);

}  // namespace domicile::audit

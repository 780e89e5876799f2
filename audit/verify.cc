#include "audit/verify.h"

#include <fstream>
#include <utility>

#include "audit/internal/line_reader.h"
#include "audit/internal/verifier.h"
#include "audit/internal/verify_database.h"
#include "audit/leaves.h"

namespace domicile::audit {

namespace {

constexpr std::uint64_t kProgressEvery = 4096;

std::string LineName(std::uint64_t number) { return "line " + std::to_string(number + 1); }

// Adds one line; false when reading is over.
bool AddLine(const internal::Line& line, const VerifyOptions& options, bool& line_ends_said,
             internal::Verifier& verifier) {
  const std::uint64_t place = verifier.Size();
  switch (line.end) {
    case internal::LineEnd::kEndOfFile:
      return false;
    case internal::LineEnd::kUnreadable:
      verifier.Find(FindingKind::kDamage, place, LineName(line.number) + " cannot be read");
      return false;
    case internal::LineEnd::kTorn:
      verifier.Find(FindingKind::kTornLine, std::nullopt,
                    LineName(line.number) + " is torn (" + std::to_string(line.text.size()) +
                        " bytes without a line end): set aside, it is not entry " +
                        std::to_string(place));
      return false;
    case internal::LineEnd::kTooLong:
      verifier.Find(FindingKind::kLeafForm, place,
                    LineName(line.number) + " is longer than an entry can be; stopped here");
      return false;
    case internal::LineEnd::kCarriageReturn:
      if (!std::exchange(line_ends_said, true)) {
        verifier.Find(FindingKind::kLineEnd, place,
                      LineName(line.number) +
                          " ends in CR LF: other bytes than were written (an export has LF alone)");
      }
      break;
    case internal::LineEnd::kWhole:
      break;
  }
  std::optional<Bytes> stored;
  if (options.leaf_hashes && place < options.leaf_hashes->size()) {
    const Digest& hash = (*options.leaf_hashes)[place];
    stored = Bytes(hash.bytes.begin(), hash.bytes.end());
  }
  verifier.AddLeaf(place, line.text, stored);
  return true;
}

}  // namespace

VerifyReport VerifyExport(std::istream& lines, const VerifyOptions& options) {
  internal::Verifier verifier(options);
  internal::LineReader reader(lines);
  bool line_ends_said = false;
  while (AddLine(reader.Next(), options, line_ends_said, verifier)) {
    if (options.progress && verifier.Size() % kProgressEvery == 0) {
      options.progress(verifier.Size());
    }
  }
  if (options.leaf_hashes && options.leaf_hashes->size() != verifier.Size()) {
    verifier.Find(FindingKind::kSequence,
                  std::min<std::uint64_t>(options.leaf_hashes->size(), verifier.Size()),
                  "the list of leaf hashes has " + std::to_string(options.leaf_hashes->size()) +
                      " entries, the log has " + std::to_string(verifier.Size()));
  }
  return verifier.Finish();
}

StatusOr<VerifyReport> VerifyLogFile(const std::string& path, const VerifyOptions& options) {
  ASSIGN_OR_RETURN(const LogFileKind kind, KindOfLogFile(path));
  if (kind == LogFileKind::kDatabase) {
    return internal::VerifyDatabase(path, options);
  }
  std::ifstream file(path, std::ios::binary);
  return VerifyExport(file, options);
}

}  // namespace domicile::audit

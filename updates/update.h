// The update file: what a site's outbox holds, what travels, what the aggregator folds.
// Page: docs/formats/update.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/status.h"
#include "updates/encoding.h"
#include "updates/grid.h"

namespace domicile::updates {

// Stored and sent: append, never renumber. The order of numbers is the order in a file.
enum class Section : std::uint8_t {
  kNone = 0,
  kDelta = 1,       // trained weights minus received weights, the plan's tensors one after another
  kMetrics = 2,     // updates/metrics.h
  kStatistics = 3,  // updates/statistics.h
  kHistogram = 4,   // updates/metrics.h
};
std::string_view SectionName(Section section);  // "delta", ...; "" for kNone
std::optional<Section> SectionFromName(std::string_view name);

// The phase an update belongs to. The numbers and names are those of contracts::PhaseKind, so that
// static_cast converts.
enum class UpdatePhase : std::uint8_t { kNone = 0, kStatistics = 1, kTrain = 2, kEvaluate = 3 };
std::string_view UpdatePhaseName(UpdatePhase phase);
std::optional<UpdatePhase> UpdatePhaseFromName(std::string_view name);

struct SectionInfo {
  Section section = Section::kNone;
  Encoding encoding = Encoding::kNone;
  std::uint64_t count = 0;       // numbers, at least 1
  std::uint32_t scale_bits = 0;  // of its grid
  friend bool operator==(const SectionInfo&, const SectionInfo&) = default;
};

struct UpdateManifest {
  JobId job = {};
  Digest plan = {};
  RoundNumber round = 0;  // from 1
  UpdatePhase phase = UpdatePhase::kNone;
  Digest base_model = {};   // the model it starts from or was measured on
  Digest policy = {};       // effective policy under which it was released
  std::int64_t weight = 0;  // 0 .. 2^32 - 1 on the page; 0 (no examples) can be read, never folded
  std::vector<SectionInfo> sections =
      {};  // at least 1, each name at most once, in order of numbers
  friend bool operator==(const UpdateManifest&, const UpdateManifest&) = default;
};

// One section in place. Borrows the buffer given to ParseUpdate.
struct SectionView {
  SectionInfo info;
  ByteSpan bytes;  // info.count numbers
};

// A parsed update. Borrows the buffer given to ParseUpdate.
struct UpdateView {
  UpdateManifest manifest;
  std::vector<SectionView> sections;  // as in the manifest
  // The section of that name; null if the update has none.
  const SectionView* Find(Section section) const;
};

// Manifests are no longer than this.
inline constexpr std::size_t kLargestManifest = 4096;

// The bytes of the file. `payloads[i]` are the encoded numbers of manifest.sections[i]. Errors:
// kInvalidArgument: a field that ParseUpdate would refuse, or a payload of another length.
StatusOr<Bytes> EncodeUpdate(const UpdateManifest& manifest, std::span<const ByteSpan> payloads);

// Reads a whole file and copies nothing. Checks everything but the values of the numbers, for which
// the grid is needed (GridFloats::Check, DecodeLevels). EncodeUpdate of what it returns gives the
// same bytes: there is one spelling. Errors: kInvalidArgument, naming the place, never a value of a
// number.
StatusOr<UpdateView> ParseUpdate(ByteSpan bytes);

// Size of the file in bytes, without making it. Errors: as EncodeUpdate.
StatusOr<std::uint64_t> UpdateSize(const UpdateManifest& manifest);

// The grid that each kind of section of a phase lies on.
struct SectionGrid {
  Section section;
  GridPlan grid;
};

// How many bits the update can carry at most: numbers * grid.BitsPerNumber(), over its sections.
// What a log states for each payload. Errors: kInvalidArgument if a section has no grid in the list
// or another scale_bits.
StatusOr<std::uint64_t> CapacityBits(const UpdateManifest& manifest,
                                     std::span<const SectionGrid> grids);

}  // namespace domicile::updates

// How the levels of a section are spelled as bytes, and back. Page: docs/formats/update.md.
//
// Every encoding decodes to grid integers, with one spelling for each: what a sender could vary
// without changing the sum would be a channel.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "updates/grid.h"

namespace domicile::updates {

// Stored and sent: append, never renumber. Numbers 3 to 5 are kept for int8 blocks, masked u32 and
// top-k; they have no name yet, so no manifest can ask for them.
enum class Encoding : std::uint8_t {
  kNone = 0,
  kF32 = 1,  // IEEE 754 binary32, little-endian; value * 2^scale_bits is the level
  kI64 = 2,  // two's complement, little-endian: the level itself
};

std::string_view EncodingName(Encoding encoding);  // "f32", "i64"; "" for kNone
std::optional<Encoding> EncodingFromName(std::string_view name);
// Bytes of one number; 0 for kNone.
std::size_t EncodedSize(Encoding encoding);

// An f32 section whose every value is on the grid and within it, and its norm: the only thing that
// Fold takes as floats. Borrows the bytes, which must live as long and not change. Immutable.
class GridFloats {
 public:
  // `bytes`: 4 per number, any alignment. Errors, naming the first bad index, never the value:
  //   kInvalidArgument  length no multiple of 4; not finite; not a whole level; -0; a grid with
  //                     max_level > kLargestFloatLevel
  //   kOutOfRange       a level beyond max_level
  static StatusOr<GridFloats> Check(const GridPlan& plan, ByteSpan bytes);

  const GridPlan& Plan() const { return plan_; }
  ByteSpan Encoded() const { return bytes_; }
  std::size_t Count() const { return bytes_.size() / sizeof(float); }
  // L2 norm of the values, the same number as L2Norm gives. Of the whole section, also for a Slice.
  double Norm() const { return norm_; }
  // The numbers first .. first + count - 1, which must exist; to fold ranges on several threads.
  GridFloats Slice(std::size_t first, std::size_t count) const;

 private:
  GridFloats(const GridPlan& plan, ByteSpan bytes, double norm)
      : plan_(plan), bytes_(bytes), norm_(norm) {}

  GridPlan plan_;
  ByteSpan bytes_;
  double norm_;
};

// All levels of a section. Errors: as GridFloats::Check; kOutOfRange for a level beyond max_level;
// kInvalidArgument for an encoding that this version cannot decode.
StatusOr<std::vector<std::int64_t>> DecodeLevels(const GridPlan& plan, Encoding encoding,
                                                 ByteSpan bytes);

// The bytes of values that RoundToGrid has rounded, or of levels.
Bytes EncodeF32(std::span<const float> values);
Bytes EncodeI64(std::span<const std::int64_t> levels);

}  // namespace domicile::updates

// Model files: safetensors, the strict subset that Domicile writes and reads. Layout of a file:
// u64le header length; a JSON object {name: {dtype, shape, data_offsets}, ...} padded with spaces;
// the data, little-endian, without holes. Page of the format: docs/formats/model.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace domicile::models {

enum class DataType : std::uint8_t { kFloat32 = 0, kInt64 = 1 };

struct NamedTensor {
  std::string name;                      // [A-Za-z0-9_.]+, at most 120 characters
  std::vector<std::uint64_t> shape{};    // each at least 1; empty for a scalar
  std::vector<float> values{};           // row-major; holds the elements of an F32 tensor
  DataType type = DataType::kFloat32;    // which of the two lists is in use; the other is empty
  std::vector<std::int64_t> integers{};  // the elements of an I64 tensor

  friend bool operator==(const NamedTensor&, const NamedTensor&) = default;
};

// What the reader accepts of a file that another party made.
struct SafetensorsLimits {
  std::uint64_t max_header_bytes = std::uint64_t{1} << 20U;
  std::uint64_t max_data_bytes = std::uint64_t{8} << 30U;
  std::size_t max_tensors = 10'000;
};

// The tensors in the order of their data. Refuses: a header over its limit or that is not one JSON
// object, names outside the alphabet, duplicate names, other dtypes than F32 and I64, a shape whose
// size overflows or disagrees with its offsets, offsets out of bounds, overlaps, holes and trailing
// bytes, metadata beyond a short `format`. Values are taken as they are: NaN and infinity are the
// caller's to refuse (CheckFinite). Errors: kInvalidArgument, naming tensor and rule.
StatusOr<std::vector<NamedTensor>> ParseSafetensors(ByteSpan file,
                                                    const SafetensorsLimits& limits = {});

// The file, tensors in the given order; the same tensors give the same bytes. Names and shapes must
// be as above and match the lists: a mistake is a bug of ours and aborts.
Bytes PrintSafetensors(std::span<const NamedTensor> tensors);

// The tensor of that name; null if there is none.
const NamedTensor* FindTensor(std::span<const NamedTensor> tensors, std::string_view name);

// Errors: kInvalidArgument, naming the first tensor and index that is NaN or infinite.
Status CheckFinite(std::span<const NamedTensor> tensors);

}  // namespace domicile::models

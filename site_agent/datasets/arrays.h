// Arrays as numerical programs keep them: .npy, .npz and safetensors; the part of each that a
// dataset may be made of (docs/formats/dataset.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace domicile::site_agent {

enum class ArrayType : std::uint8_t { kUint8 = 0, kInt64 = 1, kFloat32 = 2, kFloat64 = 3 };

std::size_t BytesOf(ArrayType type);

struct Array {
  std::string name;
  ArrayType type = ArrayType::kUint8;
  std::vector<std::uint64_t> shape;
  Bytes values;  // little-endian, row-major; as many as the shape says

  friend bool operator==(const Array&, const Array&) = default;
};

inline constexpr std::uint64_t kMaxArrayBytes = std::uint64_t{8} << 30U;

// One array of a .npy file, headers of versions 1 to 3. Errors: kInvalidArgument.
StatusOr<Array> ParseNpy(Bytes file, std::string name);

// The arrays of an archive of .npy files, in its order. Errors: kInvalidArgument, naming the
// member.
StatusOr<std::vector<Array>> ParseNpz(ByteSpan file, std::uint64_t max_bytes = kMaxArrayBytes);

// The tensors of a safetensors file, in the order of their data. Errors: kInvalidArgument, naming
// the tensor.
StatusOr<std::vector<Array>> ParseSafetensorsArrays(ByteSpan file);

}  // namespace domicile::site_agent

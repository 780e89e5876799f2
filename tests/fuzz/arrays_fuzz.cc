// Arrays of a foreign program: .npy, .npz, safetensors. Whoever is accepted has as many bytes as
// its shape says, and nothing is unpacked beyond the limit.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "site_agent/datasets/arrays.h"

namespace {

void Check(const domicile::site_agent::Array& array) {
  std::uint64_t size = domicile::site_agent::BytesOf(array.type);
  for (const std::uint64_t length : array.shape) {
    size *= length;
  }
  DOMICILE_CHECK(size == array.values.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  constexpr std::uint64_t kLimit = 1 << 20;
  const ByteSpan file(data, size);
  const StatusOr<site_agent::Array> npy = site_agent::ParseNpy({data, data + size}, "x");
  if (npy.ok()) {
    Check(*npy);
  }
  for (const auto& arrays :
       {site_agent::ParseNpz(file, kLimit), site_agent::ParseSafetensorsArrays(file)}) {
    if (arrays.ok()) {
      for (const site_agent::Array& array : *arrays) {
        Check(array);
        DOMICILE_CHECK(array.values.size() <= kLimit);
      }
    }
  }
  return 0;
}

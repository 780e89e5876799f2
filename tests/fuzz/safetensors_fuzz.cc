// A model file from another party. Whatever it is, reading ends; and what is read is printed and
// read again as the same tensors.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "models/safetensors.h"

namespace {

// Float equality would call NaN different from itself.
bool SameBits(const domicile::models::NamedTensor& a, const domicile::models::NamedTensor& b) {
  return a.name == b.name && a.shape == b.shape && a.type == b.type && a.integers == b.integers &&
         a.values.size() == b.values.size() &&
         (a.values.empty() ||
          std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using domicile::models::ParseSafetensors;
  const auto tensors = ParseSafetensors({data, size});
  if (!tensors.ok()) {
    return 0;
  }
  const auto again = ParseSafetensors(domicile::models::PrintSafetensors(*tensors));
  DOMICILE_CHECK(again.ok() && again->size() == tensors->size());
  for (std::size_t i = 0; i < tensors->size(); ++i) {
    DOMICILE_CHECK(SameBits((*tensors)[i], (*again)[i]));
  }
  return 0;
}

// The bits that decide what a dropout mask drops, the same on every device. Included by kernel
// files (cpu/kernels.h), hence the internal linkage.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define DOMICILE_MASK_BITS __host__ __device__
#else
#define DOMICILE_MASK_BITS
#endif

namespace domicile::models {
namespace {

// Element `index` is kept if its 32 random bits are not below the threshold.
[[maybe_unused]] DOMICILE_MASK_BITS inline std::uint32_t MaskBits(std::uint64_t key,
                                                                  std::uint64_t index) {
  std::uint64_t mixed = key + index * 0x9e3779b97f4a7c15U;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<std::uint32_t>(mixed >> 32U);
}

[[maybe_unused]] DOMICILE_MASK_BITS inline std::uint32_t DropThreshold(float rate) {
  return static_cast<std::uint32_t>(static_cast<double>(rate) * 4294967296.0);
}

}  // namespace
}  // namespace domicile::models

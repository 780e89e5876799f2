// What the bodies of kernels are written with: they compile for a GPU and for the host alike, so
// that the tests run the very same bodies in a plain loop.
#pragma once

#include <cstddef>
#include <cstdint>

#include <math.h>  // NOLINT(modernize-deprecated-headers): ::expf and the like, which nvcc knows

#ifdef __CUDACC__
#define DOMICILE_BOTH __host__ __device__
#else
#define DOMICILE_BOTH
#endif

namespace domicile::models::cuda {

struct Split {
  std::size_t quotient;
  std::size_t remainder;
};

// i / n and i % n. A division of 64 bits takes a GPU several times as long as one of 32.
DOMICILE_BOTH inline Split Divide(std::size_t i, std::size_t n) {
  if (((i | n) >> 32U) == 0) {
    const std::uint32_t quotient = static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(n);
    return {quotient, static_cast<std::uint32_t>(i) - quotient * static_cast<std::uint32_t>(n)};
  }
  return {i / n, i % n};
}

DOMICILE_BOTH inline std::size_t Least(std::size_t a, std::size_t b) { return a < b ? a : b; }

}  // namespace domicile::models::cuda

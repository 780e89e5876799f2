// The CPU device: Eigen kernels behind raw pointers, cut into pieces of fixed size over a pool.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "models/layers/device.h"

namespace domicile::models {

// A device of `num_threads` >= 1 threads, the caller's among them. CheckCpu() (cpu_check.h) must
// have returned OK.
std::unique_ptr<Device> MakeCpuDevice(std::size_t num_threads);

// Which matrix product serves on this processor: avx512, avx2 or narrow.
std::string_view GemmKernel();

// Measures C[n, n] = A[n, n] B[n, n] in float32 on one thread; billions of operations a second.
double MeasureGemmGflops(std::size_t n, double seconds);

}  // namespace domicile::models

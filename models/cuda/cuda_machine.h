// A GPU as a machine (machine.h): kernels on one stream, in the order of the calls. For
// files compiled by nvcc, and those that only pass a machine on.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include <cuda_runtime.h>

#include "models/cuda/launch.h"
#include "models/cuda/machine.h"
#include "models/cuda/plugin.h"
#include "models/cuda/portable.h"
#include "models/cuda/product.h"

namespace domicile::models::cuda {

class MatrixProducts;
class PinnedStaging;

#ifdef __CUDACC__
// The threads of a block. Sums and maxima go through one fixed tree: within each warp by
// butterflies, where both partners add the same two numbers, then over the warps in their order.
class BlockTeam {
 public:
  __device__ explicit BlockTeam(double* of_warps) : of_warps_(of_warps) {}

  __device__ std::size_t Rank() const { return threadIdx.x; }
  __device__ std::size_t Size() const { return blockDim.x; }

  __device__ double Sum(double value) {
    for (unsigned distance = 16; distance > 0; distance /= 2) {
      value += __shfl_xor_sync(0xFFFFFFFFU, value, distance);
    }
    return OverWarps(value, [](double a, double b) { return a + b; });
  }
  __device__ float Max(float value) {
    for (unsigned distance = 16; distance > 0; distance /= 2) {
      value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFU, value, distance));
    }
    return static_cast<float>(
        OverWarps(static_cast<double>(value), [](double a, double b) { return fmax(a, b); }));
  }

 private:
  template <typename Join>
  __device__ double OverWarps(double value, const Join& join) {
    if (blockDim.x <= 32) {
      return value;
    }
    __syncthreads();  // the last values have been read
    if (threadIdx.x % 32 == 0) {
      of_warps_[threadIdx.x / 32] = value;
    }
    __syncthreads();
    double joined = of_warps_[0];
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) {
      joined = join(joined, of_warps_[warp]);
    }
    return joined;
  }

  double* of_warps_;
};

template <typename Body>
__global__ void __launch_bounds__(kBlock) RunElements(Body body, std::size_t size) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < size;
       i += step) {
    body(i);
  }
}

template <typename Body>
__global__ void __launch_bounds__(kBlock) RunTeams(Body body, std::size_t count) {
  __shared__ double of_warps[kBlock / 32];
  BlockTeam team(of_warps);
  for (std::size_t index = blockIdx.x; index < count; index += gridDim.x) {
    body(team, index);
  }
}
#endif

// One thread at a time. INVARIANT: all work is on stream(); nothing is done once it has failed.
class CudaMachine {
 public:
  class Group;

  static int NumDevices(Why& why);
  static CudaMachine* Open(int ordinal, Products products, Why& why);
  ~CudaMachine();
  CudaMachine(const CudaMachine&) = delete;
  CudaMachine& operator=(const CudaMachine&) = delete;

  const char* Failure() const { return failure_.empty() ? nullptr : failure_.c_str(); }
  int ordinal() const { return ordinal_; }
  cudaStream_t stream() const { return stream_; }

  void* Allocate(std::size_t bytes);
  void Release(void* memory);
  void Upload(void* to, const void* from, std::size_t bytes);
  void Download(void* to, const void* from, std::size_t bytes);
  void Copy(void* to, const void* from, std::size_t bytes);
  void Zero(void* memory, std::size_t bytes);

#ifdef __CUDACC__
  template <typename Body>
  void Elements(std::size_t size, const Body& body) {
    if (size > 0 && Select()) {
      RunElements<<<static_cast<unsigned>(BlocksFor(size)), kBlock, 0, stream_>>>(body, size);
      Require(cudaGetLastError(), "starting a kernel");
    }
  }

  template <typename Body>
  void Teams(std::size_t count, std::size_t work, const Body& body) {
    if (count > 0 && Select()) {
      const auto blocks = static_cast<unsigned>(Least(count, kMaxBlocks));
      RunTeams<<<blocks, static_cast<unsigned>(TeamSize(work)), 0, stream_>>>(body, count);
      Require(cudaGetLastError(), "starting a kernel");
    }
  }
#endif

  std::size_t ColumnRoom() const { return std::size_t{1} << 26U; }  // 256 MiB
  // cuBLAS reads a bias in pieces of 16 bytes.
  bool CanFuseBias(const void* bias) const {
    return reinterpret_cast<std::uintptr_t>(bias) % 16 == 0;
  }
  void Multiply(const Product& product);
  void* Scratch(Place place, std::size_t bytes);

  // Makes the machine's GPU the thread's own. False once the machine has failed.
  bool Select();
  // Notes the first failure; false for one.
  bool Require(cudaError_t error, const char* what);
  void Fail(const std::string& why);

 private:
  struct Room {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };

  explicit CudaMachine(int ordinal);

  int ordinal_;
  std::string failure_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<PinnedStaging> staging_;
  std::unique_ptr<MatrixProducts> products_;
  std::array<Room, static_cast<std::size_t>(Place::kNumPlaces)> scratch_{};
};

}  // namespace domicile::models::cuda

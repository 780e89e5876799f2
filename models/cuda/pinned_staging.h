// The way of host memory to a GPU: through two halves of pinned memory, so that the program fills
// one while the GPU fetches the other, and need not wait for either as long as it is quicker.
#pragma once

#include <array>
#include <cstddef>

#include <cuda_runtime.h>

namespace domicile::models::cuda {

// One thread at a time; the GPU must be the thread's own in every call.
class PinnedStaging {
 public:
  static constexpr std::size_t kHalf = std::size_t{4} << 20U;

  PinnedStaging() = default;
  ~PinnedStaging();
  PinnedStaging(const PinnedStaging&) = delete;
  PinnedStaging& operator=(const PinnedStaging&) = delete;

  cudaError_t Open();
  // Queues the copy; afterwards `from` may be written over.
  cudaError_t Upload(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
  // Waits for the copy, and for all that was queued before it.
  cudaError_t Download(void* to, const void* from, std::size_t bytes, cudaStream_t stream);

 private:
  // The half after the one in use, once the GPU has fetched what was in it.
  cudaError_t NextHalf(cudaStream_t stream);

  char* memory_ = nullptr;  // the two halves
  std::array<cudaEvent_t, 2> fetched_{};
  std::size_t half_ = 0;
  std::size_t used_ = 0;  // of that half
};

}  // namespace domicile::models::cuda

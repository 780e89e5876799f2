#include "models/cuda/pinned_staging.h"

#include <algorithm>
#include <cstring>

namespace domicile::models::cuda {

PinnedStaging::~PinnedStaging() {
  for (const cudaEvent_t event : fetched_) {
    if (event != nullptr) {
      cudaEventDestroy(event);
    }
  }
  cudaFreeHost(memory_);
}

cudaError_t PinnedStaging::Open() {
  void* memory = nullptr;
  cudaError_t error = cudaHostAlloc(&memory, 2 * kHalf, cudaHostAllocDefault);
  memory_ = static_cast<char*>(memory);
  for (cudaEvent_t& event : fetched_) {
    error = error == cudaSuccess ? cudaEventCreateWithFlags(&event, cudaEventDisableTiming) : error;
  }
  return error;
}

cudaError_t PinnedStaging::NextHalf(cudaStream_t stream) {
  const cudaError_t error = cudaEventRecord(fetched_[half_], stream);
  half_ = 1 - half_;
  used_ = 0;
  // An event that was never recorded counts as past.
  return error == cudaSuccess ? cudaEventSynchronize(fetched_[half_]) : error;
}

cudaError_t PinnedStaging::Upload(void* to, const void* from, std::size_t bytes,
                                  cudaStream_t stream) {
  constexpr std::size_t kAlignment = 64;
  std::size_t done = 0;
  while (done < bytes) {
    if (used_ + kAlignment > kHalf) {
      if (const cudaError_t error = NextHalf(stream); error != cudaSuccess) {
        return error;
      }
    }
    const std::size_t piece = std::min(bytes - done, kHalf - used_);
    char* const place = memory_ + half_ * kHalf + used_;
    std::memcpy(place, static_cast<const char*>(from) + done, piece);
    const cudaError_t error = cudaMemcpyAsync(static_cast<char*>(to) + done, place, piece,
                                              cudaMemcpyHostToDevice, stream);
    if (error != cudaSuccess) {
      return error;
    }
    used_ += (piece + kAlignment - 1) / kAlignment * kAlignment;
    done += piece;
  }
  return cudaSuccess;
}

cudaError_t PinnedStaging::Download(void* to, const void* from, std::size_t bytes,
                                    cudaStream_t stream) {
  // A half that is free all the same: everything queued before is waited for.
  cudaError_t error = NextHalf(stream);
  for (std::size_t done = 0; done < bytes && error == cudaSuccess;) {
    const std::size_t piece = std::min(bytes - done, kHalf);
    char* const place = memory_ + half_ * kHalf;
    error = cudaMemcpyAsync(place, static_cast<const char*>(from) + done, piece,
                            cudaMemcpyDeviceToHost, stream);
    error = error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
    if (error == cudaSuccess) {
      std::memcpy(static_cast<char*>(to) + done, place, piece);
    }
    done += piece;
  }
  return error;
}

}  // namespace domicile::models::cuda

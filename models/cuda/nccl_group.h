// Sums over GPUs by NCCL, which is loaded when GPUs are first connected: one GPU does without it.
#pragma once

#include <cstddef>
#include <vector>

#include <nccl.h>

#include "models/cuda/cuda_machine.h"
#include "models/cuda/plugin.h"

namespace domicile::models::cuda {

// Each rank calls from its own thread, which never waits. Sums run on a stream of their own, one
// after the other, each behind the machine's work at its beginning; the machine's work after
// FinishSums waits for them.
class CudaMachine::Group {
 public:
  static Group* Connect(void* const* devices, std::size_t count, Why& why);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void BeginSum(std::size_t rank, float* values, std::size_t size);
  void FinishSums(std::size_t rank);

 private:
  struct Rank {
    CudaMachine* machine = nullptr;
    ncclComm_t communicator = nullptr;
    cudaStream_t stream = nullptr;
    cudaEvent_t computed = nullptr;
    cudaEvent_t summed = nullptr;
  };

  Group() = default;

  std::vector<Rank> ranks_;
};

}  // namespace domicile::models::cuda

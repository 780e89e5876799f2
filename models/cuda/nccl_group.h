// Sums over GPUs by NCCL, which is loaded when GPUs are first connected: one GPU does without it.
#pragma once

#include <cstddef>
#include <vector>

#include <nccl.h>

#include "models/cuda/cuda_machine.h"
#include "models/cuda/plugin.h"

namespace domicile::models::cuda {

// Each rank calls AllReduce from its own thread. The sum runs on a stream of its own, which waits
// for the machine's work so far, as the machine's later work waits for it; the thread does not
// wait.
class CudaMachine::Group {
 public:
  static Group* Connect(void* const* devices, std::size_t count, Why& why);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void AllReduce(std::size_t rank, float* values, std::size_t size);

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

// What replicas of one process, one thread each, do together in host memory. Devices that can add
// up where their values lie have DeviceSum (layers/device.h) instead.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace domicile::models {

// A barrier that can be broken, so that nobody waits for ever for one who does not come.
// Thread-safe.
class Rendezvous {
 public:
  explicit Rendezvous(std::size_t num_ranks) : waiting_(num_ranks) {}

  // Waits until all ranks have arrived. False if the rendezvous has been broken.
  bool ArriveAndWait(std::size_t rank);
  bool IsWaiting(std::size_t rank) const { return waiting_[rank].load(); }
  void Break();

 private:
  std::atomic<std::size_t> num_arrived_ = 0;
  std::atomic<std::uint32_t> generation_ = 0;
  std::atomic<bool> broken_ = false;
  std::vector<std::atomic<bool>> waiting_;
};

// Every rank makes the same calls in the same order, each from its own thread.
class SharedMemoryCollective {
 public:
  explicit SharedMemoryCollective(std::size_t num_ranks)
      : rendezvous_(num_ranks), buffers_(num_ranks) {}

  // Buffers of one size. Afterwards all hold the same bits: the element-wise sum in rank order, in
  // float64, rounded once. A value that is infinite or NaN at one rank is so at all. Rank r adds up
  // slice r of all buffers and writes it to all. Errors: kUnavailable: aborted.
  Status AllReduceSum(std::size_t rank, std::span<float> values);
  // Whether that rank has made its call and waits for the others. From any thread.
  bool IsWaiting(std::size_t rank) const { return rendezvous_.IsWaiting(rank); }
  // Ends the calls in progress and all later ones. From any thread, for good.
  void Abort() { rendezvous_.Break(); }

 private:
  Status Meet(std::size_t rank);

  Rendezvous rendezvous_;
  std::vector<std::span<float>> buffers_;  // of each rank, published before the rendezvous
};

}  // namespace domicile::models

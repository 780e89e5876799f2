// What replicas do together. The shared-memory form serves CPU replicas of one process; a GPU
// library can stand behind the same interface.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace domicile::models {

// Every rank makes the same calls in the same order, each from its own thread. Errors of every
// call: kUnavailable once the collective has been aborted; it stays so.
class Collective {
 public:
  virtual ~Collective() = default;
  virtual std::size_t NumRanks() const = 0;
  // Buffers of one size. Afterwards all hold the same bits: the element-wise sum in rank order. A
  // value that is infinite or NaN at one rank is so at all.
  virtual Status AllReduceSum(std::size_t rank, std::span<float> values) = 0;
  virtual StatusOr<double> AllReduceSum(std::size_t rank, double value) = 0;
  // The values of all ranks, in rank order.
  virtual StatusOr<std::vector<std::uint64_t>> AllGather(std::size_t rank, std::uint64_t value) = 0;
  // Whether that rank has made its call and waits for the others. From any thread.
  virtual bool IsWaiting(std::size_t rank) const = 0;
  // Ends the calls in progress and all later ones. From any thread, for good.
  virtual void Abort() = 0;
};

// A barrier that can be broken, so that nobody waits for ever for one who does not come.
// Thread-safe.
class Rendezvous {
 public:
  explicit Rendezvous(std::size_t num_ranks) : waiting_(num_ranks) {}

  std::size_t NumRanks() const { return waiting_.size(); }
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

// Rank r sums slice r of all buffers in rank order (in float64, rounded once) and writes it to all.
// Thread-safe in the sense above.
class SharedMemoryCollective final : public Collective {
 public:
  explicit SharedMemoryCollective(std::size_t num_ranks);
  std::size_t NumRanks() const override { return buffers_.size(); }
  Status AllReduceSum(std::size_t rank, std::span<float> values) override;
  StatusOr<double> AllReduceSum(std::size_t rank, double value) override;
  StatusOr<std::vector<std::uint64_t>> AllGather(std::size_t rank, std::uint64_t value) override;
  bool IsWaiting(std::size_t rank) const override { return rendezvous_.IsWaiting(rank); }
  void Abort() override { rendezvous_.Break(); }

 private:
  Status Meet(std::size_t rank);

  Rendezvous rendezvous_;
  // Of each rank, published before the rendezvous.
  std::vector<std::span<float>> buffers_;
  std::vector<double> scalars_;
  std::vector<std::uint64_t> words_;
};

}  // namespace domicile::models

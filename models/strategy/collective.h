// What replicas do together. The shared-memory form serves CPU replicas of one process; a GPU
// library can stand behind the same interface.
#pragma once

#include <barrier>
#include <cstddef>
#include <span>
#include <vector>

namespace domicile::models {

class Collective {
 public:
  virtual ~Collective() = default;
  virtual std::size_t NumRanks() const = 0;
  // Every rank calls it, each from its own thread, with buffers of one size. Afterwards all hold
  // the same bits: the element-wise sum in rank order.
  virtual void AllReduceSum(std::size_t rank, std::span<float> values) = 0;
  virtual double AllReduceSum(std::size_t rank, double value) = 0;
};

// Rank r sums slice r of all buffers in rank order (in float64, rounded once) and writes it to all.
// Thread-safe in the sense above.
class SharedMemoryCollective final : public Collective {
 public:
  explicit SharedMemoryCollective(std::size_t num_ranks);
  std::size_t NumRanks() const override { return buffers_.size(); }
  void AllReduceSum(std::size_t rank, std::span<float> values) override;
  double AllReduceSum(std::size_t rank, double value) override;

 private:
  std::barrier<> barrier_;
  std::vector<std::span<float>> buffers_;  // one a rank, published before the barrier
  std::vector<double> scalars_;
};

}  // namespace domicile::models

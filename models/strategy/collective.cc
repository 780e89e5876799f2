#include "models/strategy/collective.h"

#include "base/status.h"

namespace domicile::models {

SharedMemoryCollective::SharedMemoryCollective(std::size_t num_ranks)
    : barrier_(static_cast<std::ptrdiff_t>(num_ranks)), buffers_(num_ranks), scalars_(num_ranks) {}

void SharedMemoryCollective::AllReduceSum(std::size_t rank, std::span<float> values) {
  const std::size_t ranks = buffers_.size();
  buffers_[rank] = values;
  barrier_.arrive_and_wait();

  DOMICILE_CHECK(buffers_[0].size() == values.size());
  const std::size_t last = (rank + 1) * values.size() / ranks;
  for (std::size_t i = rank * values.size() / ranks; i < last; ++i) {
    double sum = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      sum += static_cast<double>(buffers_[r][i]);
    }
    const float rounded = static_cast<float>(sum);
    for (std::size_t r = 0; r < ranks; ++r) {
      buffers_[r][i] = rounded;
    }
  }
  // No rank may go on, and change its buffer, before every slice has been written to all.
  barrier_.arrive_and_wait();
}

double SharedMemoryCollective::AllReduceSum(std::size_t rank, double value) {
  scalars_[rank] = value;
  barrier_.arrive_and_wait();
  double sum = 0;
  for (const double part : scalars_) {
    sum += part;
  }
  barrier_.arrive_and_wait();
  return sum;
}

}  // namespace domicile::models

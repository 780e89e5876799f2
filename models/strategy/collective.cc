#include "models/strategy/collective.h"

#include <algorithm>
#include <array>

namespace domicile::models {
namespace {

// What is summed at a time: small enough to stay in the nearest cache.
constexpr std::size_t kBlock = 1024;

// Elements [first, first + count) of every buffer become the sum over all, in their order.
void AddUpBlock(std::span<const std::span<float>> buffers, std::size_t first, std::size_t count) {
  std::array<double, kBlock> sums{};
  for (const std::span<float> buffer : buffers) {
    const float* const values = buffer.data() + first;
    for (std::size_t i = 0; i < count; ++i) {
      sums[i] += static_cast<double>(values[i]);
    }
  }
  for (const std::span<float> buffer : buffers) {
    float* const values = buffer.data() + first;
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(sums[i]);
    }
  }
}

}  // namespace

bool Rendezvous::ArriveAndWait(std::size_t rank) {
  if (broken_.load()) {
    return false;
  }
  const std::uint32_t generation = generation_.load();
  if (num_arrived_.fetch_add(1) + 1 == waiting_.size()) {
    // Before the generation: whoever sees the new one may arrive again at once.
    num_arrived_.store(0);
    generation_.fetch_add(1);
    generation_.notify_all();
    return !broken_.load();
  }
  waiting_[rank].store(true);
  while (generation_.load() == generation && !broken_.load()) {
    generation_.wait(generation);
  }
  waiting_[rank].store(false);
  return !broken_.load();
}

void Rendezvous::Break() {
  broken_.store(true);
  // Another value, so that a thread about to wait for the old one does not.
  generation_.fetch_add(1);
  generation_.notify_all();
}

Status SharedMemoryCollective::Meet(std::size_t rank) {
  return rendezvous_.ArriveAndWait(rank)
             ? OkStatus()
             : Error(StatusCode::kUnavailable, "another replica has not answered");
}

Status SharedMemoryCollective::AllReduceSum(std::size_t rank, std::span<float> values) {
  const std::size_t ranks = buffers_.size();
  buffers_[rank] = values;
  RETURN_IF_ERROR(Meet(rank));

  DOMICILE_CHECK(buffers_[0].size() == values.size());
  const std::size_t last = (rank + 1) * values.size() / ranks;
  for (std::size_t first = rank * values.size() / ranks; first < last; first += kBlock) {
    AddUpBlock(buffers_, first, std::min(kBlock, last - first));
  }
  // No rank may go on, and change its buffer, before every slice has been written to all.
  return Meet(rank);
}

}  // namespace domicile::models

#include "models/strategy/collective.h"

#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "models/strategy/testing.h"

namespace domicile::models {
namespace {

TEST_CASE("SharedMemoryCollective: every rank gets the sum in rank order") {
  constexpr std::size_t kRanks = 4;
  SharedMemoryCollective collective(kRanks);
  std::vector<std::vector<float>> buffers(kRanks, std::vector<float>(5001));
  std::vector<float> want(5001);
  for (std::size_t i = 0; i < want.size(); ++i) {
    double sum = 0;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      buffers[rank][i] = static_cast<float>(i + 1) / static_cast<float>(3 * rank + 7);
      sum += static_cast<double>(buffers[rank][i]);
    }
    want[i] = static_cast<float>(sum);
  }
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] { CHECK(collective.AllReduceSum(rank, buffers[rank]).ok()); });
    }
  }
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    CHECK(SameBits(buffers[rank], want));
  }
}

TEST_CASE("SharedMemoryCollective: what overflows at one rank is seen by all") {
  SharedMemoryCollective collective(2);
  std::vector<std::vector<float>> buffers = {{1, std::numeric_limits<float>::infinity(), 3},
                                             {2, -std::numeric_limits<float>::infinity(), 3}};
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] { CHECK(collective.AllReduceSum(rank, buffers[rank]).ok()); });
    }
  }
  for (const auto& buffer : buffers) {
    CHECK(buffer[0] == 3);
    CHECK_FALSE(std::isfinite(buffer[1]));
    CHECK(buffer[2] == 6);
  }
}

TEST_CASE("SharedMemoryCollective: an abort ends who waits, and every later call") {
  SharedMemoryCollective collective(3);
  std::vector<std::vector<float>> values(3, std::vector<float>(10));
  {
    // Two of three come; the third never will.
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&collective, &values, rank] {
        CHECK(collective.AllReduceSum(rank, values[rank]).code() == StatusCode::kUnavailable);
      });
    }
    while (!collective.IsWaiting(0) || !collective.IsWaiting(1)) {
      std::this_thread::yield();
    }
    CHECK_FALSE(collective.IsWaiting(2));
    collective.Abort();
  }
  CHECK(collective.AllReduceSum(2, values[2]).code() == StatusCode::kUnavailable);
}

}  // namespace
}  // namespace domicile::models

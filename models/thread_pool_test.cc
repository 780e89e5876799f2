#include "models/thread_pool.h"

#include <atomic>
#include <set>
#include <vector>

#include <doctest/doctest.h>

namespace domicile::models {
namespace {

TEST_CASE("ThreadPool: each piece runs exactly once, whatever the numbers") {
  for (const std::size_t threads : {1U, 2U, 3U, 5U}) {
    ThreadPool pool(threads);
    CHECK(pool.NumThreads() == threads);
    for (const std::size_t pieces : {0U, 1U, 2U, 4U, 7U, 100U}) {
      CAPTURE(threads);
      CAPTURE(pieces);
      std::vector<std::atomic<int>> counts(pieces);

      pool.Run(pieces, [&](std::size_t piece) { ++counts[piece]; });

      for (const std::atomic<int>& count : counts) {
        CHECK(count == 1);
      }
    }
  }
}

TEST_CASE("ThreadPool: what pieces wrote is visible after Run, many times over") {
  ThreadPool pool(3);
  std::vector<int> values(64, 0);

  for (int round = 1; round <= 500; ++round) {
    pool.Run(values.size(), [&](std::size_t piece) { values[piece] += 1; });
  }

  CHECK(std::set<int>(values.begin(), values.end()) == std::set<int>{500});
}

TEST_CASE("ThreadPool: one that was never used can be destroyed") {
  for (int i = 0; i < 50; ++i) {
    const ThreadPool pool(4);
    CHECK(pool.NumThreads() == 4);
  }
}

}  // namespace
}  // namespace domicile::models

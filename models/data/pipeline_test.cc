#include "models/data/pipeline.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "models/data/feed.h"

namespace domicile::models {
namespace {

template <typename T>
std::vector<T> Drain(Stage<T>& stage) {
  std::vector<T> all;
  for (std::optional<T> element = stage.Next(); element; element = stage.Next()) {
    all.push_back(std::move(*element));
  }
  return all;
}

using Indices = std::vector<std::size_t>;

Indices Iota(std::size_t size) {
  Indices all(size);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

TEST_CASE("Pipeline: shards are disjoint and together everything") {
  Indices together;
  for (std::size_t index = 0; index < 3; ++index) {
    auto shard = Shard(Range(10), 3, index);
    const Indices part = Drain(*shard);
    CHECK(part.front() == index);
    together.insert(together.end(), part.begin(), part.end());
    shard->Restart(1);
    CHECK(Drain(*shard) == part);
  }
  std::sort(together.begin(), together.end());
  CHECK(together == Iota(10));
}

TEST_CASE("Pipeline: a cache reads below once, also when an epoch is cut short") {
  std::atomic<int> reads = 0;
  auto cached = Cache(Map<std::size_t, std::size_t>(
      Range(6),
      [&reads](const std::size_t& i) {
        ++reads;
        return i * i;
      },
      1));

  CHECK(cached->Next() == 0U);
  CHECK(cached->Next() == 1U);
  cached->Restart(1);
  CHECK(Drain(*cached) == Indices{0, 1, 4, 9, 16, 25});
  cached->Restart(2);
  CHECK(Drain(*cached) == Indices{0, 1, 4, 9, 16, 25});

  CHECK(reads == 6);
}

TEST_CASE("Pipeline: a parallel map keeps the order for any number of threads") {
  for (const std::size_t threads : {1U, 2U, 4U}) {
    auto mapped = Map<std::size_t, std::size_t>(
        Range(23), [](const std::size_t& i) { return i + 100; }, threads);
    const Indices all = Drain(*mapped);
    REQUIRE(all.size() == 23);
    CHECK(all.front() == 100);
    CHECK(std::is_sorted(all.begin(), all.end()));
    CHECK_FALSE(mapped->Next().has_value());
  }
}

TEST_CASE("Pipeline: a shuffle is a permutation from seed and epoch") {
  const auto order = [](std::uint64_t seed, std::uint64_t epoch, std::size_t window) {
    auto shuffled = Shuffle(Range(50), seed, window);
    shuffled->Restart(epoch);
    return Drain(*shuffled);
  };

  CHECK(order(1, 0, 50) == order(1, 0, 50));
  CHECK(order(1, 0, 50) != order(1, 1, 50));
  CHECK(order(1, 0, 50) != order(2, 0, 50));
  CHECK(order(1, 0, 1) == Iota(50));
  for (const std::size_t window : {7U, 50U, 500U}) {
    Indices sorted = order(3, 2, window);
    CHECK(sorted != Iota(50));
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted == Iota(50));
  }
}

TEST_CASE("Pipeline: a new stage stands where Restart(0) puts it") {
  auto fresh = Shuffle(Range(30), 8, 30);
  auto restarted = Shuffle(Range(30), 8, 30);
  restarted->Restart(0);

  CHECK(Drain(*fresh) == Drain(*restarted));
}

TEST_CASE("Pipeline: the last short batch is kept or dropped as asked") {
  const auto sizes = [](std::size_t rows, LastBatch last) {
    auto batches = Batch(Range(rows), 32, last);
    Indices out;
    for (const Indices& batch : Drain(*batches)) {
      out.push_back(batch.size());
    }
    return out;
  };
  CHECK(sizes(64, LastBatch::kKeep) == Indices{32, 32});
  CHECK(sizes(65, LastBatch::kKeep) == Indices{32, 32, 1});
  CHECK(sizes(65, LastBatch::kDrop) == Indices{32, 32});
  CHECK(sizes(3, LastBatch::kKeep) == Indices{3});
  CHECK(sizes(3, LastBatch::kDrop).empty());
}

TEST_CASE("Pipeline: repeat goes on in a new epoch, and ends only if there is nothing") {
  auto repeated = Repeat(Shuffle(Range(5), 4, 5));
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::set<std::size_t> seen;
    for (int i = 0; i < 5; ++i) {
      seen.insert(repeated->Next().value());
    }
    CHECK(seen.size() == 5);
  }
  CHECK_FALSE(Repeat(Range(0))->Next().has_value());
}

TEST_CASE("Pipeline: a feed gives what is below, restarts, and may be dropped half way") {
  const SystemClock clock;
  auto stage = Feed<Indices, Indices>(
      Batch(Range(100), 7, LastBatch::kKeep), [](const Indices& batch) { return batch; },
      [](const Indices& batch) { return std::uint64_t{batch.size()}; }, clock);
  CHECK(stage->Next().value() == Indices{0, 1, 2, 3, 4, 5, 6});

  stage->Restart(1);
  Indices all;
  for (const Indices& batch : Drain(*stage)) {
    all.insert(all.end(), batch.begin(), batch.end());
  }
  CHECK(all == Iota(100));
  CHECK_FALSE(stage->Next().has_value());

  stage->Restart(2);
  CHECK(stage->Next().has_value());
}

}  // namespace
}  // namespace domicile::models

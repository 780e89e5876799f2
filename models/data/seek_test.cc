// A pipeline is put where another one stood, and goes on as that one does.
#include <atomic>
#include <filesystem>
#include <limits>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/clock.h"
#include "models/data/disk_cache.h"
#include "models/data/feed.h"
#include "models/data/pipeline.h"

namespace domicile::models {
namespace {

using Indices = std::vector<std::size_t>;

template <typename T>
std::vector<T> Take(Stage<T>& stage, std::size_t count) {
  std::vector<T> taken;
  for (std::size_t i = 0; i < count; ++i) {
    std::optional<T> element = stage.Next();
    if (!element) {
      break;
    }
    taken.push_back(std::move(*element));
  }
  return taken;
}

const SystemClock kClock;
const Codec<std::size_t> kCodec = {
    .print = [](const std::size_t& i, Bytes& out) { AppendU64(out, i); },
    .parse = [](ByteSpan bytes) { return static_cast<std::size_t>(ReadU64(bytes)); }};

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

struct Shape {
  std::size_t rows = 0;
  std::size_t shards = 1;
  std::size_t shard = 0;
  std::size_t window = 1;
  std::size_t batch = 1;
  LastBatch last = LastBatch::kKeep;
  bool shuffle_first = false;  // before the map, else after it
  int cache = 0;               // 0: none, 1: in memory, 2: on disk
  std::uint64_t cache_bytes = 0;
  bool feed = false;
  bool repeat = false;
};

Shape DrawShape() {
  Shape shape;
  shape.rows = *rc::gen::inRange<std::size_t>(0, 60);
  shape.shards = *rc::gen::inRange<std::size_t>(1, 4);
  shape.shard = *rc::gen::inRange<std::size_t>(0, shape.shards);
  shape.window = *rc::gen::inRange<std::size_t>(1, 80);
  shape.batch = *rc::gen::inRange<std::size_t>(1, 9);
  shape.last = *rc::gen::element(LastBatch::kKeep, LastBatch::kDrop);
  shape.shuffle_first = *rc::gen::arbitrary<bool>();
  shape.cache = *rc::gen::inRange(0, 3);
  shape.cache_bytes = *rc::gen::inRange<std::uint64_t>(0, 300);
  shape.feed = *rc::gen::inRange(0, 6) == 0;  // threads make it the slowest
  shape.repeat = *rc::gen::arbitrary<bool>();
  return shape;
}

StagePtr<Indices> Build(const Shape& shape) {
  StagePtr<std::size_t> stage = Shard(Range(shape.rows), shape.shards, shape.shard);
  const std::function<std::size_t(const std::size_t&)> triple = [](const std::size_t& i) {
    return 3 * i;
  };
  if (shape.shuffle_first) {
    stage = Shuffle(std::move(stage), 7, shape.window);
  }
  stage = Map(std::move(stage), triple, 2);
  if (!shape.shuffle_first) {  // a cache above a shuffle would freeze its order
    if (shape.cache == 1) {
      stage = Cache(std::move(stage));
    } else if (shape.cache == 2) {
      stage = CacheOnDisk(std::move(stage), std::filesystem::temp_directory_path(),
                          shape.cache_bytes, kCodec)
                  .value();
    }
  }
  if (!shape.shuffle_first) {
    stage = Shuffle(std::move(stage), 7, shape.window);
  }
  StagePtr<Indices> batches = Batch(std::move(stage), shape.batch, shape.last);
  if (shape.repeat) {
    batches = Repeat(std::move(batches));
  }
  if (shape.feed) {
    const std::function<Indices(const Indices&)> same = [](const Indices& indices) {
      return indices;
    };
    const std::function<std::uint64_t(const Indices&)> bytes = [](const Indices& indices) {
      return indices.size() * sizeof(std::size_t);
    };
    batches = Feed(std::move(batches), same, bytes, kClock,
                   {.limits = {.max_threads = 3}, .first = {.threads = 2}, .tune_every = 4});
  }
  return batches;
}

TEST_CASE("Seek: what follows is what would have followed, in any pipeline and at any place") {
  CHECK(rc::check([] {
    const Shape shape = DrawShape();
    const auto epoch = *rc::gen::inRange<std::uint64_t>(0, 4);
    const auto place = *rc::gen::inRange<std::size_t>(0, 70);
    const auto straight = Build(shape);
    straight->Restart(epoch);
    const std::size_t there = Take(*straight, place).size();

    const auto sought = Build(shape);
    Take(*sought, 3);  // wherever it was before
    RC_ASSERT(Seek(*sought, {.epoch = epoch, .elements = there}));
    RC_ASSERT(Take(*sought, 40) == Take(*straight, 40));

    // From the middle, too.
    RC_ASSERT(sought->Skip(5) == Take(*straight, 5).size());
    RC_ASSERT(Take(*sought, 10) == Take(*straight, 10));
    sought->Restart(epoch + 1);
    straight->Restart(epoch + 1);
    RC_ASSERT(Take(*sought, 40) == Take(*straight, 40));
  }));
}

TEST_CASE("Seek: beyond the end of an epoch is told, and nothing follows") {
  auto batches = Batch(Shuffle(Range(10), 1, 10), 4, LastBatch::kKeep);
  CHECK(Seek(*batches, {.epoch = 2, .elements = 3}));
  CHECK_FALSE(batches->Next().has_value());
  CHECK_FALSE(Seek(*batches, {.epoch = 2, .elements = 4}));
  CHECK_FALSE(batches->Next().has_value());
  CHECK(Repeat(Range(0))->Skip(5) == 0);
  CHECK(Range(3)->Skip(kAll) == 3);
}

TEST_CASE("Seek: what is passed over is not read") {
  std::atomic<int> reads = 0;
  const std::function<std::size_t(const std::size_t&)> read = [&reads](const std::size_t& i) {
    ++reads;
    return i;
  };
  // The indices are shuffled, and then the rows read.
  auto rows = Map(Shuffle(Range(1000), 5, 1000), read, 1);
  REQUIRE(Seek(*rows, {.epoch = 3, .elements = 990}));
  CHECK(reads == 0);
  CHECK(Take(*rows, kAll).size() == 10);
  CHECK(reads == 10);

  // The rows are read and then shuffled in a window: only what is left in it is read again.
  reads = 0;
  auto windowed = Shuffle(Map(Range(1000), read, 1), 5, 20);
  REQUIRE(Seek(*windowed, {.epoch = 3, .elements = 900}));
  CHECK(reads == 19);
}

TEST_CASE("Seek: through a feed, whatever it holds ready") {
  const auto build = [] { return Batch(Shuffle(Range(100), 2, 100), 3, LastBatch::kKeep); };
  const auto straight = build();
  const auto fed = Feed<Indices, Indices>(
      build(), [](const Indices& batch) { return batch; },
      [](const Indices& batch) { return std::uint64_t{batch.size()}; }, kClock);

  REQUIRE(Seek(*fed, {.epoch = 1, .elements = 7}));
  REQUIRE(Seek(*straight, {.epoch = 1, .elements = 7}));
  CHECK(Take(*fed, 4) == Take(*straight, 4));
  CHECK(fed->Skip(2) == straight->Skip(2));
  CHECK(Take(*fed, kAll) == Take(*straight, kAll));
  CHECK(fed->Skip(1) == 0);
}

}  // namespace
}  // namespace domicile::models

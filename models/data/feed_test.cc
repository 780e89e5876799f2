#include "models/data/feed.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "models/data/pipeline.h"

namespace domicile::models {
namespace {

using std::chrono::milliseconds;

TEST_CASE("Tune: threads follow the work, depth follows the waiting, memory bounds both") {
  const PipelineLimits wide = {.max_threads = 8, .max_depth = 64, .memory_bytes = 1'000'000};
  const auto measure = [](int elapsed, int waited, int taken, int making, int made,
                          std::uint64_t bytes) {
    return PipelineMeasure{.elapsed = milliseconds(elapsed),
                           .waited = milliseconds(waited),
                           .taken = static_cast<std::uint64_t>(taken),
                           .making = milliseconds(making),
                           .made = static_cast<std::uint64_t>(made),
                           .largest_bytes = bytes};
  };
  const struct {
    const char* name;
    PipelineTuning now;
    PipelineMeasure measure;
    PipelineLimits limits;
    PipelineTuning want;
  } cases[] = {
      {"nothing measured", {3, 5}, {}, wide, {3, 5}},
      {"nothing made", {3, 5}, measure(100, 50, 10, 0, 0, 0), wide, {3, 5}},
      {"fast enough", {1, 4}, measure(1000, 0, 10, 500, 10, 10), wide, {1, 4}},
      // 100 ms of work an element, 50 ms of use: 2.2 threads.
      {"too slow", {1, 2}, measure(1000, 500, 10, 1000, 10, 10), wide, {3, 4}},
      {"far too slow", {1, 2}, measure(1000, 990, 10, 1000, 10, 10), wide, {8, 8}},
      {"no use at all", {1, 2}, measure(1000, 1000, 10, 1000, 10, 10), wide, {8, 8}},
      {"never more than allowed",
       {1, 2},
       measure(1000, 990, 10, 1000, 10, 10),
       {.max_threads = 2, .max_depth = 3},
       {2, 3}},
      {"one thread fewer at most", {6, 8}, measure(1000, 0, 10, 10, 10, 10), wide, {5, 8}},
      {"waits a little", {1, 4}, measure(1000, 9, 10, 100, 10, 10), wide, {1, 4}},
      {"jitter", {1, 4}, measure(1000, 11, 10, 100, 10, 10), wide, {1, 8}},
      {"memory for five", {1, 4}, measure(1000, 100, 10, 100, 10, 200'000), wide, {1, 5}},
      {"memory takes back", {4, 8}, measure(1000, 0, 10, 4000, 10, 500'000), wide, {2, 2}},
      {"one is always allowed", {1, 2}, measure(1000, 0, 10, 10, 10, 9'000'000), wide, {1, 1}},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    CHECK(Tune(c.now, c.measure, c.limits) == c.want);
  }
}

std::vector<std::size_t> Drain(Stage<std::size_t>& stage) {
  std::vector<std::size_t> all;
  while (const std::optional<std::size_t> element = stage.Next()) {
    all.push_back(*element);
  }
  return all;
}

const std::function<std::uint64_t(const std::size_t&)> kTen = [](const std::size_t&) {
  return std::uint64_t{10};
};

TEST_CASE("Feed: the order is that of the source, however many threads and while they change") {
  const SystemClock clock;
  std::vector<std::size_t> want(200);
  std::iota(want.begin(), want.end(), std::size_t{1000});
  // Some elements take longer than others.
  const std::function<std::size_t(const std::size_t&)> make = [](const std::size_t& i) {
    for (std::size_t turn = 0; turn < i % 7; ++turn) {
      std::this_thread::yield();
    }
    return i + 1000;
  };
  for (const std::size_t threads : {1U, 2U, 5U}) {
    for (const std::size_t tune_every : {0U, 1U, 8U}) {
      auto feed = Feed(Range(200), make, kTen, clock,
                       {.limits = {.max_threads = threads, .max_depth = 9},
                        .first = {.threads = threads, .depth = threads},
                        .tune_every = tune_every});
      CHECK(Drain(*feed) == want);
      CHECK_FALSE(feed->Next().has_value());
      feed->Restart(1);
      CHECK(feed->Next() == want[0]);  // and dropped half way, next time round
      feed->Restart(2);
      CHECK(feed->Skip(150) == 150);
      CHECK(feed->Next() == want[150]);
      CHECK(feed->Skip(kTen(0) + 100) == 49);
      CHECK_FALSE(feed->Next().has_value());
      CHECK(feed->Report().elements == 202);
      CHECK(feed->Report().StallShare() <= 1);
    }
  }
}

TEST_CASE("Feed: holds no more than its memory allows") {
  const SystemClock clock;
  for (const std::uint64_t memory : {35U, 100'000U}) {
    const std::size_t allowed = memory == 35 ? 3 : 16;
    std::atomic<std::size_t> made = 0;
    const std::function<std::size_t(const std::size_t&)> make = [&made](const std::size_t& i) {
      ++made;
      return i;
    };
    auto feed = Feed(Range(100), make, kTen, clock,
                     {.limits = {.max_depth = 16, .memory_bytes = memory}, .first = {.depth = 16}});
    std::size_t most = 0;
    for (std::size_t taken = 0; taken < 100; ++taken) {
      while (made < std::min<std::size_t>(100, taken + allowed)) {  // as far ahead as it goes
        std::this_thread::yield();
      }
      most = std::max(most, made - taken);
      REQUIRE(feed->Next() == taken);
    }
    CHECK(most == allowed);
  }
}

// Time passes only while the consumer waits for the element that is being made.
class WaitingClock final : public Clock {
 public:
  WallTime Now() const override { return {}; }
  MonotonicTime Monotonic() const override {
    const MonotonicTime now(std::chrono::nanoseconds(ticks_.load()));
    if (std::this_thread::get_id() == consumer_) {
      ++reads_;
      reads_.notify_all();
    }
    return now;
  }
  // Next reads the clock twice.
  void PassWhileWaitingFor(std::size_t element) {
    for (std::size_t reads = reads_; reads < 2 * element + 1; reads = reads_) {
      reads_.wait(reads);
    }
    ticks_ += 1000;
  }

 private:
  std::thread::id consumer_ = std::this_thread::get_id();
  std::atomic<std::int64_t> ticks_ = 0;
  mutable std::atomic<std::size_t> reads_ = 0;
};

TEST_CASE("Feed: waiting is measured, and answered with threads and depth") {
  WaitingClock clock;
  const std::function<std::size_t(const std::size_t&)> make = [&clock](const std::size_t& i) {
    clock.PassWhileWaitingFor(i);
    return i;
  };
  auto feed = Feed(Range(30), make, kTen, clock,
                   {.limits = {.max_threads = 4}, .first = {.depth = 1}, .tune_every = 10});
  for (std::size_t i = 0; i < 9; ++i) {
    REQUIRE(feed->Next() == i);
  }
  CHECK(feed->Report().tuning == PipelineTuning{.threads = 1, .depth = 1});
  CHECK(feed->Report().StallShare() == 1.0);
  CHECK(feed->Report().waited.count() == 9000);

  REQUIRE(feed->Next() == 9U);

  CHECK(feed->Report().tuning == PipelineTuning{.threads = 4, .depth = 4});
  CHECK(Drain(*feed).size() == 20);
}

}  // namespace
}  // namespace domicile::models

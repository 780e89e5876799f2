#include "updates/exact_sum.h"

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"

namespace domicile::updates {
namespace {

__extension__ using Int128 = __int128;

// Updates of random levels on one grid, in both forms.
struct Update {
  std::vector<std::int64_t> levels;
  Bytes bytes;
  std::int64_t weight = 1;
};

std::vector<Update> RandomUpdates(const GridPlan& plan, std::size_t sites, std::size_t count,
                                  std::uint64_t seed) {
  SeededRandom random(seed);
  std::vector<Update> updates(sites);
  for (Update& update : updates) {
    std::vector<float> values(count);
    for (float& value : values) {
      const auto level = static_cast<std::int64_t>(
          random.Below(2 * static_cast<std::uint64_t>(plan.MaxLevel()) + 1));
      value = static_cast<float>(static_cast<double>(level - plan.MaxLevel()) * plan.Step());
    }
    REQUIRE(RoundToGrid(plan, values).ok());
    update.bytes = EncodeF32(values);
    update.levels = *DecodeLevels(plan, Encoding::kF32, update.bytes);
    update.weight =
        1 + static_cast<std::int64_t>(random.Below(static_cast<std::uint64_t>(plan.MaxWeight())));
  }
  return updates;
}

std::vector<std::int64_t> Oracle(const std::vector<Update>& updates) {
  std::vector<std::int64_t> sum(updates.front().levels.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    Int128 total = 0;
    for (const Update& update : updates) {
      total += Int128{update.weight} * update.levels[i];
    }
    sum[i] = static_cast<std::int64_t>(total);
  }
  return sum;
}

GridFloats Checked(const GridPlan& plan, const Update& update) {
  return *GridFloats::Check(plan, update.bytes);
}

// Small products convert as they are, large ones by way of the level: grids on both sides, and one
// where weights decide.
std::vector<GridPlan> Plans() {
  return {*GridPlan::Create(8, 1000, 50, 20),
          *GridPlan::Create(32, std::int64_t{1} << 33U, 1000000, 20),
          *GridPlan::Create(40, std::int64_t{1} << 50U, 200, 20)};
}

TEST_CASE("Fold: any order, pairing, split and number of threads gives the same bits") {
  constexpr std::size_t kCount = 1003;
  std::uint64_t seed = 0;
  for (const GridPlan& plan : Plans()) {
    CAPTURE(plan.MaxLevel());
    std::vector<Update> updates = RandomUpdates(plan, 9, kCount, ++seed);
    const std::vector<std::int64_t> want = Oracle(updates);
    SeededRandom random(seed);
    for (int repeat = 0; repeat < 20; ++repeat) {
      for (std::size_t i = updates.size() - 1; i > 0; --i) {
        std::swap(updates[i], updates[random.Below(i + 1)]);
      }
      ExactSum sum(plan, kCount);
      for (std::size_t i = 0; i < updates.size();) {
        if (i + 1 < updates.size() && random.Below(2) == 0) {
          REQUIRE(sum.AddTwo(Checked(plan, updates[i]), updates[i].weight,
                             Checked(plan, updates[i + 1]), updates[i + 1].weight)
                      .ok());
          i += 2;
        } else if (random.Below(2) == 0) {
          REQUIRE(sum.AddLevels(updates[i].levels, updates[i].weight).ok());
          ++i;
        } else {
          REQUIRE(sum.Add(Checked(plan, updates[i]), updates[i].weight).ok());
          ++i;
        }
      }
      REQUIRE(std::equal(want.begin(), want.end(), sum.Levels().begin()));
      CHECK(sum.Contributors() == 9);
    }

    std::vector<std::int64_t> split(kCount, 0);
    const std::size_t cut = 1 + random.Below(kCount - 1);
    const auto fold_range = [&](std::size_t first, std::size_t count) {
      for (const Update& update : updates) {
        const Status status = Fold(plan, Checked(plan, update).Slice(first, count), update.weight,
                                   std::span<std::int64_t>(split).subspan(first, count));
        DOMICILE_CHECK(status.ok());
      }
    };
    std::jthread other([&] { fold_range(cut, kCount - cut); });
    fold_range(0, cut);
    other.join();
    CHECK(split == want);
  }
}

TEST_CASE("Fold: the largest sum that a plan allows is exact, and so is the smallest") {
  // 2^50 * 2^10 * 3 < 2^62: the greatest float level, in the path for large products.
  const GridPlan plan = *GridPlan::Create(48, kLargestFloatLevel, 1024, 3);
  std::vector<float> values = {4.0F, -4.0F, 0.0F};
  const Bytes bytes = EncodeF32(values);
  ExactSum sum(plan, 3);
  for (int site = 0; site < 3; ++site) {
    REQUIRE(sum.Add(*GridFloats::Check(plan, bytes), 1024).ok());
  }
  constexpr std::int64_t kMost = 3 * (std::int64_t{1} << 60U);
  CHECK(sum.Levels()[0] == kMost);
  CHECK(sum.Levels()[1] == -kMost);
  CHECK(sum.Levels()[2] == 0);
  CHECK(sum.TotalWeight() == 3072);
}

TEST_CASE("Fold: products around 2^51, where the conversion changes, are exact") {
  for (const std::int64_t weight : {(1 << 19) - 1, 1 << 19, (1 << 19) + 1}) {
    CAPTURE(weight);
    const GridPlan plan = *GridPlan::Create(32, std::int64_t{1} << 32U, 1 << 20, 2);
    const std::vector<float> values = {1.0F, -1.0F, 0x1.fffffep-1F, -0x1p-32F};
    const Bytes bytes = EncodeF32(values);
    std::array<std::int64_t, 4> sum = {7, 7, 7, 7};
    REQUIRE(Fold(plan, *GridFloats::Check(plan, bytes), weight, sum).ok());
    CHECK(sum[0] == 7 + weight * (std::int64_t{1} << 32U));
    CHECK(sum[1] == 7 - weight * (std::int64_t{1} << 32U));
    CHECK(sum[2] == 7 + weight * ((std::int64_t{1} << 32U) - 256));
    CHECK(sum[3] == 7 - weight);
  }
}

TEST_CASE("Fold: an update that does not fit is an error and leaves the sum alone") {
  const GridPlan plan = *GridPlan::Create(0, 100, 10, 4);
  const GridPlan other = *GridPlan::Create(0, 100, 11, 4);
  const Bytes bytes = EncodeF32(std::array<float, 2>{1, 2});
  const GridFloats floats = *GridFloats::Check(plan, bytes);
  std::array<std::int64_t, 2> sum = {7, 8};
  std::array<std::int64_t, 3> longer = {};

  CHECK(Fold(plan, floats, 0, sum).code() == StatusCode::kInvalidArgument);
  CHECK(Fold(plan, floats, 11, sum).code() == StatusCode::kInvalidArgument);
  CHECK(Fold(plan, floats, -1, sum).code() == StatusCode::kInvalidArgument);
  CHECK(Fold(other, floats, 1, sum).code() == StatusCode::kInvalidArgument);
  CHECK(Fold(plan, floats, 1, longer).code() == StatusCode::kInvalidArgument);
  CHECK(FoldTwo(plan, floats, 1, floats, 0, sum).code() == StatusCode::kInvalidArgument);
  const Status status = FoldLevels(plan, std::array<std::int64_t, 2>{100, 101}, 1, sum);
  CHECK(status.code() == StatusCode::kOutOfRange);
  CHECK(Message(status) == "number 1 is beyond the grid's largest level");
  CHECK(sum == std::array<std::int64_t, 2>{7, 8});
}

TEST_CASE("ExactSum: takes no more contributors than the plan proved") {
  const GridPlan plan = *GridPlan::Create(0, 100, 10, 3);
  const Bytes bytes = EncodeF32(std::array<float, 1>{5});
  const GridFloats floats = *GridFloats::Check(plan, bytes);
  ExactSum sum(plan, 1);
  REQUIRE(sum.AddTwo(floats, 1, floats, 2).ok());
  CHECK(sum.AddTwo(floats, 1, floats, 1).code() == StatusCode::kResourceExhausted);
  CHECK_FALSE(sum.Add(floats, 11).ok());
  CHECK(sum.Contributors() == 2);
  REQUIRE(sum.Add(floats, 10).ok());
  CHECK(sum.Add(floats, 1).code() == StatusCode::kResourceExhausted);
  CHECK(sum.Levels()[0] == 65);
  CHECK(sum.TotalWeight() == 13);
}

}  // namespace
}  // namespace domicile::updates

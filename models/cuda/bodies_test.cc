// The bodies of kernels that teams share, run by teams of several threads; and how work is cut.
#include <barrier>
#include <cmath>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "models/cuda/cuda_device.h"
#include "models/cuda/image_bodies.h"
#include "models/cuda/launch.h"
#include "models/cuda/product.h"
#include "models/cuda/row_bodies.h"
#include "models/cuda/sum_bodies.h"
#include "models/layers/conv2d.h"
#include "models/layers/testing.h"

namespace domicile::models::cuda {
namespace {

struct Shared {
  explicit Shared(std::size_t size) : barrier(static_cast<std::ptrdiff_t>(size)), values(size) {}
  std::barrier<> barrier;
  std::vector<double> values;
};

// As a block of a GPU: its threads run the same body at once and meet in each sum.
class ThreadOfTeam {
 public:
  ThreadOfTeam(Shared& shared, std::size_t rank) : shared_(&shared), rank_(rank) {}

  std::size_t Rank() const { return rank_; }
  std::size_t Size() const { return shared_->values.size(); }
  double Sum(double value) {
    return Meet(value, [](double a, double b) { return a + b; });
  }
  float Max(float value) {
    return static_cast<float>(
        Meet(static_cast<double>(value), [](double a, double b) { return a < b ? b : a; }));
  }

 private:
  template <typename Join>
  double Meet(double value, const Join& join) {
    shared_->values[rank_] = value;
    shared_->barrier.arrive_and_wait();
    double joined = shared_->values[0];
    for (std::size_t i = 1; i < Size(); ++i) {
      joined = join(joined, shared_->values[i]);
    }
    shared_->barrier.arrive_and_wait();
    return joined;
  }

  Shared* shared_;
  std::size_t rank_;
};

template <typename Body>
void RunTeams(std::size_t team_size, std::size_t count, const Body& body) {
  Shared shared(team_size);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < team_size; ++rank) {
    threads.emplace_back([&shared, rank, count, &body] {
      ThreadOfTeam team(shared, rank);
      for (std::size_t index = 0; index < count; ++index) {
        body(team, index);
      }
    });
  }
}

void CheckNear(std::span<const float> got, std::span<const float> want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(got[i] - want[i]) <= 1e-5F * std::max(1.0F, std::fabs(want[i])));
  }
}

// run(team_size) gives all that a body computed.
template <typename Run>
void SameForAllTeams(const Run& run) {
  const std::vector<float> want = run(1);
  for (const std::size_t size : {std::size_t{2}, std::size_t{5}, std::size_t{32}}) {
    CAPTURE(size);
    const std::vector<float> got = run(size);
    CheckNear(got, want);
    CHECK(run(size) == got);  // and the same bits each time
  }
}

TEST_CASE("Bodies: norms of a team are those of one thread") {
  const NormShape shape = {.groups = 2, .channels = 6, .positions = 11};
  const std::size_t rows = 3;
  const std::size_t size = rows * shape.channels * shape.positions;
  const std::vector<float> x = TestNumbers(1, size, 2);
  const std::vector<float> dy = TestNumbers(2, size, 1);
  const std::vector<float> scale = TestNumbers(3, shape.channels, 1);
  const std::vector<float> shift = TestNumbers(4, shape.channels, 1);
  SameForAllTeams([&](std::size_t team) {
    std::vector<float> all(2 * size + 2 * rows * shape.groups);
    float* const y = all.data();
    float* const dx = y + size;
    float* const statistics = dx + size;
    RunTeams(team, rows * shape.groups,
             GroupNorm{shape, x.data(), scale.data(), shift.data(), y, statistics});
    std::copy(dy.begin(), dy.end(), dx);  // in place
    RunTeams(team, rows * shape.groups,
             GroupNormInputGradient{shape, x.data(), scale.data(), statistics, dx, dx});
    std::vector<double> sums(2 * shape.channels);
    RunTeams(team, shape.channels,
             NormSums{shape, rows, rows, x.data(), statistics, dy.data(), sums.data()});
    all.insert(all.end(), sums.begin(), sums.end());
    RunTeams(team, shape.channels,
             ChannelSums{rows, shape.channels, shape.positions, rows, x.data(), scale.data(),
                         dy.data(), shift.data(), sums.data()});
    all.insert(all.end(), sums.begin(), sums.end());
    return all;
  });
}

TEST_CASE("Bodies: attention and losses of a team are those of one thread") {
  const std::size_t length = 13;
  const std::size_t heads = 2;
  const std::size_t queries = 2 * heads * length;
  const std::vector<float> scores = TestNumbers(1, queries * length, 5);
  const std::vector<float> dy = TestNumbers(2, queries * length, 1);
  std::vector<std::uint8_t> mask(2 * length, 1);
  mask[3] = mask[4] = 0;
  const Mask dropout = MaskFor({.key = 5, .first = 7, .rate = 0.25F});
  for (const bool causal : {false, true}) {
    SameForAllTeams([&](std::size_t team) {
      std::vector<float> all = scores;
      all.resize(3 * scores.size());
      float* const weights = all.data() + scores.size();
      float* const gradient = weights + scores.size();
      std::copy(dy.begin(), dy.end(), gradient);
      RunTeams(team, queries,
               AttentionSoftmax{length, heads, causal, mask.data(), dropout, all.data(), weights});
      RunTeams(team, queries,
               AttentionSoftmaxGradient{length, true, dropout, all.data(), gradient});
      return all;
    });
  }
  const std::vector<std::uint32_t> labels = {0, 12, 5, 7};
  SameForAllTeams([&](std::size_t team) {
    std::vector<float> all(labels.size() * length);
    std::vector<double> losses(labels.size());
    RunTeams(
        team, labels.size(),
        SoftmaxCrossEntropy{scores.data(), labels.data(), length, 0.5F, losses.data(), all.data()});
    all.insert(all.end(), losses.begin(), losses.end());
    return all;
  });
}

TEST_CASE("Bodies: sums of stretches of a team are those of one thread") {
  const std::vector<float> x = TestNumbers(1, 1000, 3);
  SameForAllTeams([&](std::size_t team) {
    std::vector<double> sums(4);
    RunTeams(team, 4, SumStretch<SquareOf>{{x.data()}, x.size(), 300, sums.data()});
    std::vector<double> filters(10);
    RunTeams(team, 10, SumFilters{100, x.data(), filters.data()});
    std::vector<float> all(sums.begin(), sums.end());
    all.insert(all.end(), filters.begin(), filters.end());
    return all;
  });
}

TEST_CASE(
    "Launch: blocks cover all elements, and teams are powers of two between a warp and a block") {
  CHECK(BlocksFor(0) == 1);
  CHECK(BlocksFor(kBlock) == 1);
  CHECK(BlocksFor(kBlock + 1) == 2);
  CHECK(BlocksFor(std::size_t{1} << 40U) == kMaxBlocks);
  CHECK(TeamSize(1) == 32);
  CHECK(TeamSize(128) == 32);
  CHECK(TeamSize(129) == 64);
  CHECK(TeamSize(1U << 20U) == kBlock);
  const ConvShape shape = MakeConvShape(
      {.channels = 2, .height = 4, .width = 4, .filters = 3, .kernel = 3, .padding = 1});
  const std::size_t each = shape.patch * 16;
  CHECK(ImagesAtOnce(shape, 100, 10 * each) == 10);
  CHECK(ImagesAtOnce(shape, 5, 10 * each) == 5);
  CHECK(ImagesAtOnce(shape, 5, 1) == 1);
  CHECK(ImagesAtOnce(shape, 0, each) == 1);
}

TEST_CASE("Divide: quotients and remainders of small and of large numbers") {
  for (const std::size_t i : {std::size_t{0}, std::size_t{17}, (std::size_t{1} << 32U) - 1,
                              std::size_t{1} << 32U, (std::size_t{1} << 40U) + 3}) {
    for (const std::size_t n : {std::size_t{1}, std::size_t{5}, std::size_t{1} << 33U}) {
      CHECK(Divide(i, n).quotient == i / n);
      CHECK(Divide(i, n).remainder == i % n);
    }
  }
}

TEST_CASE("PlanScatter: rows are grouped by id, in the order of the batch") {
  const std::vector<std::uint32_t> ids = {7, 2, 7, 9, 2, 7};
  const ScatterPlan plan = PlanScatter(ids);
  CHECK(plan.targets == std::vector<std::uint32_t>{2, 7, 9});
  CHECK(plan.starts == std::vector<std::uint32_t>{0, 2, 5, 6});
  CHECK(plan.rows == std::vector<std::uint32_t>{1, 4, 0, 2, 5, 3});
}

}  // namespace
}  // namespace domicile::models::cuda

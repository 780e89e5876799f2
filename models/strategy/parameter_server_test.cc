#include "models/strategy/parameter_server.h"

#include <algorithm>
#include <latch>
#include <memory>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/mutex.h"
#include "models/cpu/cpu_device.h"
#include "models/layers/forwarding_device.h"
#include "models/strategy/parameter_servers.h"
#include "models/strategy/staleness.h"
#include "models/strategy/testing.h"

namespace domicile::models {
namespace {

// A logistic regression with 3 classes: one dense layer, convex.
const NetworkSpec kLinear = {.num_inputs = 12, .hidden = {}, .num_outputs = 3};
const OptimizerSpec kSgd = {.kind = OptimizerKind::kSgd, .learning_rate = 0.02};

StrategySpec Servers(std::size_t workers, std::uint64_t staleness) {
  return {.kind = StrategyKind::kParameterServer,
          .replicas = workers,
          .servers = 3,
          .staleness = staleness};
}

TEST_CASE("Staleness: waiting always ends, and the bound is kept in any order of events") {
  CHECK(rc::check([] {
    const auto bound = *rc::gen::inRange<std::uint64_t>(0, 6);
    const auto num_workers = *rc::gen::inRange<std::size_t>(1, 8);
    std::vector<std::uint64_t> versions;  // of those that have read
    std::vector<std::uint64_t> writing;   // let through, not yet done
    std::uint64_t granted = 0;
    std::uint64_t completed = 0;
    for (const auto choice :
         *rc::gen::container<std::vector<unsigned>>(60, rc::gen::arbitrary<unsigned>())) {
      if (versions.size() + writing.size() < num_workers &&
          MayRead(versions, completed, granted, bound)) {
        versions.push_back(completed);
      }
      RC_ASSERT(CanAllKeepBound(versions, granted, bound));
      if (!versions.empty()) {
        const auto oldest = std::min_element(versions.begin(), versions.end());
        RC_ASSERT(MayUpdate(versions, static_cast<std::size_t>(oldest - versions.begin()), granted,
                            bound));
        const std::size_t index = choice % versions.size();
        if (MayUpdate(versions, index, granted, bound)) {
          RC_ASSERT(granted - versions[index] <= bound);
          versions.erase(versions.begin() + static_cast<std::ptrdiff_t>(index));
          writing.push_back(granted++);
        }
      }
      if (!writing.empty() && choice % 3 != 0) {
        writing.pop_back();
        ++completed;
      }
    }
  }));
}

TEST_CASE("Staleness: where waiting is not needed nobody waits") {
  CHECK(MayRead({}, 0, 0, 0));
  CHECK_FALSE(MayRead({0}, 0, 0, 0));  // with a bound of 0, one at a time
  CHECK(MayRead({0}, 0, 0, 1));
  CHECK_FALSE(MayRead({}, 0, 1, 0));  // an update is let through and not yet done
  CHECK(MayUpdate({0, 0}, 1, 0, 1));
  CHECK_FALSE(MayUpdate({0, 1}, 1, 1, 1));  // the first could then no longer keep the bound
  CHECK(MayUpdate({0, 1}, 0, 1, 1));
}

TEST_CASE("ParameterServers: ranges are cut without hole or overlap, in order") {
  const std::vector<ParameterRange> ranges = {{0, 7, true}, {9, 1, false}, {20, 30, true}};
  for (std::size_t parts = 1; parts < 50; ++parts) {
    std::vector<std::size_t> elements;
    for (const auto& part : CutRanges(ranges, parts)) {
      std::size_t size = 0;
      for (const ParameterRange& range : part) {
        size += range.size;
        for (std::size_t i = 0; i < range.size; ++i) {
          elements.push_back(range.offset + i);
        }
      }
      CHECK(size <= 38 / parts + 1);
    }
    std::vector<std::size_t> want;
    for (const ParameterRange& range : ranges) {
      for (std::size_t i = 0; i < range.size; ++i) {
        want.push_back(range.offset + i);
      }
    }
    CHECK(elements == want);
  }
}

// Adds up every gradient that workers make.
struct Tally {
  Mutex mutex;
  std::vector<double> weight GUARDED_BY(mutex) = std::vector<double>(36);
  std::vector<double> bias GUARDED_BY(mutex) = std::vector<double>(3);
};

class TallyingDevice final : public ForwardingDevice {
 public:
  explicit TallyingDevice(Tally& tally) : ForwardingDevice(MakeCpuDevice(1)), tally_(&tally) {}

  void DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) override {
    ForwardingDevice::DenseWeightGradient(x, dy, dw);
    const MutexLock lock(tally_->mutex);
    for (std::size_t i = 0; i < tally_->weight.size(); ++i) {
      tally_->weight[i] += static_cast<double>(dw.data[i]);
    }
  }
  void DenseBiasGradient(ConstMatrix dy, std::span<float> db) override {
    ForwardingDevice::DenseBiasGradient(dy, db);
    const MutexLock lock(tally_->mutex);
    for (std::size_t i = 0; i < tally_->bias.size(); ++i) {
      tally_->bias[i] += static_cast<double>(db[i]);
    }
  }

 private:
  Tally* tally_;
};

TEST_CASE("Parameter server: no update is lost, and the bound is never exceeded") {
  const TestData data = MakeTestData(200, kLinear.num_inputs, 3);
  for (const std::size_t workers : {1U, 2U, 4U}) {
    for (const std::uint64_t bound : {0U, 1U, 3U, 50U}) {
      Tally tally;
      StrategySpec spec = Servers(workers, bound);
      spec.make_device = [&tally](std::size_t) -> StatusOr<std::unique_ptr<Device>> {
        return std::make_unique<TallyingDevice>(tally);
      };
      const auto strategy = MakeTestStrategy(spec, {.model = kLinear, .optimizer = kSgd});
      double loss = 0;
      for (std::size_t step = 0; step < 300; ++step) {
        loss += strategy->Step(data.View(step % 190, 10)).value();
      }
      loss += strategy->Finish().value();

      CHECK(loss > 0);
      CHECK(strategy->State().optimizer.num_steps == 300);
      CHECK(strategy->Report().greatest_staleness <= bound);
      // Plain SGD from zeros: the parameters are the sum of all gradients, or one got lost.
      const std::span<const float> parameters = strategy->Parameters();
      const MutexLock lock(tally.mutex);
      for (std::size_t i = 0; i < 36; ++i) {
        CHECK(static_cast<double>(parameters[i]) ==
              doctest::Approx(-0.02 * tally.weight[i]).epsilon(1e-4).scale(0.01));
      }
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK(static_cast<double>(parameters[36 + i]) ==
              doctest::Approx(-0.02 * tally.bias[i]).epsilon(1e-4).scale(0.01));
      }
    }
  }
}

// Its first product waits until both workers are in theirs.
class MeetingDevice final : public ForwardingDevice {
 public:
  explicit MeetingDevice(std::latch& latch) : ForwardingDevice(MakeCpuDevice(1)), latch_(&latch) {}
  void DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) override {
    if (latch_ != nullptr) {
      latch_->arrive_and_wait();
      latch_ = nullptr;
    }
    ForwardingDevice::DenseWeightGradient(x, dy, dw);
  }

 private:
  std::latch* latch_;
};

TEST_CASE("Parameter server: workers do work at the same time, and their staleness is measured") {
  const TestData data = MakeTestData(20, kLinear.num_inputs, 3);
  std::latch latch(2);
  StrategySpec spec = Servers(2, 1);
  spec.make_device = [&latch](std::size_t) -> StatusOr<std::unique_ptr<Device>> {
    return std::make_unique<MeetingDevice>(latch);
  };
  const auto strategy = MakeTestStrategy(spec, {.model = kLinear, .optimizer = kSgd});

  REQUIRE(strategy->Step(data.View(0, 10)).ok());
  REQUIRE(strategy->Step(data.View(10, 10)).ok());
  REQUIRE(strategy->Finish().ok());

  // Both had read before either wrote.
  CHECK(strategy->Report().greatest_staleness == 1);
  CHECK(strategy->Report().replicas[0].examples == 10);
  CHECK(strategy->Report().replicas[1].examples == 10);
}

TEST_CASE("Parameter server: reaches the minimum of a convex loss, whatever the staleness") {
  const TestData data = MakeTestData(60, kLinear.num_inputs, 3);
  const TrainingSpec training = {.model = kLinear, .optimizer = kSgd, .l2 = 0.1};
  // A long run on one device knows the minimum: with L2 it is the only one.
  TrainingSpec fast = training;
  fast.optimizer.learning_rate = 0.3;
  const auto best = MakeTestStrategy({}, fast);
  for (int step = 0; step < 3000; ++step) {
    REQUIRE(best->Step(data.View(0, 60)).ok());
  }
  for (const std::uint64_t bound : {0U, 2U, 8U}) {
    const auto strategy = MakeTestStrategy(Servers(4, bound), training);
    for (int step = 0; step < 6000; ++step) {
      REQUIRE(strategy->Step(data.View(0, 60)).ok());
    }
    REQUIRE(strategy->Finish().ok());
    CHECK(Distance(strategy->Parameters(), best->Parameters()) < 1e-3);
  }
}

TEST_CASE("Parameter server: a loss in between belongs to no step, and none is told twice") {
  const TestData data = MakeTestData(40, kLinear.num_inputs, 3);
  const auto strategy = MakeTestStrategy(Servers(3, 0), {.model = kLinear, .optimizer = kSgd});
  const auto one = MakeTestStrategy({}, {.model = kLinear, .optimizer = kSgd});
  double told = 0;
  double want = 0;
  for (std::size_t step = 0; step < 10; ++step) {
    told += strategy->Step(data.View(step, 20)).value();
    CHECK(strategy->Loss(data.View(0, 40)).value() > 0);
    want += one->Step(data.View(step, 20)).value();
  }
  told += strategy->Finish().value();
  CHECK(told == doctest::Approx(want).epsilon(1e-6));
  CHECK(strategy->Finish().value() == 0);
}

}  // namespace
}  // namespace domicile::models

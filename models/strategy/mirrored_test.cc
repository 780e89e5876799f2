// What `mirrored` asks of devices that add up among themselves.
#include "models/strategy/mirrored.h"

#include <barrier>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "models/cpu/cpu_device.h"
#include "models/layers/forwarding_device.h"
#include "models/strategy/buckets.h"
#include "models/strategy/testing.h"

namespace domicile::models {
namespace {

// Layers of 77,056, 65,792 and 771 parameters: the last two fill a bucket, the first another.
const NetworkSpec kWide = {
    .num_inputs = 300, .hidden = {256, 256}, .activation = Activation::kTanh, .num_outputs = 3};

struct Began {
  const float* values = nullptr;
  std::size_t size = 0;
  std::size_t products_so_far = 0;  // weight gradients in this step
};

// Written by each rank's thread in its own row.
struct Record {
  explicit Record(std::size_t ranks)
      : began(ranks), products(ranks), taken(ranks), meet(static_cast<std::ptrdiff_t>(ranks)) {}

  std::vector<std::vector<Began>> began;  // in the last step
  std::vector<std::size_t> products;
  std::vector<std::vector<std::vector<float>>> taken;  // what each held when it was begun
  std::barrier<> meet;
};

// Adds up, in rank order, what values held at Begin: what was not final then is lost.
class RecordingSum final : public DeviceSum {
 public:
  explicit RecordingSum(std::shared_ptr<Record> record) : record_(std::move(record)) {}

  void Begin(std::size_t rank, std::span<float> values) override {
    record_->began[rank].push_back({values.data(), values.size(), record_->products[rank]});
    record_->taken[rank].emplace_back(values.begin(), values.end());
    std::fill(values.begin(), values.end(), 1e30F);  // not to be touched before Finish
    places_[rank].push_back(values);
  }

  void Finish(std::size_t rank) override {
    record_->meet.arrive_and_wait();
    for (std::size_t i = 0; i < places_[rank].size(); ++i) {
      for (std::size_t at = 0; at < places_[rank][i].size(); ++at) {
        double sum = 0;
        for (const auto& taken : record_->taken) {
          sum += static_cast<double>(taken.at(i).at(at));
        }
        places_[rank][i][at] = static_cast<float>(sum);
      }
    }
    record_->meet.arrive_and_wait();
    places_[rank].clear();
    record_->taken[rank].clear();
    record_->products[rank] = 0;
  }

 private:
  std::shared_ptr<Record> record_;  // second owner: the test
  std::vector<std::vector<std::span<float>>> places_ =
      std::vector<std::vector<std::span<float>>>(record_->began.size());
};

class SummingDevice final : public ForwardingDevice {
 public:
  SummingDevice(std::shared_ptr<Record> record, std::size_t rank)
      : ForwardingDevice(MakeCpuDevice(1)), record_(std::move(record)), rank_(rank) {}

  Device& Innermost() override { return *this; }
  StatusOr<std::unique_ptr<DeviceSum>> Connect(std::span<Device* const> devices) override {
    CHECK(devices.size() == record_->began.size());
    return std::unique_ptr<DeviceSum>(std::make_unique<RecordingSum>(record_));
  }
  void DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) override {
    ++record_->products[rank_];
    ForwardingDevice::DenseWeightGradient(x, dy, dw);
  }

 private:
  std::shared_ptr<Record> record_;  // second owner: the test
  std::size_t rank_;
};

StrategySpec Summing(const std::shared_ptr<Record>& record) {
  return {.kind = StrategyKind::kMirrored,
          .replicas = record->began.size(),
          .check_every = 1,
          .make_device = [record](std::size_t rank) {
            return StatusOr<std::unique_ptr<Device>>(std::make_unique<SummingDevice>(record, rank));
          }};
}

TEST_CASE("Mirrored: devices begin to add up behind each bucket, all in the same order") {
  constexpr std::size_t kRanks = 3;
  const auto record = std::make_shared<Record>(kRanks);
  const TrainingSpec training = {.model = kWide,
                                 .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1}};
  const auto strategy = MakeTestStrategy(Summing(record), training);
  const TestData data = MakeTestData(12, kWide.num_inputs, 3);
  const auto step = [&](std::size_t rows) {
    for (auto& began : record->began) {
      began.clear();
    }
    REQUIRE(strategy->Step(data.View(0, rows)).ok());
    for (const auto& began : record->began) {
      REQUIRE(began.size() == 2);
      CHECK(began[0].size == 65'792 + 771);
      CHECK(began[1].size == 77'056);
      CHECK(began[1].values + began[1].size == began[0].values);
    }
  };

  // Buffers may grow in a step of more examples than any before: sums wait for its end.
  step(12);
  for (const auto& began : record->began) {
    CHECK(began[0].products_so_far == 3);
    CHECK(began[1].products_so_far == 3);
  }
  step(11);
  for (const auto& began : record->began) {
    CHECK(began[0].products_so_far == 2);  // the first layer's is still to come
    CHECK(began[1].products_so_far == 3);
  }
  step(2);  // the first slice is empty: its gradient is 0 at once
  CHECK(record->began[0][0].products_so_far == 0);
  CHECK(record->began[1][0].products_so_far == 2);
}

TEST_CASE("Mirrored: sums by devices give the bits of sums by the host, and leave out the frozen") {
  const TestData data = MakeTestData(20, kWide.num_inputs, 3);
  const struct {
    const char* name;
    std::vector<std::string> frozen;
    std::size_t micro_batch;
    std::vector<std::size_t> sizes;  // of what is begun in a step
  } cases[] = {{"all", {}, 0, {66'563, 77'056}},
               {"micro batches", {}, 2, {66'563, 77'056}},
               {"frozen", {"layer1.*"}, 0, {771, 77'056}}};  // one bucket of two runs
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const TrainingSpec training = {
        .model = kWide,
        .optimizer = {.kind = OptimizerKind::kAdam, .learning_rate = 0.003},
        .l2 = 0.01,
        .clip_norm = 0.5,
        .micro_batch = c.micro_batch,
        .frozen = c.frozen};
    const auto record = std::make_shared<Record>(2);
    const auto by_devices = MakeTestStrategy(Summing(record), training);
    const auto by_host =
        MakeTestStrategy({.kind = StrategyKind::kMirrored, .replicas = 2}, training);
    for (const std::size_t rows : {20U, 20U, 7U, 1U}) {
      record->began.assign(2, {});
      CHECK(by_devices->Step(data.View(0, rows)).value() ==
            by_host->Step(data.View(0, rows)).value());
      for (const auto& began : record->began) {
        REQUIRE(began.size() == c.sizes.size());
        for (std::size_t i = 0; i < began.size(); ++i) {
          CHECK(began[i].size == c.sizes[i]);
        }
      }
    }
    CHECK(SameBits(by_devices->Parameters(), by_host->Parameters()));
  }
}

}  // namespace
}  // namespace domicile::models

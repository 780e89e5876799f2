// Workers of one process, each on a thread of its own: the bits of `mirrored`, sums behind the way
// back, and an end for all when one of them dies between two sums.
#include "models/strategy/multi_worker.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

#include "models/cpu/cpu_device.h"
#include "models/layers/forwarding_device.h"
#include "models/strategy/buckets.h"
#include "models/strategy/collective.h"
#include "models/strategy/testing.h"

namespace domicile::models {
namespace {

// 143,619 parameters in two buckets: the first layer, and the others.
const NetworkSpec kWide = {
    .num_inputs = 300, .hidden = {256, 256}, .activation = Activation::kTanh, .num_outputs = 3};

// What threads of one process are to each other.
struct Room {
  explicit Room(std::size_t ranks) : sums(ranks), doubles(ranks), meet(ranks) {}

  SharedMemoryCollective sums;
  std::vector<double> doubles;
  Rendezvous meet;

  void Break() {
    sums.Abort();
    meet.Break();
  }
};

class RoomGroup final : public WorkerGroup {
 public:
  RoomGroup(Room& room, std::size_t rank) : room_(room), rank_(rank) {}

  std::size_t NumRanks() const override { return room_.doubles.size(); }
  std::size_t Rank() const override { return rank_; }
  Status AllReduceSum(std::span<float> values) override {
    return Exchange([&] { return room_.sums.AllReduceSum(rank_, values); });
  }
  StatusOr<double> AllReduceSum(double value) override {
    double sum = 0;
    RETURN_IF_ERROR(Exchange([&]() -> Status {
      room_.doubles[rank_] = value;
      if (!room_.meet.ArriveAndWait(rank_)) {
        return Error(StatusCode::kUnavailable, "another worker is gone");
      }
      for (const double part : room_.doubles) {
        sum += part;
      }
      return room_.meet.ArriveAndWait(rank_) ? OkStatus() : Error(StatusCode::kUnavailable, "gone");
    }));
    return sum;
  }

  // Called with the number of each exchange before it is made; an error is that of the exchange.
  std::function<Status(std::size_t)> before = [](std::size_t /*exchange*/) { return OkStatus(); };
  std::atomic<bool> busy = false;

 private:
  Status Exchange(const std::function<Status()>& exchange) {
    DOMICILE_CHECK(!busy.exchange(true));  // never two at a time
    Status status = before(num_exchanges_++);
    if (status.ok()) {
      status = exchange();
    }
    busy = false;
    return status;
  }

  Room& room_;
  std::size_t rank_;
  std::size_t num_exchanges_ = 0;
};

// Calls work(group) for each rank on a thread of its own.
void InRoom(std::size_t ranks, const std::function<void(Room&, RoomGroup&)>& work) {
  Room room(ranks);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&room, &work, rank] {
      RoomGroup group(room, rank);
      work(room, group);
    });
  }
}

struct Outcome {
  std::vector<double> losses;
  TrainingState state;
  StepReport report;

  friend bool operator==(const Outcome& a, const Outcome& b) {
    return a.losses == b.losses && a.state == b.state;
  }
};

Outcome Train(const StrategySpec& spec, const TrainingSpec& training, const TestData& data) {
  const auto strategy = MakeTestStrategy(spec, training);
  Outcome outcome;
  for (const std::size_t rows : {20U, 20U, 7U, 1U, 19U}) {
    outcome.losses.push_back(strategy->Step(data.View(0, rows)).value());
  }
  outcome.losses.push_back(strategy->Loss(data.View(0, 20)).value());
  outcome.state = strategy->State();
  outcome.report = strategy->Report();
  return outcome;
}

TEST_CASE("MultiWorker: sums behind the way back give the bits of mirrored") {
  const OptimizerSpec adam = {.kind = OptimizerKind::kAdam, .learning_rate = 0.003};
  const ConvNetSpec images = {
      .channels = 1,
      .height = 12,
      .width = 25,
      .blocks = {{.filters = 4, .kernel = 3, .norm = ImageNorm::kBatch, .pool_window = 2}},
      .hidden = {400},
      .activation = Activation::kRelu,
      .dropout = 0.2F,
      .num_outputs = 3};
  const struct {
    const char* name;
    TrainingSpec training;
    std::size_t buckets;
  } cases[] = {
      {"all", {.model = kWide, .optimizer = adam, .l2 = 0.01, .clip_norm = 0.5}, 2},
      {"micro batches", {.model = kWide, .optimizer = adam, .micro_batch = 2}, 2},
      {"frozen in the middle", {.model = kWide, .optimizer = adam, .frozen = {"layer1.*"}}, 1},
      {"images with batch norm", {.model = images, .optimizer = adam, .seed = 4}, 2},
      {"a loss scale that overflows",
       {.model = kWide,
        .optimizer = adam,
        .precision = Precision::kFloat16,
        .loss_scale = {.initial = 1U << 24U}},
       2},
  };
  const TestData data = MakeTestData(20, 300, 3);
  for (const auto& c : cases) {
    CAPTURE(c.name);
    ParameterLayout layout = LayoutOf(c.training.model);
    layout.Freeze(c.training.frozen);
    CHECK(CutIntoBuckets(layout).size() == c.buckets);
    for (const std::size_t ranks : {1U, 3U}) {
      const Outcome want =
          Train({.kind = StrategyKind::kMirrored, .replicas = ranks}, c.training, data);
      std::vector<Outcome> got(ranks);
      InRoom(ranks, [&](Room& /*room*/, RoomGroup& group) {
        got[group.Rank()] = Train({.kind = StrategyKind::kMultiWorkerMirrored, .workers = &group},
                                  c.training, data);
      });
      for (const Outcome& outcome : got) {
        CHECK(outcome == want);
        CHECK(outcome.report.skipped == want.report.skipped);
      }
      if (c.training.precision == Precision::kFloat16) {
        CHECK(want.report.skipped > 0);
      }
    }
  }
}

// A flag that a thread can wait for, but not for ever.
class Signal {
 public:
  void Raise() {
    const std::lock_guard lock(mutex_);
    raised_ = true;
    changed_.notify_all();
  }
  bool Await() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [this] { return raised_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool raised_ = false;
};

// Calls `at` before the weight gradient of that number.
class StoppingDevice final : public ForwardingDevice {
 public:
  explicit StoppingDevice(std::function<void(std::size_t)> at)
      : ForwardingDevice(MakeCpuDevice(1)), at_(std::move(at)) {}
  void DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) override {
    at_(products_++);
    ForwardingDevice::DenseWeightGradient(x, dy, dw);
  }
  Status Check() override {
    return fails ? Error(StatusCode::kUnavailable, "out of order") : OkStatus();
  }
  bool fails = false;

 private:
  std::function<void(std::size_t)> at_;
  std::size_t products_ = 0;
};

TEST_CASE("MultiWorker: a bucket is under way before the way back has come to its end") {
  Room room(1);
  RoomGroup group(room, 0);
  Signal begun;
  group.before = [&begun](std::size_t /*exchange*/) {
    begun.Raise();
    return OkStatus();
  };
  bool early = false;
  const StrategySpec spec = {
      .kind = StrategyKind::kMultiWorkerMirrored,
      .make_device = [&](std::size_t /*replica*/) -> StatusOr<std::unique_ptr<Device>> {
        return std::make_unique<StoppingDevice>([&](std::size_t product) {
          // The last of a way back over three layers.
          early = product == 2 ? begun.Await() : early;
        });
      },
      .workers = &group};
  const auto strategy = MakeTestStrategy(
      spec, {.model = kWide, .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1}});
  const TestData data = MakeTestData(4, 300, 3);

  CHECK(strategy->Step(data.View(0, 4)).ok());

  CHECK(early);
}

TEST_CASE("MultiWorker: a worker that dies between any two sums ends the step of all") {
  const TestData data = MakeTestData(9, 300, 3);
  const TrainingSpec training = {.model = kWide,
                                 .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1}};
  // A step is three exchanges: two buckets, and the losses.
  for (std::size_t last = 0; last < 7; ++last) {
    CAPTURE(last);
    std::vector<std::size_t> steps(3);
    std::vector<Status> ends(3);
    InRoom(3, [&](Room& room, RoomGroup& group) {
      if (group.Rank() == last % 3) {
        group.before = [&room, last](std::size_t exchange) {
          if (exchange < last) {
            return OkStatus();
          }
          room.Break();
          return Error(StatusCode::kUnavailable, "this worker is gone");
        };
      }
      const auto strategy = MakeTestStrategy(
          {.kind = StrategyKind::kMultiWorkerMirrored, .workers = &group}, training);
      Status& end = ends[group.Rank()];
      while ((end = strategy->Step(data.View(0, 9)).status()).ok()) {
        ++steps[group.Rank()];
      }
      CHECK_FALSE(group.busy);
      CHECK(strategy->Step(data.View(0, 9)).status() == end);
    });
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const bool died = rank == last % 3;
      // One that still waits for the end of a sum when another dies may not see it.
      CHECK(steps[rank] <= last / 3);
      CHECK(steps[rank] + (died ? 0 : 1) >= last / 3);
      CHECK(ends[rank].code() == StatusCode::kUnavailable);
      CHECK((Message(ends[rank]) == "this worker is gone") == died);
    }
  }
}

TEST_CASE("MultiWorker: a step whose device fails leaves no sum behind") {
  const TestData data = MakeTestData(4, 300, 3);
  const TrainingSpec training = {.model = kWide,
                                 .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1}};
  InRoom(2, [&](Room& room, RoomGroup& group) {
    StrategySpec spec = {.kind = StrategyKind::kMultiWorkerMirrored, .workers = &group};
    if (group.Rank() == 1) {
      spec.make_device = [](std::size_t /*replica*/) -> StatusOr<std::unique_ptr<Device>> {
        auto device = std::make_unique<StoppingDevice>([](std::size_t /*product*/) {});
        device->fails = true;
        return device;
      };
    }
    const auto strategy = MakeTestStrategy(spec, training);
    const Status end = strategy->Step(data.View(0, 4)).status();
    CHECK_FALSE(group.busy);
    if (group.Rank() == 1) {
      CHECK(Message(end) == "out of order");
      room.Break();  // as a trainer tells the others
    } else {
      CHECK(end.code() == StatusCode::kUnavailable);
    }
  });
}

}  // namespace
}  // namespace domicile::models

// Replicas that hang, fail, or no longer hold what the others hold.
#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "models/cpu/cpu_device.h"
#include "models/layers/forwarding_device.h"
#include "models/strategy/strategy.h"
#include "models/strategy/testing.h"
#include "models/strategy/watchdog.h"

namespace domicile::models {
namespace {

const NetworkSpec kMlp = {
    .num_inputs = 8, .hidden = {6}, .activation = Activation::kTanh, .num_outputs = 3};
const OptimizerSpec kSgd = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1};

// Moves when told, from any thread.
class SharedClock final : public Clock {
 public:
  WallTime Now() const override { return {}; }
  MonotonicTime Monotonic() const override {
    ++looks_;
    return MonotonicTime(std::chrono::nanoseconds(ticks_.load()));
  }
  void Advance(std::chrono::nanoseconds by) { ticks_ += by.count(); }
  // Until somebody has looked so often again, or has stopped looking.
  void AwaitLooks(int times) const {
    const int enough = looks_.load() + times;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (looks_.load() < enough && std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
    }
  }

 private:
  std::atomic<std::int64_t> ticks_ = 0;
  mutable std::atomic<int> looks_ = 0;
};

// What a device does in its next matrix product, decided from outside.
enum class Mood : int { kFine, kHangs, kThrows, kFails, kForgets };

struct Control {
  std::atomic<Mood> mood = Mood::kFine;
  std::atomic<bool> hanging = false;
  std::atomic<bool> gone = false;  // the device has been destroyed

  void AwaitHanging() const {
    while (!hanging.load()) {
      std::this_thread::yield();
    }
  }
  // Ends a hang, and waits until the thread has let go of everything.
  void Release() {
    mood = Mood::kFine;
    mood.notify_all();
    while (!gone.load()) {
      std::this_thread::yield();
    }
  }
};

class MoodyDevice final : public ForwardingDevice {
 public:
  MoodyDevice(std::unique_ptr<Device> inner, std::shared_ptr<Control> control)
      : ForwardingDevice(std::move(inner)), control_(std::move(control)) {}
  ~MoodyDevice() override { control_->gone = true; }

  Status Check() override {
    return control_->mood == Mood::kFails ? Error(StatusCode::kUnavailable, "out of order")
                                          : OkStatus();
  }
  void DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) override {
    if (control_->mood == Mood::kThrows) {
      throw std::bad_alloc();
    }
    if (control_->mood == Mood::kHangs) {
      control_->hanging = true;
      control_->mood.wait(Mood::kHangs);
    }
    ForwardingDevice::DenseWeightGradient(x, dy, dw);
  }
  void Sgd(const SgdStep& step, std::span<const float> gradient, std::span<float> momentum,
           std::span<float> parameters) override {
    if (control_->mood != Mood::kForgets) {
      ForwardingDevice::Sgd(step, gradient, momentum, parameters);
    }
  }

 private:
  std::shared_ptr<Control> control_;  // second owner: the test
};

// Replica 1 has the moody device.
StrategySpec SpecWith(StrategyKind kind, const std::shared_ptr<Control>& control,
                      const Clock& clock) {
  return {.kind = kind,
          .replicas = 3,
          .servers = 2,
          .staleness = 2,
          .check_every = 2,
          .patience = std::chrono::seconds(50),
          .make_device = [control](std::size_t replica) -> StatusOr<std::unique_ptr<Device>> {
            if (replica == 1) {
              return std::make_unique<MoodyDevice>(MakeCpuDevice(1), control);
            }
            return MakeCpuDevice(1);
          },
          .clock = &clock};
}

const StrategyKind kWithReplicas[] = {StrategyKind::kMirrored, StrategyKind::kCentralStorage,
                                      StrategyKind::kParameterServer};

TEST_CASE("Hung replica: is named with what it is in, once it has been silent too long") {
  const TestData data = MakeTestData(9, kMlp.num_inputs, 3);
  for (const StrategyKind kind : kWithReplicas) {
    CAPTURE(static_cast<int>(kind));
    const auto control = std::make_shared<Control>();
    SharedClock clock;
    auto strategy =
        MakeTestStrategy(SpecWith(kind, control, clock), {.model = kMlp, .optimizer = kSgd});
    REQUIRE(strategy->Step(data.View(0, 9)).ok());
    REQUIRE(strategy->Finish().ok());

    control->mood = Mood::kHangs;
    Status status = OkStatus();
    std::atomic<bool> named = false;
    std::thread time([&] {
      control->AwaitHanging();
      // A hundred times as fast as real time: the others are not named for a short pause.
      while (!named.load()) {
        clock.Advance(std::chrono::seconds(1));
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    });
    while (status.ok()) {  // a parameter server gives it a batch sooner or later
      status = strategy->Step(data.View(0, 9)).status();
    }
    named = true;
    time.join();

    CHECK(status.code() == StatusCode::kUnavailable);
    CHECK(Message(status).find("replica 1 of 3") != std::string_view::npos);
    CHECK(Message(status).find("`DenseWeightGradient`") != std::string_view::npos);
    CHECK(strategy->Step(data.View(0, 9)).status() == status);
    CHECK(strategy->Loss(data.View(0, 9)).status() == status);
    strategy.reset();  // does not wait for it
    CHECK_FALSE(control->gone.load());
    control->Release();
  }
}

TEST_CASE("Hung replica: one that throws or whose device fails is named at once") {
  const TestData data = MakeTestData(9, kMlp.num_inputs, 3);
  const SystemClock clock;
  for (const StrategyKind kind : kWithReplicas) {
    for (const Mood mood : {Mood::kThrows, Mood::kFails}) {
      CAPTURE(static_cast<int>(kind));
      const auto control = std::make_shared<Control>();
      const auto strategy =
          MakeTestStrategy(SpecWith(kind, control, clock), {.model = kMlp, .optimizer = kSgd});
      REQUIRE(strategy->Step(data.View(0, 9)).ok());
      REQUIRE(strategy->Finish().ok());

      control->mood = mood;
      Status status = OkStatus();
      while (status.ok()) {
        status = strategy->Step(data.View(0, 9)).status();
      }

      CHECK(status.code() == StatusCode::kUnavailable);
      CHECK(Message(status).find("replica 1 of 3 has failed") != std::string_view::npos);
      CHECK(Message(status).find(mood == Mood::kThrows ? "memory" : "out of order") !=
            std::string_view::npos);
      CHECK(strategy->Loss(data.View(0, 9)).status() == status);
    }
  }
}

TEST_CASE("Hung replica: one that no longer holds the bits of the others is found and named") {
  const TestData data = MakeTestData(9, kMlp.num_inputs, 3);
  const SystemClock clock;
  const auto control = std::make_shared<Control>();
  const auto strategy = MakeTestStrategy(SpecWith(StrategyKind::kMirrored, control, clock),
                                         {.model = kMlp, .optimizer = kSgd});
  for (int step = 0; step < 4; ++step) {
    REQUIRE(strategy->Step(data.View(0, 9)).ok());
  }
  control->mood = Mood::kForgets;

  REQUIRE(strategy->Step(data.View(0, 9)).ok());  // not compared in this step
  const Status status = strategy->Step(data.View(0, 9)).status();

  CHECK(status.code() == StatusCode::kDataLoss);
  CHECK(Message(status).find("replica 1 of 3") != std::string_view::npos);
  CHECK(Message(status).find("step 6") != std::string_view::npos);
  CHECK(strategy->Step(data.View(0, 9)).status() == status);
}

TEST_CASE("Hung replica: one whose whole process was frozen meanwhile is not") {
  const TestData data = MakeTestData(9, kMlp.num_inputs, 3);
  for (const StrategyKind kind : kWithReplicas) {
    CAPTURE(static_cast<int>(kind));
    const auto control = std::make_shared<Control>();
    SharedClock clock;
    auto strategy =
        MakeTestStrategy(SpecWith(kind, control, clock), {.model = kMlp, .optimizer = kSgd});

    // In the middle of an operation an hour passes between two looks at the clock.
    control->mood = Mood::kHangs;
    std::thread thawed([&] {
      control->AwaitHanging();
      clock.AwaitLooks(3);
      clock.Advance(std::chrono::hours(1));
      clock.AwaitLooks(3);
      control->mood = Mood::kFine;
      control->mood.notify_all();
    });
    Status status = OkStatus();
    while (status.ok() && !control->hanging.load()) {
      status = strategy->Step(data.View(0, 9)).status();
    }
    if (status.ok()) {
      status = strategy->Finish().status();
    }
    thawed.join();

    CHECK_MESSAGE(status.ok(), Message(status));
    CHECK(strategy->Step(data.View(0, 9)).ok());
    CHECK(strategy->Finish().ok());
  }
}

TEST_CASE("Watchdog: only who is busy and begins nothing is hung") {
  std::vector<Pulse> pulses(2);
  Watchdog watchdog(2, std::chrono::seconds(10));
  const std::vector<char> both = {1, 1};
  int now = 100;
  const auto at = [](int seconds) { return MonotonicTime(std::chrono::seconds(seconds)); };
  // Looks once a second until then. Returns what the last look finds.
  const auto look_until = [&](int until, const std::vector<char>& busy) {
    std::optional<std::size_t> hung;
    while (now < until) {
      hung = watchdog.FindHung(at(++now), pulses, busy);
    }
    return hung;
  };
  watchdog.Restart(at(100), pulses);

  CHECK_FALSE(look_until(110, both));
  pulses[0].operations = 7;
  CHECK(look_until(111, both) == 1);
  CHECK_FALSE(look_until(121, {1, 0}));
  CHECK(look_until(122, both) == 0);
  pulses[0].operation = "Attention";
  CHECK(Message(watchdog.HungError(0, pulses)).find("`Attention` for 10 s") !=
        std::string_view::npos);
  CHECK(Message(watchdog.HungError(1, pulses)).find("its start") != std::string_view::npos);
  watchdog.Restart(at(200), pulses);
  now = 200;
  CHECK_FALSE(look_until(209, both));
  // A gap counts for a second, however long it was.
  CHECK_FALSE(watchdog.FindHung(at(1000), pulses, both));
  CHECK(watchdog.FindHung(at(1001), pulses, both) == 0);
}

}  // namespace
}  // namespace domicile::models

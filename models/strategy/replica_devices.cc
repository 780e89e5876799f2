#include "models/strategy/replica_devices.h"

#include <utility>

#include "models/cpu/cpu_device.h"
#include "models/layers/forwarding_device.h"

namespace domicile::models {
namespace {

class PulsingDevice final : public ForwardingDevice {
 public:
  PulsingDevice(std::unique_ptr<Device> inner, Pulse& pulse)
      : ForwardingDevice(std::move(inner)), pulse_(&pulse) {}

 protected:
  void Begin(const char* operation) override {
    // Written by this thread alone: no need for the dearer fetch_add.
    pulse_->operations.store(pulse_->operations.load(std::memory_order_relaxed) + 1,
                             std::memory_order_relaxed);
    pulse_->operation.store(operation, std::memory_order_relaxed);
  }

 private:
  Pulse* pulse_;
};

}  // namespace

const Clock& ClockOf(const StrategySpec& strategy) {
  static const SystemClock system;
  return strategy.clock == nullptr ? system : *strategy.clock;
}

StatusOr<std::unique_ptr<Device>> MakeDevice(const StrategySpec& strategy, std::size_t replica,
                                             std::size_t threads) {
  if (strategy.make_device) {
    return strategy.make_device(replica);
  }
  return MakeCpuDevice(threads);
}

std::unique_ptr<Device> WithPulse(std::unique_ptr<Device> device, Pulse& pulse) {
  return std::make_unique<PulsingDevice>(std::move(device), pulse);
}

}  // namespace domicile::models

// The devices and the clock that a strategy's spec asks for, and the pulse of a device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "models/strategy/strategy.h"

namespace domicile::models {

const Clock& ClockOf(const StrategySpec& strategy);

// That replica's device; a CPU device of `threads` where the spec has no factory.
StatusOr<std::unique_ptr<Device>> MakeDevice(const StrategySpec& strategy, std::size_t replica,
                                             std::size_t threads);

// What a device does, for whoever watches it from another thread. Thread-safe.
struct Pulse {
  std::atomic<std::uint64_t> operations = 0;     // begun so far
  std::atomic<const char*> operation = nullptr;  // the last one begun; null: none
};

// The device, leaving its traces in the pulse, which must outlive it.
std::unique_ptr<Device> WithPulse(std::unique_ptr<Device> device, Pulse& pulse);

}  // namespace domicile::models

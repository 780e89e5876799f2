// Randomness, passed in. Anything secret or unpredictable comes from SystemRandom; SeededRandom
// exists for what must be repeatable (a shuffle, an initial model, a simulation) and never for keys
// or noise.
#pragma once

#include <cstdint>
#include <span>

namespace domicile {

class Random {
 public:
  virtual ~Random() = default;
  virtual void Fill(std::span<std::uint8_t> bytes) = 0;

  std::uint64_t Next64();
  // Uniform in [0, bound), bound >= 1, without modulo bias.
  std::uint64_t Below(std::uint64_t bound);
};

// The operating system's generator. Aborts if it fails: no weaker source is ever used. Thread-safe.
class SystemRandom final : public Random {
 public:
  void Fill(std::span<std::uint8_t> bytes) override;
};

// SplitMix64 (Steele, Lea, Flood 2014) from a public seed: the same numbers on every machine.
// One thread at a time.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  void Fill(std::span<std::uint8_t> bytes) override;

 private:
  std::uint64_t state_;
};

}  // namespace domicile

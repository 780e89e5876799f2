#include "base/random.h"

#include <cerrno>
#include <cstring>

#include <sys/random.h>

#include "base/status.h"

namespace domicile {

std::uint64_t Random::Next64() {
  std::uint64_t value = 0;
  Fill({reinterpret_cast<std::uint8_t*>(&value), sizeof value});
  return value;
}

std::uint64_t Random::Below(std::uint64_t bound) {
  DOMICILE_CHECK(bound >= 1);
  const std::uint64_t unbiased = UINT64_MAX - UINT64_MAX % bound;
  std::uint64_t value = Next64();
  while (value >= unbiased) {
    value = Next64();
  }
  return value % bound;
}

void SystemRandom::Fill(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    DOMICILE_CHECK(got > 0 || errno == EINTR);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
  }
}

void SeededRandom::Fill(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    z ^= z >> 31U;
    const std::size_t n = bytes.size() < sizeof z ? bytes.size() : sizeof z;
    std::memcpy(bytes.data(), &z, n);
    bytes = bytes.subspan(n);
  }
}

}  // namespace domicile

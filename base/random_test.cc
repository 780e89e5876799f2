#include "base/random.h"

#include <algorithm>
#include <array>
#include <vector>

#include <doctest/doctest.h>

namespace domicile {
namespace {

TEST_CASE("SeededRandom: the published first numbers of SplitMix64 from seed 1234567") {
  SeededRandom random(1'234'567);

  CHECK(random.Next64() == 6'457'827'717'110'365'317U);
  CHECK(random.Next64() == 3'203'168'211'198'807'973U);
  CHECK(random.Next64() == 9'817'491'932'198'370'423U);
  CHECK(random.Next64() == 4'593'380'528'125'082'431U);
  CHECK(random.Next64() == 16'408'922'859'458'223'821U);
}

TEST_CASE("Random: Below stays below and reaches every value") {
  SeededRandom random(3);
  std::array<int, 6> seen{};
  for (int i = 0; i < 600; ++i) {
    const std::uint64_t value = random.Below(6);
    REQUIRE(value < 6);
    ++seen[value];
  }

  CHECK(*std::min_element(seen.begin(), seen.end()) > 50);
  CHECK(random.Below(1) == 0);
}

// A source that gives listed numbers, to reach the one that would bias.
class Listed final : public Random {
 public:
  explicit Listed(std::vector<std::uint64_t> values) : values_(std::move(values)) {}
  void Fill(std::span<std::uint8_t> bytes) override {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(values_.at(at_) >> (8 * i));
    }
    ++at_;
  }

 private:
  std::vector<std::uint64_t> values_;
  std::size_t at_ = 0;
};

TEST_CASE("Random: numbers above the last whole multiple of the bound are drawn again") {
  Listed random({UINT64_MAX, UINT64_MAX - 1, 17});

  CHECK(random.Below(10) == 7);
}

TEST_CASE("SystemRandom: fills, and two fills differ") {
  SystemRandom random;
  std::array<std::uint8_t, 64> first{};
  std::array<std::uint8_t, 64> second{};
  random.Fill(first);
  random.Fill(second);

  CHECK(first != second);
  CHECK(first != std::array<std::uint8_t, 64>{});
}

}  // namespace
}  // namespace domicile

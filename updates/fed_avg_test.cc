#include "updates/fed_avg.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "crypto/sha256.h"
#include "updates/clip.h"
#include "updates/exact_sum.h"

namespace domicile::updates {
namespace {

nlohmann::json Golden(const std::string& name) {
  const auto text = ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/tests/golden/" + name, 1U << 20U);
  REQUIRE(text.ok());
  return nlohmann::json::parse(*text);
}

// One site's part in a round: weights after training, and the number of examples.
struct Part {
  std::vector<float> weights;
  std::int64_t examples = 0;
};

// A round of federated averaging through every stage that a real one takes; sites without examples
// are left out, as sites and aggregator do.
StatusOr<std::vector<float>> Round(const GridPlan& plan, const std::vector<float>& old,
                                   const std::vector<Part>& parts, double learning_rate = 1) {
  ExactSum sum(plan, old.size());
  for (const Part& part : parts) {
    if (part.examples == 0) {
      continue;
    }
    std::vector<float> delta(old.size());
    for (std::size_t i = 0; i < delta.size(); ++i) {
      delta[i] = part.weights[i] - old[i];
    }
    RETURN_IF_ERROR(RoundToGrid(plan, delta));
    const Bytes bytes = EncodeF32(delta);
    ASSIGN_OR_RETURN(const GridFloats floats, GridFloats::Check(plan, bytes));
    RETURN_IF_ERROR(sum.Add(floats, part.examples));
  }
  std::vector<float> next(old.size());
  RETURN_IF_ERROR(FedAvg(plan, old, sum.Levels(), sum.TotalWeight(), learning_rate, next));
  return next;
}

std::vector<Part> PartsOf(const nlohmann::json& sites) {
  std::vector<Part> parts;
  for (const auto& site : sites) {
    parts.push_back({site["w"], site["n"]});
  }
  return parts;
}

void CheckClose(const std::vector<float>& got, const std::vector<double>& want, double tolerance) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(double{got[i]} - want[i]) <= tolerance);
  }
}

TEST_CASE("FedAvg: three rounds agree with the independent implementation") {
  const nlohmann::json golden = Golden("federated_rules.json");
  const std::vector<std::int64_t> examples = golden["n_examples"];
  const GridPlan plan = *GridPlan::ForClip(8, 32, 1000, 10);
  std::vector<float> model = golden["w0"];
  for (const auto& round : golden["fedavg"]) {
    std::vector<Part> parts;
    for (std::size_t k = 0; k < examples.size(); ++k) {
      parts.push_back({round["client_w"][k], examples[k]});
    }
    const auto next = Round(plan, model, parts);
    REQUIRE(next.ok());
    CheckClose(*next, round["w"], 1e-6);  // float32 weights against float64
    model = *next;
  }
}

TEST_CASE("FedAvg: sites without examples and absent sites do not move the mean (C13)") {
  const nlohmann::json golden = Golden("cases/C13/updates.json");
  const GridPlan plan = *GridPlan::ForClip(16, 32, 1000, 10);

  const auto first = Round(plan, {0.25F, 0.25F}, PartsOf(golden["round_1"]));
  REQUIRE(first.ok());
  CheckClose(*first, {0.7, -0.2}, 1e-7);

  const auto second = Round(plan, *first, PartsOf(golden["round_2"]));
  CHECK(second.status().code() == StatusCode::kFailedPrecondition);
  CHECK(Message(second.status()) == "no examples at any site: there is no mean");

  const auto third = Round(plan, *first, PartsOf(golden["round_3_received"]));
  REQUIRE(third.ok());
  CheckClose(*third, {-1.0, 3.0}, 1e-6);
}

TEST_CASE("FedAvg: what is not finite never reaches the mean (C15)") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> zero(4, 0.0F);
  const Part a = {{3, 4, 0, 0}, 30};
  const Part d = {{0, 0, 1, -1}, 10};
  const GridPlan plan = *GridPlan::ForClip(16, 32, 1000, 10);

  CheckClose(*Round(plan, zero, {a, d}), {2.25, 3.0, 0.25, -0.25}, 0);
  const auto with_nan = Round(plan, zero, {a, {{0.1F, nan, 0.2F, 0.3F}, 20}, d});
  CHECK(Message(with_nan.status()) == "value 1 is not finite");
  const auto with_infinity = Round(plan, zero, {a, {{infinity, 0, 0, 0}, 20}, d});
  CHECK(Message(with_infinity.status()) == "value 0 is not finite");

  const auto clipped = [](std::vector<float> delta) {
    REQUIRE(ClipL2(1.0, delta).ok());
    return delta;
  };
  CheckClose(*Round(plan, zero, {{clipped(a.weights), 30}, {clipped(d.weights), 10}}),
             {0.45, 0.6, 0.176777, -0.176777}, 1e-6);
  CheckClose(*Round(plan, zero, {{clipped(a.weights), 1}, {clipped(d.weights), 1}}),
             {0.3, 0.4, 0.353553, -0.353553}, 1e-6);
  const Part largest = {clipped({3.4e38F, 3.4e38F, 0, 0}), 2};
  CheckClose(*Round(plan, zero, {largest}), {0.70710678, 0.70710678, 0, 0}, 1e-6);
}

TEST_CASE("FedAvg: a large tensor gives the exact file (C27)") {
  constexpr std::size_t kCount = 1500000;
  const auto weights = [](std::size_t factor) {
    std::vector<float> values(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      values[i] = static_cast<float>((i * factor) % 1024) / 1024.0F;
    }
    return values;
  };
  const Part a = {weights(1), 1};
  const Part b = {weights(7), 3};
  const GridPlan plan = *GridPlan::ForClip(1024, 32, 3, 2);

  const auto mean = Round(plan, std::vector<float>(kCount, 0.0F), {a, b});

  REQUIRE(mean.ok());
  CHECK(PrintHex(crypto::Sha256(EncodeF32(a.weights))).substr(0, 16) == "e7ce4e3e0feaf88f");
  CHECK(PrintHex(crypto::Sha256(EncodeF32(b.weights))).substr(0, 16) == "98a864853c6c0825");
  CHECK(PrintHex(crypto::Sha256(EncodeF32(*mean))) ==
        "86639188ccbc0f4618fbcca86a8fc6f9b8933055ef85978ff7e6f48e76c9b42a");
  double total = 0;
  for (const float value : *mean) {
    total += value;
  }
  CHECK(total == 749246.1796875);
}

TEST_CASE("FedAvg: the server's learning rate scales the step, in place too") {
  const GridPlan plan = *GridPlan::Create(4, 1000, 10, 4);
  std::vector<float> model = {1.0F, -2.0F};
  const std::vector<std::int64_t> sum = {32, -64};
  REQUIRE(FedAvg(plan, model, sum, 4, 0.5, model).ok());
  CHECK(model == std::vector<float>{1.25F, -2.5F});  // 0.5 * (32 / 4) / 16
}

TEST_CASE("FedAvg: the operations are those of the page, one rounding each") {
  const GridPlan plan = *GridPlan::Create(32, std::int64_t{1} << 40U, 1000, 100);
  const std::vector<float> old = {0.1F, -0.7F, 1e-8F, 3.0F};
  const std::vector<std::int64_t> sum = {123456789012345, -987654321098765, 9007199254740993, 1};
  std::vector<float> next(4);
  REQUIRE(FedAvg(plan, old, sum, 977, 0.3, next).ok());
  for (std::size_t i = 0; i < old.size(); ++i) {
    // volatile: no fusing and no reordering, whatever the flags of this file.
    volatile double step = static_cast<double>(sum[i]) / 977.0;
    step = step * 0x1p-32;
    step = 0.3 * step;
    step = double{old[i]} + step;
    CHECK(next[i] == static_cast<float>(step));
  }
}

TEST_CASE("FedAvg: a result that is not finite is an error that names its place") {
  const GridPlan plan = *GridPlan::Create(0, std::int64_t{1} << 60U, 1, 1);
  const float largest = std::numeric_limits<float>::max();
  const std::vector<float> old = {0.0F, largest, largest};
  const std::vector<std::int64_t> sum = {0, 0, std::int64_t{1} << 60U};
  std::vector<float> next(3);
  const Status status = FedAvg(plan, old, sum, 1, 1e30, next);
  CHECK(status.code() == StatusCode::kOutOfRange);
  CHECK(Message(status) == "weight 2 of the result is not finite");
}

TEST_CASE("FedAvg: shapes, weights and rates that make no sense are refused") {
  const GridPlan plan = *GridPlan::Create(0, 100, 1, 1);
  const std::vector<float> old = {1, 2};
  const std::vector<std::int64_t> sum = {1, 2};
  std::vector<float> next = {9, 9};
  std::vector<float> shorter(1);
  CHECK_FALSE(FedAvg(plan, old, sum, 1, 1, shorter).ok());
  CHECK_FALSE(FedAvg(plan, shorter, sum, 1, 1, next).ok());
  CHECK_FALSE(FedAvg(plan, old, sum, -1, 1, next).ok());
  CHECK_FALSE(FedAvg(plan, old, sum, 1, 0, next).ok());
  CHECK_FALSE(FedAvg(plan, old, sum, 1, std::nan(""), next).ok());
  CHECK(FedAvg(plan, old, sum, 0, 1, next).code() == StatusCode::kFailedPrecondition);
  CHECK(next == std::vector<float>{9, 9});
}

}  // namespace
}  // namespace domicile::updates

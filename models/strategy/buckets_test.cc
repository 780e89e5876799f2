#include "models/strategy/buckets.h"

#include <string>

#include <doctest/doctest.h>

#include "models/cpu/cpu_device.h"
#include "models/strategy/gradient_maker.h"
#include "models/strategy/testing.h"

namespace domicile::models {
namespace {

using Runs = std::vector<GradientRun>;

ParameterLayout SomeLayout() {
  ParameterLayout layout;
  const auto add = [&layout](const char* name, std::uint64_t size, ParameterRole role) {
    layout.Add({.name = name, .shape = {size}, .role = role});
  };
  add("a", 50, ParameterRole::kWeight);    // [0, 50)
  add("b", 10, ParameterRole::kBias);      // [50, 60)
  add("c", 100, ParameterRole::kWeight);   // [60, 160)
  add("d", 4, ParameterRole::kStatistic);  // [160, 164)
  add("e", 30, ParameterRole::kWeight);    // [164, 194)
  return layout;
}

TEST_CASE("Buckets: they are cut from the end, where tensors begin, each large enough") {
  const ParameterLayout layout = SomeLayout();

  const std::vector<Bucket> buckets = CutIntoBuckets(layout, 32);

  REQUIRE(buckets.size() == 3);
  CHECK(buckets[0].runs == Runs{{160, 34}});
  CHECK(buckets[1].runs == Runs{{60, 100}});  // not cut, though larger
  CHECK(buckets[2].runs == Runs{{0, 60}});
  CHECK(buckets[2].First() == 0);
  CHECK(CutIntoBuckets(layout, 1000).size() == 1);
  CHECK(CutIntoBuckets(layout, 1).size() == 5);
}

TEST_CASE("Buckets: what is frozen is left out, statistics never") {
  ParameterLayout layout = SomeLayout();
  const std::vector<std::string> frozen = {"b", "e"};
  layout.Freeze(frozen);

  const std::vector<Bucket> buckets = CutIntoBuckets(layout, 104);

  REQUIRE(buckets.size() == 2);
  CHECK(buckets[0].runs == Runs{{60, 104}});
  CHECK(buckets[1].runs == Runs{{0, 50}});
  const std::vector<Bucket> one = CutIntoBuckets(layout, 1000);
  REQUIRE(one.size() == 1);
  CHECK(one[0].runs == Runs{{60, 104}, {0, 50}});
  CHECK(one[0].size == 154);
  CHECK(one[0].First() == 0);
}

TEST_CASE("Buckets: each is taken once, in order, when all of it is final") {
  const std::vector<Bucket> buckets = CutIntoBuckets(SomeLayout(), 32);
  BucketQueue queue(buckets);
  std::vector<std::size_t> taken;
  const auto final_from = [&](std::size_t entry) {
    taken.clear();
    queue.Advance(entry, [&](const Bucket& bucket) { taken.push_back(bucket.First()); });
    return taken;
  };

  CHECK(final_from(194).empty());
  CHECK(final_from(161).empty());
  CHECK(final_from(160) == std::vector<std::size_t>{160});
  CHECK(final_from(160).empty());
  CHECK(final_from(0) == std::vector<std::size_t>{60, 0});
  CHECK(final_from(0).empty());
}

TEST_CASE("GradientMaker: what it calls final is the sum over all micro batches, to the bit") {
  const NetworkSpec spec = {
      .num_inputs = 8, .hidden = {6, 5}, .activation = Activation::kTanh, .num_outputs = 3};
  const TestData data = MakeTestData(11, spec.num_inputs, 3);
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    for (const std::size_t micro : {0U, 2U, 5U, 11U}) {
      CAPTURE(micro);
      const TrainingSpec training = {
          .model = spec,
          .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1},
          .micro_batch = micro,
          .precision = precision};
      const auto initial = InitialParameters(spec, 2);
      GradientMaker plain(training, MakeCpuDevice(1));
      GradientMaker maker(training, MakeCpuDevice(1));
      const double loss = plain.Compute(initial, data.View(0, 11), {.divisor = 11});
      std::vector<std::size_t> entries;
      std::size_t wrong = 0;
      const FinalFrom listener = [&](std::size_t entry) {
        entries.push_back(entry);
        wrong += SameBits(maker.Gradient().subspan(entry), plain.Gradient().subspan(entry)) ? 0 : 1;
      };

      const double told =
          maker.Compute(initial, data.View(0, 11), {.divisor = 11, .final_from = &listener});

      CHECK(told == loss);
      CHECK(SameBits(maker.Gradient(), plain.Gradient()));
      CHECK(wrong == 0);
      REQUIRE(entries.size() == 4);  // of the last micro batch alone: three layers, and the end
      CHECK(entries[0] > entries[1]);
      CHECK(entries[1] > entries[2]);
      CHECK(entries[3] == 0);
    }
  }
}

}  // namespace
}  // namespace domicile::models

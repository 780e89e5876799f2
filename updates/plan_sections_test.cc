#include "updates/plan_sections.h"

#include <string>

#include <doctest/doctest.h>

#include "base/file.h"

namespace domicile::updates {
namespace {

using contracts::PhaseKind;

contracts::Plan HeartPlan() {
  const auto text =
      ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/tests/golden/heart_plan.json", 1U << 16U);
  REQUIRE(text.ok());
  auto plan = contracts::PlanFromText(*text);
  REQUIRE(plan.ok());
  return *plan;
}

TEST_CASE("SectionsOf: each phase has its sections, on grids that match their manifests") {
  const contracts::Plan plan = HeartPlan();
  struct Case {
    PhaseKind phase;
    std::vector<std::pair<Section, std::uint64_t>> want;
  };
  const std::uint64_t inputs = plan.NumInputs();
  const Case cases[] = {
      {PhaseKind::kStatistics, {{Section::kStatistics, 3 * inputs}}},
      {PhaseKind::kTrain, {{Section::kDelta, inputs + 1}, {Section::kMetrics, 3}}},
      {PhaseKind::kEvaluate, {{Section::kMetrics, 4}, {Section::kHistogram, 2 * 1000}}},
  };
  for (const Case& c : cases) {
    CAPTURE(static_cast<int>(c.phase));
    const auto specs = SectionsOf(plan, c.phase);
    REQUIRE(specs.ok());
    REQUIRE(specs->size() == c.want.size());
    for (std::size_t i = 0; i < specs->size(); ++i) {
      const SectionSpec& spec = (*specs)[i];
      CHECK(spec.info.section == c.want[i].first);
      CHECK(spec.info.count == c.want[i].second);
      CHECK(spec.info.scale_bits == spec.grid.ScaleBits());
      CHECK(spec.grid.MaxSites() == plan.update.max_sites);
      const bool is_delta = spec.info.section == Section::kDelta;
      CHECK(spec.info.encoding == (is_delta ? Encoding::kF32 : Encoding::kI64));
      CHECK(spec.grid.MaxWeight() == (is_delta ? plan.update.max_weight : 1));
    }
  }
}

TEST_CASE("SectionsOf: of a label that is a number an evaluation has examples and loss alone") {
  contracts::Plan plan = HeartPlan();
  plan.schema.label.positive_above.reset();
  plan.schema.label.number = contracts::NumberLabel{};
  plan.evaluation.bins = 0;

  const auto specs = SectionsOf(plan, PhaseKind::kEvaluate);

  REQUIRE(specs.ok());
  REQUIRE(specs->size() == 1);
  CHECK((*specs)[0].info.section == Section::kMetrics);
  CHECK((*specs)[0].info.count == 3);
}

TEST_CASE("SectionsOf: a phase that the plan does not have is refused") {
  contracts::Plan plan = HeartPlan();
  CHECK_FALSE(SectionsOf(plan, PhaseKind::kNone).ok());
  plan.normalisation.enabled = false;
  plan.evaluation.enabled = false;
  CHECK_FALSE(SectionsOf(plan, PhaseKind::kStatistics).ok());
  CHECK_FALSE(SectionsOf(plan, PhaseKind::kEvaluate).ok());
  CHECK(SectionsOf(plan, PhaseKind::kTrain).ok());
}

}  // namespace
}  // namespace domicile::updates

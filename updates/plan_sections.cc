#include "updates/plan_sections.h"

#include <algorithm>
#include <cstdint>

#include "updates/metrics.h"

namespace domicile::updates {

namespace {

using contracts::PhaseKind;
using contracts::Plan;

constexpr std::int64_t kTrainMetrics = 3;
constexpr std::int64_t kEvaluationMetrics = 4;
// Of one site, where the plan does not normalise and so names no limit.
constexpr std::int64_t kMostRows = std::int64_t{1} << 31U;

std::int64_t MaxRows(const Plan& plan) {
  return plan.normalisation.enabled ? static_cast<std::int64_t>(plan.normalisation.max_rows)
                                    : kMostRows;
}

SectionSpec Integers(Section section, std::uint64_t count, const GridPlan& grid) {
  return {.info = {.section = section,
                   .encoding = Encoding::kI64,
                   .count = count,
                   .scale_bits = grid.ScaleBits()},
          .grid = grid};
}

StatusOr<SectionSpec> Metrics(const Plan& plan, std::int64_t count) {
  ASSIGN_OR_RETURN(const GridPlan grid, MetricsGrid(MaxRows(plan), plan.update.max_sites));
  return Integers(Section::kMetrics, static_cast<std::uint64_t>(count), grid);
}

StatusOr<std::vector<SectionSpec>> TrainSections(const Plan& plan) {
  ASSIGN_OR_RETURN(const GridPlan grid,
                   GridPlan::Create(plan.update.scale_bits, plan.DeltaMaxLevel(),
                                    plan.update.max_weight, plan.update.max_sites));
  ASSIGN_OR_RETURN(const SectionSpec metrics, Metrics(plan, kTrainMetrics));
  return std::vector<SectionSpec>{{.info = {.section = Section::kDelta,
                                            .encoding = Encoding::kF32,
                                            .count = plan.NumParameters(),
                                            .scale_bits = grid.ScaleBits()},
                                   .grid = grid},
                                  metrics};
}

StatusOr<std::vector<SectionSpec>> StatisticsSections(const Plan& plan) {
  ASSIGN_OR_RETURN(const GridPlan grid,
                   StatisticsGrid(StatisticsRulesOf(plan), plan.update.max_sites));
  return std::vector<SectionSpec>{Integers(Section::kStatistics, 3 * plan.NumInputs(), grid)};
}

StatusOr<std::vector<SectionSpec>> EvaluateSections(const Plan& plan) {
  if (plan.schema.label.number) {
    // Nothing is right or wrong, and there are no scores: examples and loss alone.
    ASSIGN_OR_RETURN(const SectionSpec errors, Metrics(plan, kTrainMetrics));
    return std::vector<SectionSpec>{errors};
  }
  ASSIGN_OR_RETURN(const SectionSpec metrics, Metrics(plan, kEvaluationMetrics));
  ASSIGN_OR_RETURN(const GridPlan grid, HistogramGrid(MaxRows(plan), plan.update.max_sites));
  return std::vector<SectionSpec>{
      metrics,
      Integers(Section::kHistogram, plan.schema.label.NumClasses() * plan.evaluation.bins, grid)};
}

}  // namespace

StatisticsRules StatisticsRulesOf(const Plan& plan) {
  return {.scale_bits = plan.normalisation.scale_bits,
          .max_rows = static_cast<std::int64_t>(plan.normalisation.max_rows),
          .offsets = plan.normalisation.offsets,
          .ranges = plan.normalisation.ranges,
          .deviation_floor = plan.normalisation.deviation_floor};
}

StatusOr<std::vector<SectionSpec>> SectionsOf(const Plan& plan, PhaseKind phase) {
  switch (phase) {
    case PhaseKind::kNone:
      break;
    case PhaseKind::kStatistics:
      if (plan.normalisation.enabled) {
        return StatisticsSections(plan);
      }
      break;
    case PhaseKind::kTrain:
      return TrainSections(plan);
    case PhaseKind::kEvaluate:
      if (plan.evaluation.enabled) {
        return EvaluateSections(plan);
      }
      break;
  }
  return Error(StatusCode::kInvalidArgument, "the plan has no such phase");
}

StatusOr<std::uint64_t> LargestUpdateBytes(const Plan& plan, PhaseKind phase) {
  // Magic, length and alignment of the manifest and of each section are well below this.
  constexpr std::uint64_t kFraming = 256;
  ASSIGN_OR_RETURN(const std::vector<SectionSpec> specs, SectionsOf(plan, phase));
  std::uint64_t bytes = kLargestManifest + kFraming;
  for (const SectionSpec& spec : specs) {
    bytes += spec.info.count * EncodedSize(spec.info.encoding);
  }
  return bytes;
}

StatusOr<std::uint64_t> LargestUpdateBytes(const Plan& plan) {
  std::uint64_t largest = 0;
  for (const RoundNumber round : {RoundNumber{1}, plan.rounds.count}) {
    for (const PhaseKind phase : plan.Phases(round)) {
      ASSIGN_OR_RETURN(const std::uint64_t bytes, LargestUpdateBytes(plan, phase));
      largest = std::max(largest, bytes);
    }
  }
  return largest;
}

std::vector<SectionGrid> GridsOf(const std::vector<SectionSpec>& specs) {
  std::vector<SectionGrid> grids;
  grids.reserve(specs.size());
  for (const SectionSpec& spec : specs) {
    grids.push_back({.section = spec.info.section, .grid = spec.grid});
  }
  return grids;
}

}  // namespace domicile::updates

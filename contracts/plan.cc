// What follows from a plan: sizes, phases, the bounds of its grids.
#include "contracts/plan.h"

#include <cmath>

#include "contracts/internal/plan_words.h"
#include "crypto/sha256.h"

namespace domicile::contracts {

namespace {

// Saturates, so that a shape nobody checked yet cannot wrap around to a small size.
std::uint64_t Multiply(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

std::uint64_t Add(std::uint64_t a, std::uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

// ceil(value * 2^scale_bits), or the limit itself where that is reached. Both ends compute this
// with the same IEEE operations in the same order.
std::int64_t LevelsOf(double value, std::uint32_t scale_bits) {
  const double levels = std::ceil(std::ldexp(value, static_cast<int>(scale_bits)));
  return levels >= 0 && levels < static_cast<double>(kGridLimit) ? static_cast<std::int64_t>(levels)
                                                                 : kGridLimit;
}

}  // namespace

std::uint64_t TensorSpec::Size() const {
  std::uint64_t size = 1;
  for (const std::uint64_t length : shape) {
    size = Multiply(size, length);
  }
  return size;
}

std::uint64_t Plan::NumParameters() const {
  std::uint64_t total = 0;
  for (const TensorSpec& tensor : Tensors()) {
    total = Add(total, tensor.Size());
  }
  return total;
}

std::size_t Plan::NumOutputs() const {
  if (model.kind == ModelKind::kNone || model.kind == ModelKind::kRaw) {
    return 0;
  }
  const std::size_t classes = schema.label.NumClasses();
  return schema.label.number || classes == 2 ? 1 : classes;
}

std::vector<PhaseKind> Plan::Phases(RoundNumber round) const {
  std::vector<PhaseKind> phases;
  if (round == 0 || round > rounds.count) {
    return phases;
  }
  if (round == 1 && normalisation.enabled) {
    phases.push_back(PhaseKind::kStatistics);
  }
  phases.push_back(PhaseKind::kTrain);
  if (round == rounds.count && evaluation.enabled) {
    phases.push_back(PhaseKind::kEvaluate);
  }
  return phases;
}

std::int64_t Plan::DeltaMaxLevel() const {
  const std::int64_t clip = LevelsOf(update.clip_l2, update.scale_bits);
  if (update.value_bits == 0) {
    return clip;
  }
  return std::min(clip, (std::int64_t{1} << (update.value_bits - 1U)) - 1);
}

std::int64_t Plan::StatisticsSumMaxLevel(std::size_t input) const {
  DOMICILE_CHECK(input < normalisation.ranges.size());
  const double range = normalisation.ranges[input];
  return LevelsOf(static_cast<double>(normalisation.max_rows) * range, normalisation.scale_bits);
}

std::int64_t Plan::StatisticsSquaresMaxLevel(std::size_t input) const {
  DOMICILE_CHECK(input < normalisation.ranges.size());
  const double range = normalisation.ranges[input];
  return LevelsOf(static_cast<double>(normalisation.max_rows) * (range * range),
                  normalisation.scale_bits);
}

Digest PlanDigest(const Plan& plan) { return crypto::Sha256(AsBytes(PlanText(plan))); }

std::string_view PhaseName(PhaseKind kind) { return internal::WordOf(internal::kPhaseWords, kind); }

std::string_view ModelKindName(ModelKind kind) {
  return internal::WordOf(internal::kModelWords, kind);
}

std::string_view ActivationName(Activation kind) {
  return internal::WordOf(internal::kActivationWords, kind);
}

std::string_view OptimizerName(OptimizerKind kind) {
  return internal::WordOf(internal::kOptimizerWords, kind);
}

std::string_view ViewName(PlanView view) { return internal::WordOf(internal::kViewWords, view); }

std::string_view WeightRuleName(WeightRule rule) {
  return internal::WordOf(internal::kWeightWords, rule);
}

}  // namespace domicile::contracts

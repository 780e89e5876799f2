#include "contracts/internal/plan_check.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "contracts/internal/plan_model.h"

namespace domicile::contracts::internal {

namespace {

constexpr std::size_t kLongestName = 80;
constexpr std::size_t kLongestPurpose = 64;
constexpr std::size_t kMaxRecipients = 32;

bool AllOf(std::string_view text, bool (*allowed)(char)) {
  return std::all_of(text.begin(), text.end(), allowed);
}

bool IsPurpose(std::string_view text) {
  return !text.empty() && text.size() <= kLongestPurpose &&
         AllOf(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

std::optional<Fault> FindHeadFault(const Plan& plan) {
  if (plan.name.empty() || plan.name.size() > kLongestName ||
      !AllOf(plan.name, [](char c) { return c >= ' ' && c <= '~'; })) {
    return At("", "name", "must be 1 to 80 printable ASCII characters");
  }
  if (!IsPurpose(plan.purpose)) {
    return At("", "purpose", "must be a code of 1 to 64 letters a-z and underscores");
  }
  if (plan.dataset.IsNone()) {
    return At("", "dataset", "must be the alias of a dataset");
  }
  if (plan.recipients.empty() || plan.recipients.size() > kMaxRecipients) {
    return At("", "recipients", "must be 1 to 32 names, such as [\"sites\", \"operator\"]");
  }
  std::set<std::string_view> distinct;
  for (const std::string& recipient : plan.recipients) {
    if (!SiteId::Parse(recipient).ok()) {
      return At("", "recipients", "must be names of a-z, 0-9 and inner hyphens");
    }
    if (!distinct.insert(recipient).second) {
      return At("", "recipients", "names `" + recipient + "` twice");
    }
  }
  return std::nullopt;
}

// Of each input: its feature, and whether that is a category.
struct InputOrigin {
  std::size_t feature;
  bool is_category;
};

std::vector<InputOrigin> OriginsOf(const SchemaContract& schema) {
  std::vector<InputOrigin> origins;
  for (std::size_t i = 0; i < schema.features.size(); ++i) {
    const Feature& feature = schema.features[i];
    const bool is_category = feature.kind == FeatureKind::kCategory;
    origins.insert(origins.end(), is_category ? feature.codes.size() : 1, {i, is_category});
  }
  return origins;
}

// The largest `max_rows` with max_sites * ceil(rows * per_row * 2^scale_bits) below the limit; a
// hint for people, rounded down to what certainly fits.
std::string RowLimit(double per_row, const Plan& plan) {
  const double each = std::ldexp(per_row, static_cast<int>(plan.normalisation.scale_bits));
  const double rows = static_cast<double>(kGridLimit) / plan.update.max_sites / each * 0.999 - 1;
  return rows >= 1 ? std::to_string(static_cast<std::int64_t>(rows)) : std::string("none at all");
}

// The overflow rule of the statistics grid. It is checked for the input with the widest range, so
// that the limit named is one that helps.
std::optional<Fault> FindStatisticsOverflow(const Plan& plan,
                                            const std::vector<InputOrigin>& origins) {
  const std::vector<double>& ranges = plan.normalisation.ranges;
  const auto input = static_cast<std::size_t>(
      std::distance(ranges.begin(), std::max_element(ranges.begin(), ranges.end())));
  const InputOrigin& origin = origins[input];
  const std::int64_t most = (kGridLimit - 1) / plan.update.max_sites;
  if (plan.StatisticsSumMaxLevel(input) <= most && plan.StatisticsSquaresMaxLevel(input) <= most) {
    return std::nullopt;
  }
  const double range = plan.normalisation.ranges[input];
  const std::string message =
      "does not fit the statistics grid: update.max_sites * max_rows * range^2 * 2^scale_bits must "
      "stay below 2^62; lower `normalisation.max_rows` (with this range at most " +
      RowLimit(std::max(range, range * range), plan) + "), `normalisation.scale_bits` or the range";
  return origin.is_category ? At("normalisation", "max_rows", message)
                            : Fault{"feature", origin.feature, "range", message};
}

std::optional<Fault> FindNormalisationFault(const Plan& plan) {
  const NormalisationPlan& normalisation = plan.normalisation;
  if (!normalisation.enabled) {
    return std::nullopt;
  }
  const std::vector<InputOrigin> origins = OriginsOf(plan.schema);
  if (plan.model.kind == ModelKind::kRaw || plan.schema.features.empty()) {
    return At("", "normalisation", "has no use without columns [[feature]]");
  }
  if (!(normalisation.deviation_floor > 0)) {
    return At("normalisation", "deviation_floor", "must be above 0");
  }
  if (normalisation.offsets.size() != origins.size() ||
      normalisation.ranges.size() != origins.size()) {
    return At("normalisation", "offsets",
              "and `ranges` must have one number for each of the " +
                  std::to_string(origins.size()) + " inputs");
  }
  // What 128 bits hold when the deviation is computed from the sums.
  const double units = std::ldexp(
      static_cast<double>(normalisation.max_rows) * static_cast<double>(plan.update.max_sites),
      static_cast<int>(normalisation.scale_bits));
  if (units >= static_cast<double>(kGridLimit)) {
    return At(
        "normalisation", "max_rows",
        "is too large: update.max_sites * max_rows * 2^scale_bits must stay below 2^62; lower "
        "`max_rows` or `scale_bits`");
  }
  for (std::size_t i = 0; i < origins.size(); ++i) {
    if (!(normalisation.ranges[i] > 0)) {
      return Fault{"feature", origins[i].feature, "range", "must be above 0"};
    }
    if (origins[i].is_category && (normalisation.offsets[i] != 0 || normalisation.ranges[i] != 1)) {
      return Fault{"feature", origins[i].feature, "offset",
                   "and `range` of a category are 0 and 1; leave them out"};
    }
  }
  return FindStatisticsOverflow(plan, origins);
}

std::optional<Fault> FindUpdateFault(const Plan& plan) {
  const UpdatePlan& update = plan.update;
  if (!(update.clip_l2 > 0)) {
    return At("update", "clip_l2", "must be above 0");
  }
  if (std::ldexp(update.clip_l2, static_cast<int>(update.scale_bits)) < 1) {
    return At("update", "clip_l2", "is below one unit of the grid; raise `scale_bits`");
  }
  if (update.weight == WeightRule::kEqual && update.max_weight != 1) {
    return At("update", "max_weight", "must be 1 where every site has the same weight");
  }
  // max_sites and max_weight are below 2^14 and 2^31, so their product is exact.
  const std::int64_t weights = std::int64_t{update.max_sites} * update.max_weight;
  const std::int64_t most = (kGridLimit - 1) / weights;
  if (plan.DeltaMaxLevel() > most) {
    return At("update", "scale_bits",
              "gives a grid that could overflow: max_sites * max_weight * clip_l2 * 2^scale_bits "
              "must stay below 2^62; the first two allow clip_l2 * 2^scale_bits of at most " +
                  std::to_string(most) + ", so lower `scale_bits`, `max_weight` or `max_sites`");
  }
  if (plan.DeltaMaxLevel() > kMaxDeltaLevel) {
    return At(
        "update", "scale_bits",
        "gives more levels than float32 values can be read on: clip_l2 * 2^scale_bits must be "
        "at most 2^50; lower `scale_bits`");
  }
  if (!(update.server_learning_rate > 0)) {
    return At("update", "server_learning_rate", "must be above 0");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Fault> FindPlanFault(const Plan& plan) {
  for (const auto find : {FindHeadFault, FindModelFault, FindTrainingFault}) {
    if (std::optional<Fault> fault = find(plan)) {
      return fault;
    }
  }
  if (plan.rounds.quorum > plan.update.max_sites) {
    return At("rounds", "quorum", "is above `update.max_sites`; no phase could ever commit");
  }
  if (std::optional<Fault> fault = FindUpdateFault(plan)) {
    return fault;
  }
  if (plan.evaluation.enabled && plan.model.kind == ModelKind::kRaw) {
    return At("", "evaluation", "has no use with a raw model");
  }
  if (plan.evaluation.enabled &&
      (plan.evaluation.bins == 0) != plan.schema.label.number.has_value()) {
    return At("evaluation", "bins", "are of scores of classes; a number as label has none");
  }
  return FindNormalisationFault(plan);
}

}  // namespace domicile::contracts::internal

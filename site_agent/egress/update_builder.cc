#include "site_agent/egress/update_builder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "crypto/tree_digest.h"
#include "updates/clip.h"
#include "updates/encoding.h"
#include "updates/metrics.h"
#include "updates/plan_sections.h"
#include "updates/update.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;
using updates::Section;

// The encoded numbers of the sections of a phase, in order.
using Payloads = std::vector<Bytes>;

std::variant<Payloads, Reason> EncodeIntegers(const updates::SectionSpec& spec,
                                              const std::vector<std::int64_t>& numbers) {
  if (numbers.size() != spec.info.count) {
    return Reason::kShape;
  }
  const bool in_range = std::all_of(numbers.begin(), numbers.end(), [&](std::int64_t number) {
    return number >= -spec.grid.MaxLevel() && number <= spec.grid.MaxLevel();
  });
  if (!in_range) {
    return Reason::kOutOfRange;
  }
  return Payloads{updates::EncodeI64(numbers)};
}

std::variant<Payloads, Reason> Append(std::variant<Payloads, Reason> first,
                                      std::variant<Payloads, Reason> second) {
  if (std::holds_alternative<Reason>(first)) {
    return first;
  }
  if (std::holds_alternative<Reason>(second)) {
    return second;
  }
  Payloads all = std::get<Payloads>(std::move(first));
  for (Bytes& payload : std::get<Payloads>(second)) {
    all.push_back(std::move(payload));
  }
  return all;
}

std::variant<Payloads, Reason> Metrics(const updates::SectionSpec& spec, std::uint64_t examples,
                                       std::optional<std::int64_t> loss_sum_micro,
                                       std::optional<std::int64_t> correct) {
  const StatusOr<updates::MetricSums> sums =
      updates::SiteMetrics(static_cast<std::int64_t>(examples), loss_sum_micro, correct);
  if (!sums.ok()) {
    return Reason::kOutOfRange;
  }
  return EncodeIntegers(spec, updates::PrintMetrics(*sums));
}

std::variant<Payloads, Reason> Delta(const contracts::Plan& plan, const updates::SectionSpec& spec,
                                     const std::vector<models::NamedTensor>& tensors,
                                     double clip_l2) {
  const std::vector<contracts::TensorSpec> wanted = plan.Tensors();
  std::vector<float> values;
  values.reserve(spec.info.count);
  if (tensors.size() != wanted.size()) {
    return Reason::kShape;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (tensors[i].name != wanted[i].name || tensors[i].shape != wanted[i].shape ||
        tensors[i].values.size() != wanted[i].Size()) {
      return Reason::kShape;
    }
    values.insert(values.end(), tensors[i].values.begin(), tensors[i].values.end());
  }
  // Not finite is refused before clipping: a NaN would pass every comparison.
  if (!updates::ClipL2(clip_l2, values).ok() || !updates::RoundToGrid(spec.grid, values).ok()) {
    return Reason::kNotFinite;
  }
  return Payloads{updates::EncodeF32(values)};
}

std::variant<Payloads, Reason> Encode(const contracts::Plan& plan,
                                      const std::vector<updates::SectionSpec>& specs,
                                      const TaskResult& result, double clip_l2) {
  if (const auto* statistics = std::get_if<StatisticsNumbers>(&result.numbers)) {
    std::vector<std::int64_t> numbers = statistics->count;
    numbers.insert(numbers.end(), statistics->sum.begin(), statistics->sum.end());
    numbers.insert(numbers.end(), statistics->sum_squares.begin(), statistics->sum_squares.end());
    const StatusOr<std::vector<updates::Moments>> moments = updates::ParseMoments(numbers);
    if (!moments.ok() ||
        !updates::CheckSiteMoments(updates::StatisticsRulesOf(plan), *moments).ok()) {
      return Reason::kOutOfRange;
    }
    return EncodeIntegers(specs[0], numbers);
  }
  if (const auto* train = std::get_if<TrainNumbers>(&result.numbers)) {
    return Append(Delta(plan, specs[0], train->delta, clip_l2),
                  Metrics(specs[1], result.rows, train->loss_sum_micro, std::nullopt));
  }
  const auto& evaluation = std::get<EvaluationNumbers>(result.numbers);
  if (plan.schema.label.number) {
    return Metrics(specs[0], result.rows, evaluation.loss_sum_micro, std::nullopt);
  }
  return Append(Metrics(specs[0], result.rows, evaluation.loss_sum_micro, evaluation.correct),
                EncodeIntegers(specs[1], evaluation.histogram));
}

bool IsOfPhase(contracts::PhaseKind phase, const TaskResult& result) {
  switch (phase) {
    case contracts::PhaseKind::kNone:
      return false;
    case contracts::PhaseKind::kStatistics:
      return std::holds_alternative<StatisticsNumbers>(result.numbers);
    case contracts::PhaseKind::kTrain:
      return std::holds_alternative<TrainNumbers>(result.numbers);
    case contracts::PhaseKind::kEvaluate:
      return std::holds_alternative<EvaluationNumbers>(result.numbers);
  }
  return false;
}

// The weight of this site's delta; 1 where the phase has none.
std::int64_t WeightOf(const contracts::Plan& plan, contracts::PhaseKind phase, std::uint64_t rows,
                      const policy::Obligations& obligations) {
  if (phase != contracts::PhaseKind::kTrain ||
      plan.update.weight == contracts::WeightRule::kEqual ||
      obligations.weights == policy::WeightRule::kEqual) {
    return 1;
  }
  const auto step = static_cast<std::int64_t>(std::max<std::uint64_t>(obligations.round_to, 1));
  const auto most = static_cast<std::int64_t>(plan.update.max_weight);
  const std::int64_t exact = std::min(static_cast<std::int64_t>(rows), most);
  // To the nearest multiple; never to 0, which would mean "no examples".
  const std::int64_t rounded = (exact + step / 2) / step * step;
  return std::clamp<std::int64_t>(rounded, 1, most);
}

}  // namespace

std::variant<BuiltUpdate, Reason> BuildUpdate(const contracts::Plan& plan,
                                              const UpdateContext& context,
                                              const TaskResult& result,
                                              const policy::Obligations& obligations) {
  const StatusOr<std::vector<updates::SectionSpec>> specs =
      updates::SectionsOf(plan, context.phase);
  if (!specs.ok() || !IsOfPhase(context.phase, result)) {
    return Reason::kTrainerFailed;
  }
  if (result.rows == 0) {
    return Reason::kNoExamples;
  }
  const double clip = obligations.clip_l2 > 0 ? std::min(obligations.clip_l2, plan.update.clip_l2)
                                              : plan.update.clip_l2;
  std::variant<Payloads, Reason> payloads = Encode(plan, *specs, result, clip);
  if (const auto* reason = std::get_if<Reason>(&payloads)) {
    return *reason;
  }
  updates::UpdateManifest manifest{
      .job = context.job,
      .plan = context.plan,
      .round = context.round,
      .phase = static_cast<updates::UpdatePhase>(context.phase),
      .base_model = context.base_model,
      .policy = context.policy,
      .weight = WeightOf(plan, context.phase, result.rows, obligations),
      .sections = {}};
  BuiltUpdate built;
  std::vector<ByteSpan> spans;
  for (const updates::SectionSpec& spec : *specs) {
    manifest.sections.push_back(spec.info);
    built.numbers += spec.info.count;
  }
  for (const Bytes& payload : std::get<Payloads>(payloads)) {
    spans.emplace_back(payload);
  }
  StatusOr<Bytes> bytes = updates::EncodeUpdate(manifest, spans);
  const StatusOr<std::uint64_t> capacity =
      updates::CapacityBits(manifest, updates::GridsOf(*specs));
  if (!bytes.ok() || !capacity.ok()) {
    return Reason::kShape;
  }
  built.bytes = *std::move(bytes);
  built.digest = crypto::TreeDigest(built.bytes);
  built.capacity_bits = *capacity;
  built.records = result.rows;
  return built;
}

}  // namespace domicile::site_agent

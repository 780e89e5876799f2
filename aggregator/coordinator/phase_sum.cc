#include "aggregator/coordinator/phase_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "aggregator/coordinator/first_model.h"
#include "base/text.h"
#include "contracts/normalisation.h"
#include "updates/clip.h"
#include "updates/fed_avg.h"
#include "updates/metrics.h"
#include "updates/statistics.h"

namespace domicile::aggregator {

namespace {

using contracts::Plan;
using policy::Reason;
using updates::Section;

Refusal Refuse(Reason reason, std::uint64_t limit = 0, std::uint64_t found = 0) {
  Refusal refusal;
  refusal.reason = reason;
  refusal.limit = limit;
  refusal.found = found;
  return refusal;
}

std::string Decimal(std::optional<double> value) { return value ? PrintDouble(*value) : ""; }

bool IsNormalisation(const models::NamedTensor& tensor) {
  return tensor.name == contracts::kMeanTensor || tensor.name == contracts::kDeviationTensor;
}

void SetConstants(std::string_view name, const std::vector<double>& values,
                  std::vector<models::NamedTensor>& model) {
  for (models::NamedTensor& tensor : model) {
    if (tensor.name == name) {
      std::transform(values.begin(), values.end(), tensor.values.begin(),
                     [](double value) { return static_cast<float>(value); });
    }
  }
}

}  // namespace

UpdateChecker::UpdateChecker(const Plan& plan, PhaseKind phase,
                             std::vector<updates::SectionSpec> specs)
    : phase_(phase),
      specs_(std::move(specs)),
      tensors_(plan.Tensors()),
      clip_l2_(plan.update.clip_l2),
      rules_(updates::StatisticsRulesOf(plan)) {}

StatusOr<UpdateChecker> UpdateChecker::Create(const Plan& plan, PhaseKind phase) {
  ASSIGN_OR_RETURN(std::vector<updates::SectionSpec> specs, updates::SectionsOf(plan, phase));
  return UpdateChecker(plan, phase, std::move(specs));
}

std::variant<CheckedUpdate, Refusal> UpdateChecker::Check(ByteSpan update,
                                                          const UpdateExpectation& expected) const {
  const StatusOr<updates::UpdateView> view = updates::ParseUpdate(update);
  if (!view.ok()) {
    return Refuse(Reason::kMalformed);
  }
  CheckedUpdate checked;
  checked.manifest = view->manifest;
  if (std::optional<Refusal> refusal = CheckManifest(view->manifest, expected)) {
    return *refusal;
  }
  if (std::optional<Refusal> refusal = CheckSections(*view, checked)) {
    return *refusal;
  }
  const StatusOr<std::uint64_t> capacity =
      updates::CapacityBits(view->manifest, updates::GridsOf(specs_));
  if (!capacity.ok()) {
    return Refuse(Reason::kShape);
  }
  checked.capacity_bits = *capacity;
  for (const updates::SectionInfo& info : view->manifest.sections) {
    checked.numbers += info.count;
  }
  return checked;
}

std::optional<Refusal> UpdateChecker::CheckManifest(const updates::UpdateManifest& manifest,
                                                    const UpdateExpectation& expected) const {
  const auto phase = static_cast<PhaseKind>(manifest.phase);
  if (manifest.job != expected.job || manifest.plan != expected.plan ||
      manifest.round != expected.key.round || phase != expected.key.phase) {
    return Refuse(Reason::kMalformed);  // the header said another phase than the update itself
  }
  if (manifest.base_model != expected.base_model) {
    return Refuse(Reason::kWrongBaseModel);
  }
  if (manifest.policy != expected.policy) {
    return Refuse(Reason::kPolicyDigestMismatch);
  }
  if (manifest.weight == 0) {
    return Refuse(Reason::kNoExamples);
  }
  const std::int64_t most =
      phase_ == PhaseKind::kTrain ? specs_.front().grid.MaxWeight() : std::int64_t{UINT32_MAX};
  if (manifest.weight > most) {
    return Refuse(Reason::kWeight, static_cast<std::uint64_t>(most),
                  static_cast<std::uint64_t>(manifest.weight));
  }
  return std::nullopt;
}

std::optional<Refusal> UpdateChecker::CheckSections(const updates::UpdateView& view,
                                                    CheckedUpdate& checked) const {
  if (view.sections.size() != specs_.size()) {
    return Refuse(Reason::kShape, specs_.size(), view.sections.size());
  }
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const updates::SectionSpec& spec = specs_[i];
    const updates::SectionView& section = view.sections[i];
    if (section.info != spec.info) {
      return Refuse(
          section.info.encoding != spec.info.encoding ? Reason::kWrongEncoding : Reason::kShape,
          spec.info.count, section.info.count);
    }
    if (spec.info.section == Section::kDelta) {
      if (std::optional<Refusal> refusal = CheckDelta(spec, section.bytes, checked)) {
        return refusal;
      }
      continue;
    }
    StatusOr<std::vector<std::int64_t>> levels =
        updates::DecodeLevels(spec.grid, spec.info.encoding, section.bytes);
    if (!levels.ok()) {
      return Refuse(Reason::kOutOfRange);
    }
    if (!CouldComeFromRows(spec.info.section, *levels)) {
      return Refuse(Reason::kOutOfRange);
    }
    checked.levels.emplace(spec.info.section, *std::move(levels));
  }
  return std::nullopt;
}

// Counts and sums that no rows within the plan's ranges can have are refused before they are added.
bool UpdateChecker::CouldComeFromRows(Section section,
                                      const std::vector<std::int64_t>& levels) const {
  if (section == Section::kMetrics) {
    return updates::ParseMetrics(levels).ok();
  }
  if (section == Section::kStatistics) {
    const StatusOr<std::vector<updates::Moments>> moments = updates::ParseMoments(levels);
    return moments.ok() && updates::CheckSiteMoments(rules_, *moments).ok();
  }
  return std::all_of(levels.begin(), levels.end(), [](std::int64_t count) { return count >= 0; });
}

std::optional<Refusal> UpdateChecker::CheckDelta(const updates::SectionSpec& spec, ByteSpan bytes,
                                                 CheckedUpdate& checked) const {
  StatusOr<updates::GridFloats> delta = updates::GridFloats::Check(spec.grid, bytes);
  if (!delta.ok()) {
    return FirstBadNumber(spec.grid, bytes);
  }
  if (delta->Norm() > updates::LargestNormOnGrid(clip_l2_, spec.info.count, spec.info.scale_bits)) {
    return Refuse(Reason::kNorm);
  }
  checked.delta = *std::move(delta);
  return std::nullopt;
}

// Where and why GridFloats::Check refused, as a code with tensor and index.
Refusal UpdateChecker::FirstBadNumber(const updates::GridPlan& grid, ByteSpan bytes) const {
  Refusal refusal = Refuse(Reason::kWrongEncoding);
  std::uint64_t position = 0;
  for (const contracts::TensorSpec& tensor : tensors_) {
    for (std::uint64_t i = 0; i < tensor.Size(); ++i, ++position) {
      const auto value = std::bit_cast<float>(ReadU32(bytes.subspan(4 * position, 4)));
      const double level = static_cast<double>(value) * grid.Scale();
      if (!std::isfinite(value)) {
        refusal.reason = Reason::kNotFinite;
      } else if (std::fabs(level) > static_cast<double>(grid.MaxLevel())) {
        refusal.reason = Reason::kOutOfRange;
      } else if (level == std::nearbyint(level) && !(value == 0 && std::signbit(value))) {
        continue;
      }
      refusal.tensor = tensor.name;
      refusal.index = i;
      return refusal;
    }
  }
  return refusal;
}

PhaseSum::PhaseSum(PhaseKind phase, const std::vector<updates::SectionSpec>& specs,
                   std::uint32_t bins)
    : phase_(phase), bins_(bins) {
  for (const updates::SectionSpec& spec : specs) {
    sums_.emplace(spec.info.section, updates::ExactSum(spec.grid, spec.info.count));
  }
}

StatusOr<PhaseSum> PhaseSum::Create(const Plan& plan, PhaseKind phase) {
  ASSIGN_OR_RETURN(const std::vector<updates::SectionSpec> specs, updates::SectionsOf(plan, phase));
  return PhaseSum(phase, specs, plan.evaluation.bins);
}

void PhaseSum::Add(const CheckedUpdate& update) {
  for (auto& [section, sum] : sums_) {
    const Status added = section == Section::kDelta ? sum.Add(*update.delta, update.manifest.weight)
                                                    : sum.AddLevels(update.levels.at(section), 1);
    DOMICILE_CHECK(added.ok());  // everything that Add can refuse, Check has refused before
  }
}

StatusOr<PhaseMetrics> PhaseSum::PoolMetrics() const {
  PhaseMetrics pooled;
  pooled.contributors = static_cast<std::uint32_t>(sums_.begin()->second.Contributors());
  if (const auto metrics = sums_.find(Section::kMetrics); metrics != sums_.end()) {
    ASSIGN_OR_RETURN(const updates::MetricSums sums,
                     updates::ParseMetrics(metrics->second.Levels()));
    pooled.examples = static_cast<std::uint64_t>(sums.examples);
    pooled.loss = Decimal(updates::MeanLoss(sums));
    pooled.accuracy = sums.correct ? Decimal(updates::Accuracy(sums)) : "";
  }
  if (sums_.contains(Section::kHistogram)) {
    RETURN_IF_ERROR(PoolHistogram(pooled));
  }
  return pooled;
}

// The majority line, and for two classes the AUC.
Status PhaseSum::PoolHistogram(PhaseMetrics& pooled) const {
  const std::span<const std::int64_t> rows = sums_.at(Section::kHistogram).Levels();
  std::int64_t commonest = 0;
  for (std::size_t begin = 0; begin < rows.size(); begin += bins_) {
    std::int64_t of_class = 0;
    for (const std::int64_t count : rows.subspan(begin, bins_)) {
      of_class += count;
    }
    commonest = std::max(commonest, of_class);
  }
  if (pooled.examples > 0) {
    pooled.majority =
        PrintDouble(static_cast<double>(commonest) / static_cast<double>(pooled.examples));
  }
  if (rows.size() == 2 * std::size_t{bins_}) {
    ASSIGN_OR_RETURN(const std::optional<double> auc, updates::AreaUnderCurve(rows));
    pooled.auc = Decimal(auc);
  }
  return OkStatus();
}

StatusOr<std::variant<PhaseResult, Reason>> PhaseSum::Finish(const Plan& plan,
                                                             ByteSpan model_file) const {
  if (phase_ == PhaseKind::kEvaluate) {
    PhaseResult result;
    ASSIGN_OR_RETURN(result.metrics, PoolMetrics());
    return result;
  }
  ASSIGN_OR_RETURN(std::vector<models::NamedTensor> model, models::ParseSafetensors(model_file));
  return phase_ == PhaseKind::kStatistics ? FinishStatistics(plan, std::move(model))
                                          : FinishTrain(plan, std::move(model));
}

StatusOr<std::variant<PhaseResult, Reason>> PhaseSum::FinishStatistics(
    const Plan& plan, std::vector<models::NamedTensor> model) const {
  const updates::ExactSum& sum = sums_.at(Section::kStatistics);
  ASSIGN_OR_RETURN(const std::vector<updates::Moments> pooled, updates::ParseMoments(sum.Levels()));
  const StatusOr<updates::Normalisation> constants =
      updates::Normalise(updates::StatisticsRulesOf(plan), pooled);
  if (!constants.ok()) {
    return Reason::kNormalisation;
  }
  SetConstants(contracts::kMeanTensor, constants->mean, model);
  SetConstants(contracts::kDeviationTensor, constants->deviation, model);
  PhaseResult result;
  result.model = models::PrintSafetensors(model);
  result.metrics.contributors = static_cast<std::uint32_t>(sum.Contributors());
  return result;
}

StatusOr<std::variant<PhaseResult, Reason>> PhaseSum::FinishTrain(
    const Plan& plan, std::vector<models::NamedTensor> model) const {
  const updates::ExactSum& sum = sums_.at(Section::kDelta);
  // In place, tensor by tensor, in the order of the file, which is the plan's.
  std::span<const std::int64_t> levels = sum.Levels();
  for (models::NamedTensor& tensor : model) {
    if (IsNormalisation(tensor)) {
      continue;
    }
    if (tensor.values.size() > levels.size()) {
      return Error(StatusCode::kDataLoss, "the model has more weights than the plan");
    }
    const Status averaged =
        updates::FedAvg(sum.Plan(), tensor.values, levels.first(tensor.values.size()),
                        sum.TotalWeight(), plan.update.server_learning_rate, tensor.values);
    if (averaged.code() == StatusCode::kFailedPrecondition) {
      return Reason::kNoExamplesAnywhere;
    }
    if (averaged.code() == StatusCode::kOutOfRange) {
      return Reason::kResultNotFinite;
    }
    RETURN_IF_ERROR(averaged);
    levels = levels.subspan(tensor.values.size());
  }
  if (!levels.empty()) {
    return Error(StatusCode::kDataLoss, "the model has fewer weights than the plan");
  }
  PhaseResult result;
  result.model = models::PrintSafetensors(model);
  ASSIGN_OR_RETURN(result.metrics, PoolMetrics());
  return result;
}

}  // namespace domicile::aggregator

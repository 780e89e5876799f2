// The sum of one phase in one epoch, and what becomes of it. Lives in memory only.
//
// Check and Add are apart so that everything that can refuse an update runs before the update is
// recorded as received; Add then cannot fail.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "aggregator/coordinator/refusal.h"
#include "base/bytes.h"
#include "contracts/plan.h"
#include "models/safetensors.h"
#include "updates/encoding.h"
#include "updates/exact_sum.h"
#include "updates/plan_sections.h"
#include "updates/update.h"

namespace domicile::aggregator {

// An update that may be added: parsed, of the right shape, on the grid, within the norm. Borrows
// the bytes it was checked from.
struct CheckedUpdate {
  updates::UpdateManifest manifest;
  std::optional<updates::GridFloats> delta;
  std::map<updates::Section, std::vector<std::int64_t>> levels;
  std::uint64_t capacity_bits = 0;
  std::uint64_t numbers = 0;
};

// What the update must say it is for.
struct UpdateExpectation {
  JobId job;
  Digest plan;
  PhaseKey key;
  Digest base_model;
  Digest policy;  // effective policy of this site
};

// The pooled metrics of one committed phase. Decimals as shortest texts; empty: there is none.
struct PhaseMetrics {
  std::uint32_t contributors = 0;
  std::uint64_t examples = 0;
  std::string loss;
  std::string accuracy;
  std::string majority;
  std::string auc;
};

// What a committed phase makes.
struct PhaseResult {
  std::optional<Bytes> model;  // a new model file; empty if the phase makes none
  PhaseMetrics metrics;
};

// Whether an update may be added: everything that can be said from the bytes and the plan.
// Immutable: many uploads check beside each other.
class UpdateChecker {
 public:
  // Errors: kInvalidArgument, a phase the plan does not have.
  static StatusOr<UpdateChecker> Create(const contracts::Plan& plan, PhaseKind phase);

  // The refusal names tensor and index for a bad number, never the number.
  std::variant<CheckedUpdate, Refusal> Check(ByteSpan update,
                                             const UpdateExpectation& expected) const;

 private:
  UpdateChecker(const contracts::Plan& plan, PhaseKind phase,
                std::vector<updates::SectionSpec> specs);
  std::optional<Refusal> CheckManifest(const updates::UpdateManifest& manifest,
                                       const UpdateExpectation& expected) const;
  std::optional<Refusal> CheckSections(const updates::UpdateView& view,
                                       CheckedUpdate& checked) const;
  std::optional<Refusal> CheckDelta(const updates::SectionSpec& spec, ByteSpan bytes,
                                    CheckedUpdate& checked) const;
  bool CouldComeFromRows(updates::Section section, const std::vector<std::int64_t>& levels) const;
  Refusal FirstBadNumber(const updates::GridPlan& grid, ByteSpan bytes) const;

  PhaseKind phase_;
  std::vector<updates::SectionSpec> specs_;
  std::vector<contracts::TensorSpec> tensors_;
  double clip_l2_;
  updates::StatisticsRules rules_;
};

// The sum itself. One thread at a time.
class PhaseSum {
 public:
  // Errors: kInvalidArgument, a phase the plan does not have.
  static StatusOr<PhaseSum> Create(const contracts::Plan& plan, PhaseKind phase);

  // Adds an update that an UpdateChecker of the same plan and phase accepted.
  void Add(const CheckedUpdate& update);

  // The phase's result from the model its participants started from. A reason if there is none: a
  // result that is not finite, a deviation below the floor, no examples. Errors: kDataLoss or
  // kInvalidArgument, the model file is not what was written.
  StatusOr<std::variant<PhaseResult, policy::Reason>> Finish(const contracts::Plan& plan,
                                                             ByteSpan model_file) const;

 private:
  PhaseSum(PhaseKind phase, const std::vector<updates::SectionSpec>& specs, std::uint32_t bins);
  StatusOr<std::variant<PhaseResult, policy::Reason>> FinishStatistics(
      const contracts::Plan& plan, std::vector<models::NamedTensor> model) const;
  StatusOr<std::variant<PhaseResult, policy::Reason>> FinishTrain(
      const contracts::Plan& plan, std::vector<models::NamedTensor> model) const;
  StatusOr<PhaseMetrics> PoolMetrics() const;
  Status PoolHistogram(PhaseMetrics& pooled) const;

  PhaseKind phase_;
  std::uint32_t bins_;
  std::map<updates::Section, updates::ExactSum> sums_;
};

}  // namespace domicile::aggregator

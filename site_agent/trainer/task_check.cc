#include "site_agent/trainer/task_check.h"

#include <algorithm>
#include <utility>

#include "contracts/grant.h"
#include "crypto/sha256.h"

namespace domicile::site_agent {

namespace {

TaskCheck Refuse(policy::Reason reason) { return {reason, {}}; }

}  // namespace

TaskCheck CheckTask(const TaskMessage& task, std::uint64_t payload_bytes, const OwnFacts& own,
                    WallTime now) {
  StatusOr<contracts::Plan> plan = contracts::PlanFromText(task.plan);
  if (!plan.ok()) {
    return Refuse(policy::Reason::kMalformed);
  }
  const auto dataset =
      std::find_if(own.datasets.begin(), own.datasets.end(),
                   [&](const DatasetFact& fact) { return fact.alias == plan->dataset; });
  if (dataset == own.datasets.end()) {
    return Refuse(policy::Reason::kDatasetUnknown);
  }
  contracts::GrantBody wanted;
  wanted.federation = own.federation;
  wanted.site = own.site;
  wanted.job = task.job;
  wanted.plan = crypto::Sha256(AsBytes(task.plan));
  wanted.trainer = own.trainer;
  wanted.base_model = task.base_model;
  wanted.dataset = dataset->alias;
  wanted.dataset_commitment = dataset->commitment;
  wanted.effective_policy = task.effective_policy;
  const contracts::GrantCheck grant = contracts::VerifyGrant(task.grant, own.approval, wanted, now);
  if (grant.reason != policy::Reason::kNone) {
    return Refuse(grant.reason);
  }
  const std::vector<contracts::PhaseKind> phases = plan->Phases(task.round);
  if (std::find(phases.begin(), phases.end(), task.phase) == phases.end()) {
    return Refuse(policy::Reason::kRoundNotOpen);
  }
  // The agent checks every later model against the one before; the first is in the grant.
  if (task.round == 1 && task.phase == phases.front() && task.model != task.base_model) {
    return Refuse(policy::Reason::kGrantBaseModel);
  }
  if (payload_bytes == 0) {
    return Refuse(policy::Reason::kModelShape);
  }
  if (payload_bytes > std::min(own.model_bytes, MaxModelBytes(*plan))) {
    return Refuse(policy::Reason::kTooLarge);
  }
  return {policy::Reason::kNone, *std::move(plan)};
}

}  // namespace domicile::site_agent

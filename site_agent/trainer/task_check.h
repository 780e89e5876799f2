// Whether a task may run: the trainer's own verification, by facts that the agent cannot change.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "contracts/approval.h"
#include "contracts/plan.h"
#include "policy/reason.h"
#include "site_agent/trainer/protocol.h"

namespace domicile::site_agent {

// What the trainer knows by itself: from its configuration, its program file and its data.
struct OwnFacts {
  std::string federation;
  SiteId site;
  Digest trainer;
  std::vector<DatasetFact> datasets;
  contracts::ApprovalRules approval;
  std::uint64_t model_bytes = 0;
};

struct TaskCheck {
  policy::Reason reason = policy::Reason::kGrantSignature;
  contracts::Plan plan;  // meaningful if reason is kNone
};

// kNone if the task may run. Else kMalformed (the plan does not parse), kDatasetUnknown, a reason
// of VerifyGrant, kRoundNotOpen (the plan has no such phase in that round), kGrantBaseModel (the
// job's first phase with another model than the grant names), kModelShape (no model), kTooLarge.
TaskCheck CheckTask(const TaskMessage& task, std::uint64_t payload_bytes, const OwnFacts& own,
                    WallTime now);

}  // namespace domicile::site_agent

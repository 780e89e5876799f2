// One job as the coordinator holds it: its documents, the state of its round machine, the sum of
// its open phase.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "aggregator/coordinator/gate.h"
#include "aggregator/coordinator/messages.h"
#include "aggregator/coordinator/phase_sum.h"
#include "aggregator/coordinator/store.h"
#include "aggregator/rounds/machine.h"
#include "audit/event.h"
#include "base/clock.h"
#include "contracts/plan.h"

namespace domicile::aggregator {

// What sites are to be told of a job. Each is proven by a signed head, which a full disk may delay.
struct CommitDue {
  PhaseKey key;
};
struct OpeningDue {
  PhaseKey key;
  Epoch epoch;
};
struct EndDue {
  JobStage stage = JobStage::kNone;
  policy::Reason reason = policy::Reason::kNone;
};
using Due = std::variant<CommitDue, OpeningDue, EndDue>;

// One thread at a time.
struct Job {
  Job(JobId job_id, contracts::Plan job_plan);

  // Fixed for life.
  JobId id;
  // shared_ptr: an upload under way checks against it while the coordinator goes on.
  std::shared_ptr<const contracts::Plan> plan;
  std::string plan_text;
  Digest plan_digest;
  ModelRow base_model;
  std::int64_t submitted_unix_seconds = 0;

  JobState state;
  ModelRow model;  // that participants of the current phase start from
  // Sites whose records are behind `model`, and who was behind the last commit.
  std::set<SiteId> contributors;
  Contributors last_contributors;
  // Of each person, how many of `metrics` they may see or not see, as logged.
  std::map<std::string, std::pair<std::size_t, policy::Reason>> viewed;

  std::optional<PhaseSum> sum;  // of the open phase
  std::uint64_t opened_leaf = 0;
  MonotonicTime armed_at;                   // when the deadline that runs began to, in this start
  std::map<SiteId, std::uint32_t> percent;  // of the open phase
  std::vector<MetricsView> metrics;
  std::map<std::pair<RoundNumber, PhaseKind>, CommitRow> commits;
  std::deque<Due> due;  // not told yet, in order
  std::uint64_t change = 1;

  bool HasEnded() const { return aggregator::HasEnded(state.stage); }
  JobView View() const;
};

// How often the time waited for a deadline is written down, and what each start of the aggregator
// costs of it: so many starts, each a moment after the last, still come to the deadline.
std::chrono::seconds WaitPace(std::chrono::seconds deadline);

audit::PhaseKey LogKey(const JobId& job, const PhaseKey& key, const Epoch& epoch);

// Pooled metrics as stored, and back. Errors: kDataLoss.
std::string PrintMetrics(const PhaseMetrics& metrics);
StatusOr<PhaseMetrics> ParsePhaseMetrics(std::string_view text);

}  // namespace domicile::aggregator

// Opening: the store, the log, the jobs as they were.
#include <utility>

#include "aggregator/coordinator/coordinator.h"
#include "aggregator/rounds/event_json.h"
#include "audit/records.h"
#include "base/log.h"
#include "crypto/sha256.h"

namespace domicile::aggregator {

namespace {

Digest DigestOf(std::string_view text) { return crypto::Sha256(AsBytes(text)); }

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options, contracts::Identity identity, Store store,
                         const Clock& clock)
    : options_(std::move(options)),
      identity_(std::move(identity)),
      clock_(clock),
      store_(std::move(store)),
      keeper_(options_.policies, policy_books_, clock_),
      timers_(clock) {}

Coordinator::~Coordinator() = default;

StatusOr<std::unique_ptr<Coordinator>> Coordinator::Open(CoordinatorOptions options,
                                                         contracts::Identity identity,
                                                         const Clock& clock, Random& random) {
  ASSIGN_OR_RETURN(Store store, Store::Open(options.state_folder));
  // Not make_unique: the constructor is private.
  std::unique_ptr<Coordinator> made(
      new Coordinator(std::move(options), std::move(identity), std::move(store), clock));
  {
    const MutexLock lock(made->mutex_);
    ASSIGN_OR_RETURN(audit::Log log,
                     audit::Log::Open(made->store_.Db(), *made->identity_.log_key, clock, random));
    made->log_.emplace(std::move(log));
    RETURN_IF_ERROR(made->LogStart());
  }
  ASSIGN_OR_RETURN(OwnPolicies policies, made->keeper_.Look());
  const MutexLock lock(made->mutex_);
  made->own_policies_ = OwnDigests(policies);
  made->policies_ = std::move(policies);
  RETURN_IF_ERROR(made->RestoreSites());
  RETURN_IF_ERROR(made->RestoreJobs());
  return made;
}

Status Coordinator::LogStart() {
  const crypto::SpiffeName& name = identity_.Name();
  RETURN_IF_ERROR(AppendLeaf(audit::EventBuilder(audit::EventType::kAggregatorStarted)
                                 .Set("aggregator", name.name)
                                 .Set("jurisdiction", name.jurisdiction)
                                 .Set("starts", store_.Starts())
                                 .Set("version", options_.version)
                                 .Build()));
  return AppendLeaf(audit::EventBuilder(audit::EventType::kRosterLoaded)
                        .Set("digest", DigestOf(identity_.files.roster_note))
                        .Set("version", identity_.roster.version)
                        .Build());
}

Status Coordinator::RestoreSites() {
  ASSIGN_OR_RETURN(const auto rows, store_.Sites());
  for (const auto& [site, row] : rows) {
    const contracts::RosterEntry* entry = identity_.roster.Find(crypto::Role::kSite, site.text());
    if (entry == nullptr) {
      continue;  // removed from the roster: it speaks for nothing any more
    }
    StatusOr<SitePolicy> policy = MeetStatement(policies_, row.statement, *entry);
    if (!policy.ok()) {
      LogWarning("the last policy statement of site `" + site.text() +
                 "` no longer holds: " + std::string(Message(policy.status())));
      continue;
    }
    known_.insert_or_assign(
        site,
        KnownSite{.row = row, .policy = *std::move(policy), .entry = *entry, .clock_skew = {}});
  }
  return OkStatus();
}

Status Coordinator::RestoreJobs() {
  ASSIGN_OR_RETURN(const std::vector<JobRow> rows, store_.Jobs());
  for (const JobRow& row : rows) {
    RETURN_IF_ERROR(Annotate(RestoreJob(row), "job `" + row.job.text() + "`"));
  }
  for (const JobId& id : job_order_) {
    Job& job = *jobs_.at(id);
    if (!job.HasEnded()) {
      ASSIGN_OR_RETURN(const Event started, StartedEvent(job));
      RETURN_IF_ERROR(Apply(job, started));
    }
  }
  return OkStatus();
}

Status Coordinator::RestoreJob(const JobRow& row) {
  ASSIGN_OR_RETURN(contracts::Plan plan, contracts::PlanFromText(row.plan));
  auto job = std::make_unique<Job>(row.job, std::move(plan));
  job->submitted_unix_seconds = row.submitted_unix_seconds;
  for (const std::string& text : row.events) {
    ASSIGN_OR_RETURN(const Event event, ParseEvent(text));
    Step(job->state, event);
    if (const auto* committed = std::get_if<PhaseCommitted>(&event)) {
      for (const Contributor& contributor : committed->contributors) {
        job->contributors.insert(contributor.site);
      }
      job->last_contributors = InRoster(committed->contributors);
    }
  }
  ASSIGN_OR_RETURN(const std::optional<ModelRow> first, store_.ModelAfter(row.job, 0));
  ASSIGN_OR_RETURN(const std::optional<ModelRow> last, store_.ModelAfter(row.job, UINT32_MAX));
  if (!first || !last || last->digest != job->state.model) {
    return Error(StatusCode::kDataLoss, "its model rows do not fit its events");
  }
  job->base_model = *first;
  job->model = *last;
  ASSIGN_OR_RETURN(const std::vector<CommitRow> commits, store_.Commits(row.job));
  for (const CommitRow& commit : commits) {
    ASSIGN_OR_RETURN(const PhaseMetrics metrics, ParsePhaseMetrics(commit.metrics));
    job->metrics.push_back(
        {.key = {.round = commit.round, .phase = commit.phase}, .metrics = metrics});
    job->commits[{commit.round, commit.phase}] = commit;
  }
  job_order_.push_back(row.job);
  jobs_.emplace(row.job, std::move(job));
  return OkStatus();
}

}  // namespace domicile::aggregator

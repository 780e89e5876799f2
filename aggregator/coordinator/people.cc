// What people ask for: jobs, their state, their models.
#include <algorithm>
#include <utility>

#include "aggregator/coordinator/coordinator.h"
#include "aggregator/coordinator/first_model.h"
#include "audit/records.h"
#include "base/log.h"
#include "contracts/plan_facts.h"
#include "crypto/tree_digest.h"
#include "updates/plan_sections.h"

namespace domicile::aggregator {

namespace {

Status NoSuchJob(const JobId& job) {
  return Error(StatusCode::kNotFound,
               "there is no job `" + job.text() + "`; `domicile job list` names them");
}

}  // namespace

StatusOr<JobView> Coordinator::Submit(std::string_view operator_name, std::string_view job_file,
                                      std::string_view file_name) {
  ASSIGN_OR_RETURN(contracts::Plan plan, contracts::PlanFromJobFile(job_file, file_name));
  ASSIGN_OR_RETURN(const std::uint64_t update_bytes, updates::LargestUpdateBytes(plan));
  if (update_bytes > options_.max_update_bytes) {
    return Error(StatusCode::kInvalidArgument,
                 std::string(file_name) + ": an update of this job has up to " +
                     std::to_string(update_bytes) +
                     " bytes, but `limits.update_bytes` of this aggregator is " +
                     std::to_string(options_.max_update_bytes));
  }
  ASSIGN_OR_RETURN(const Bytes model, FirstModel(plan, options_.pretrained));
  const ModelRow first{.digest = crypto::TreeDigest(model), .size_bytes = model.size()};

  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(store_.WriteModel(first.digest, model));
  const std::string plan_digest =
      PrintHex(Job(JobId(), plan).plan_digest);  // names the job, with its ordinal
  ASSIGN_OR_RETURN(const JobId id, JobId::Parse("job-" + plan_digest.substr(0, 8) + "-" +
                                                std::to_string(job_order_.size() + 1)));
  auto job = std::make_unique<Job>(id, std::move(plan));
  job->base_model = first;
  job->model = first;
  job->submitted_unix_seconds =
      std::chrono::floor<std::chrono::seconds>(clock_.Now()).time_since_epoch().count();
  ASSIGN_OR_RETURN(const audit::Event leaf, audit::EventBuilder(audit::EventType::kJobSubmitted)
                                                .Set("job", id)
                                                .Set("plan", job->plan_digest)
                                                .Set("base_model", first.digest)
                                                .Set("operator", std::string(operator_name))
                                                .Build());
  const auto rows = [&]() -> Status {
    RETURN_IF_ERROR(store_.AddJob({.job = id,
                                   .plan = job->plan_text,
                                   .base_model = first.digest,
                                   .submitted_unix_seconds = job->submitted_unix_seconds,
                                   .events = {}}));
    return store_.AddModel(id, 0, first);
  };
  const Submitted submitted{.starts = store_.Starts(), .model = first.digest};
  RETURN_IF_ERROR(Apply(*job, submitted, {leaf}, rows));
  Job& kept = *jobs_.emplace(id, std::move(job)).first->second;
  job_order_.push_back(id);
  for (const auto& [site, session] : sessions_) {
    if (session.datasets.contains(kept.plan->dataset)) {
      RETURN_IF_ERROR(Apply(kept, SiteConnected{.site = site}));
    }
  }
  LogInfo("job `" + id.text() + "` submitted by `" + std::string(operator_name) + "`");
  return kept.View();
}

std::vector<JobView> Coordinator::List() {
  const MutexLock lock(mutex_);
  std::vector<JobView> views;
  views.reserve(job_order_.size());
  for (const JobId& id : job_order_) {
    views.push_back(jobs_.at(id)->View());
    views.back().metrics.clear();  // shown one job at a time, where it is decided
  }
  return views;
}

StatusOr<JobView> Coordinator::Show(std::string_view operator_name, const JobId& id) {
  return WaitForChange(operator_name, id, 0, std::chrono::milliseconds(0));
}

StatusOr<JobView> Coordinator::WaitForChange(std::string_view operator_name, const JobId& id,
                                             std::uint64_t seen,
                                             std::chrono::milliseconds timeout) {
  const MutexLock lock(mutex_);
  Job* job = FindJob(id);
  if (job == nullptr) {
    return NoSuchJob(id);
  }
  changed_.wait_for(mutex_, timeout, [job, seen] { return job->change != seen; });
  JobView view = job->View();
  if (view.change != seen) {
    RETURN_IF_ERROR(DecideMetrics(operator_name, *job, view));
  } else {
    view.metrics.clear();  // nothing that has not been told
  }
  for (SiteView& site : view.sites) {
    if (const auto known = known_.find(site.site); known != known_.end()) {
      site.jurisdiction = known->second.entry.jurisdiction;
    }
  }
  return view;
}

Status Coordinator::Cancel(std::string_view operator_name, const JobId& id) {
  const MutexLock lock(mutex_);
  Job* job = FindJob(id);
  if (job == nullptr) {
    return NoSuchJob(id);
  }
  if (job->HasEnded()) {
    return Error(StatusCode::kFailedPrecondition,
                 "job `" + id.text() + "` has ended: " + std::string(StageName(job->state.stage)));
  }
  LogInfo("job `" + id.text() + "` cancelled by `" + std::string(operator_name) + "`");
  return Apply(*job, Cancelled{});
}

StatusOr<std::variant<Coordinator::ReleasedModel, Refusal>> Coordinator::ReleaseModel(
    std::string_view operator_name, const JobId& id, RoundNumber round) {
  const MutexLock lock(mutex_);
  Job* job = FindJob(id);
  if (job == nullptr) {
    return NoSuchJob(id);
  }
  if (round > job->state.rounds_committed) {
    return Error(StatusCode::kNotFound, "job `" + id.text() + "` has committed " +
                                            std::to_string(job->state.rounds_committed) +
                                            " rounds, not " + std::to_string(round));
  }
  const RoundNumber wanted = round == 0 ? job->state.rounds_committed : round;
  ASSIGN_OR_RETURN(const std::optional<ModelRow> model, store_.ModelAfter(id, wanted));
  if (!model) {
    return Error(StatusCode::kDataLoss, "the model of job `" + id.text() + "` is not in the store");
  }
  const policy::Party recipient = contracts::OperatorParty(operator_name, identity_.entry);
  const audit::PartyPlace from{.party = "aggregator/" + identity_.entry.name,
                               .jurisdiction = identity_.entry.jurisdiction};
  const audit::PartyPlace to{.party = "operator/" + std::string(operator_name),
                             .jurisdiction = recipient.jurisdiction};
  std::set<std::string> rules;
  const std::optional<Decided> denial = FirstDenial(*job, recipient, &rules);
  audit::EventBuilder leaf(denial ? audit::EventType::kModelReleaseDenied
                                  : audit::EventType::kModelReleased);
  leaf.Set("job", id)
      .Set("round", std::max<RoundNumber>(wanted, 1))
      .Set("model", model->digest)
      .Set("kind", "model.final")
      .Set("from", ToJson(from))
      .Set("to", ToJson(to));
  if (denial) {
    RETURN_IF_ERROR(AppendLeaf(leaf.Set("decision", ToJson(denial->record)).Build()));
    Refusal refusal;
    refusal.reason = denial->decision.Why();
    refusal.job = id;
    return refusal;
  }
  const audit::DecisionRecord allowed{
      .result = "allow",
      .reasons = {std::string(policy::Code(policy::Reason::kPermitted))},
      .rules = {rules.begin(), rules.end()},
      .policies = own_policies_};
  RETURN_IF_ERROR(
      AppendLeaf(leaf.Set("bytes", model->size_bytes).Set("decision", ToJson(allowed)).Build()));
  return ReleasedModel{.model = *model, .path = store_.ModelPath(model->digest)};
}

void Coordinator::LogRefusedPeers(std::uint64_t count, std::chrono::seconds period) {
  const MutexLock lock(mutex_);
  Json tally;
  tally.Set("reason", std::string(policy::Code(policy::Reason::kCertificate)));
  tally.Set("count", count);
  const Status logged = AppendLeaf(audit::EventBuilder(audit::EventType::kPeerRefused)
                                       .Set("seconds", period.count())
                                       .Set("counts", Json(JsonArray{tally}))
                                       .Build());
  if (!logged.ok()) {
    LogError("logging refused peers: " + std::string(Message(logged)));
  }
}

void Coordinator::LogStopped() {
  const MutexLock lock(mutex_);
  const Status logged = AppendLeaf(audit::EventBuilder(audit::EventType::kAggregatorStopped)
                                       .Set("starts", store_.Starts())
                                       .Build());
  if (!logged.ok()) {
    LogError("logging the stop: " + std::string(Message(logged)));
  }
  log_->Head().IgnoreError();  // signs what is there; at the next start otherwise
}

}  // namespace domicile::aggregator

// Policies that change while jobs run: a new version is weighed, and what rests on the old one
// ends.
#include <utility>

#include "aggregator/coordinator/coordinator.h"
#include "base/log.h"

namespace domicile::aggregator {

namespace {

using policy::Reason;

constexpr std::chrono::seconds kRetry{1};

}  // namespace

Status Coordinator::LookAtPolicies() {
  ASSIGN_OR_RETURN(OwnPolicies now, keeper_.Look());
  const MutexLock lock(mutex_);
  if (now.federation_text == policies_.federation_text &&
      now.aggregator_text == policies_.aggregator_text && now.facts_text == policies_.facts_text) {
    return OkStatus();
  }
  policies_ = std::move(now);
  own_policies_ = OwnDigests(policies_);
  std::vector<SiteId> changed;
  for (auto& [site, known] : known_) {
    ASSIGN_OR_RETURN(SitePolicy policy, MeetStatement(policies_, known.row.statement, known.entry));
    if (policy.digests.effective != known.policy.digests.effective) {
      changed.push_back(site);
    }
    known.policy = std::move(policy);
  }
  LogInfo("policies were loaded anew: they are others for " + std::to_string(changed.size()) +
          " sites, which are asked again");
  for (const JobId& id : job_order_) {
    if (Job& job = *jobs_.at(id); !job.HasEnded()) {
      WithdrawAnswers(job, changed);
    }
  }
  // Also those to whom the new texts mean the same: they check them to the byte.
  std::vector<SiteId> connected;
  for (const auto& [site, session] : sessions_) {
    connected.push_back(site);
  }
  for (const SiteId& site : connected) {
    SendAway(site);
  }
  return OkStatus();
}

void Coordinator::WithdrawAnswers(Job& job, const std::vector<SiteId>& sites) {
  AnswersWithdrawn event{.sites = {}, .reason = Reason::kPolicyDigestMismatch};
  std::vector<audit::Event> leaves;
  for (const SiteId& site : sites) {
    const auto answered = job.state.sites.find(site);
    if (answered == job.state.sites.end() || answered->second.answer == Answer::kNone) {
      continue;
    }
    event.sites.push_back(site);
    StatusOr<audit::Event> leaf = audit::EventBuilder(audit::EventType::kOfferHeld)
                                      .Set("job", job.id)
                                      .Set("plan", job.plan_digest)
                                      .Set("site", site)
                                      .Set("reason", std::string(policy::Code(event.reason)))
                                      .Build();
    DOMICILE_CHECK(leaf.ok());
    leaves.push_back(*std::move(leaf));
  }
  if (!event.sites.empty() && !Apply(job, event, std::move(leaves)).ok()) {
    // Until it is recorded no update of these sites is taken; what is in the sum is decided anew.
    ApplyLater(job.id, "withdrawn/" + job.id.text(), kRetry, event);
  }
}

void Coordinator::SendAway(const SiteId& site) {
  const std::shared_ptr<SitePort> port = sessions_.at(site).port;  // kept while its session goes
  Leave(site);
  Refusal refusal;
  refusal.reason = Reason::kPolicyDigestMismatch;
  port->End(refusal);
}

}  // namespace domicile::aggregator

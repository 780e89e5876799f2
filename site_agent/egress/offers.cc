// Offers: decided, held for approval, answered again when one arrives.
#include <utility>

#include "audit/records.h"
#include "base/log.h"
#include "contracts/plan_facts.h"
#include "crypto/sha256.h"
#include "site_agent/egress/agent.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;

// A request proposes this life of the grant; the person who signs may shorten it.
constexpr std::chrono::hours kGrantLife{24 * 30};

v1::SiteMessage Reply(const JobRow& row, v1::Answer answer, Reason reason) {
  v1::SiteMessage message;
  v1::OfferReply* reply = message.mutable_offer_reply();
  const Digest plan = crypto::Sha256(AsBytes(row.plan));
  reply->set_job(row.job.text());
  reply->set_plan_digest(plan.bytes.data(), plan.bytes.size());
  reply->set_answer(answer);
  reply->set_reason(static_cast<std::uint32_t>(reason));
  return message;
}

}  // namespace

Status Agent::TakeOffer(const v1::JobOffer& offer, Connection& connection) {
  ASSIGN_OR_RETURN(const JobId job, JobId::Parse(offer.job()));
  ASSIGN_OR_RETURN(const Digest base_model, DigestFromBytes(AsBytes(offer.base_model().digest())));
  ASSIGN_OR_RETURN(std::optional<JobRow> known,
                   books_->With([&](SiteStore& store) { return store.FindJob(job); }));
  if (known && (known->plan != offer.plan() || known->base_model != base_model)) {
    return Error(StatusCode::kFailedPrecondition,
                 "job `" + job.text() + "` was offered before with another plan or first model");
  }
  if (!known) {
    known = JobRow{.job = job,
                   .plan = offer.plan(),
                   .base_model = base_model,
                   .base_model_bytes = offer.base_model().size_bytes(),
                   .last_model = {},
                   .train_commits = 0,
                   .statistics_committed = false,
                   .committed_model = {},
                   .committed_leaf = 0};
    RETURN_IF_ERROR(books_
                        ->Record([&](SiteStore& store, std::uint64_t) -> StatusOr<audit::Event> {
                          RETURN_IF_ERROR(store.PutJob(*known));
                          return audit::EventBuilder(audit::EventType::kJobOffered)
                              .Set("job", job)
                              .Set("plan", crypto::Sha256(AsBytes(offer.plan())))
                              .Set("base_model", base_model)
                              .Build();
                        })
                        .status());
  }
  return AnswerOffer(*known, connection);
}

Status Agent::AnswerOffer(const JobRow& row, Connection& connection) {
  const Terms& terms = connection.terms;
  const Digest plan_digest = crypto::Sha256(AsBytes(row.plan));
  const auto answer = [&](audit::EventType type, v1::Answer word, Reason reason,
                          const audit::DecisionRecord* decision) -> Status {
    audit::EventBuilder leaf(type);
    leaf.Set("job", row.job).Set("plan", plan_digest);
    leaf.Set("reason", std::string(policy::Code(reason)));
    if (decision != nullptr) {
      leaf.Set("decision", ToJson(*decision));
    }
    RETURN_IF_ERROR(books_->Append(leaf.Build()).status());
    return connection.control->Send(Reply(row, word, reason));
  };
  const StatusOr<contracts::Plan> plan = contracts::PlanFromText(row.plan);
  const std::optional<HelloMessage> trainer = trainer_.Facts();
  if (!plan.ok() || !trainer) {
    return answer(audit::EventType::kOfferDeclined, v1::ANSWER_DECLINE,
                  plan.ok() ? Reason::kTrainerUnavailable : Reason::kMalformed, nullptr);
  }
  const contracts::GrantBody wanted = WantedGrant(*site_, terms, row, *plan, *trainer);
  if (wanted.dataset_commitment.IsZero()) {
    return answer(audit::EventType::kOfferDeclined, v1::ANSWER_DECLINE, Reason::kDatasetUnknown,
                  nullptr);
  }
  Reason why = Reason::kApprovalMissing;
  ASSIGN_OR_RETURN(const std::optional<FoundGrant> grant,
                   FindGrant(config_, wanted, clock_.Now(), why));
  ASSIGN_OR_RETURN(const JobBorder border,
                   BorderOfJob(*site_, terms, *plan, {.job = row.job, .round = 0, .phase = {}},
                               grant ? grant->approvals : std::vector<policy::PresentApproval>{}));
  const Decided decided = DecideOffer(terms.policies, *plan, border, clock_.Now());
  if (decided.decision.result == policy::Result::kDeny) {
    held_.erase(row.job);
    LogWarning("job `" + row.job.text() +
               "` declined: " + std::string(policy::Code(decided.decision.Why())));
    return answer(audit::EventType::kOfferDeclined, v1::ANSWER_DECLINE, decided.decision.Why(),
                  &decided.record);
  }
  if (!grant || !decided.Allowed()) {
    const bool first = held_.insert(row.job).second;
    if (first) {
      contracts::GrantBody request = wanted;
      request.not_after = clock_.Now() + kGrantLife;
      RETURN_IF_ERROR(WriteRequest(config_, request, row.plan));
      RETURN_IF_ERROR(books_
                          ->Append(audit::EventBuilder(audit::EventType::kGrantRequested)
                                       .Set("job", row.job)
                                       .Set("plan", plan_digest)
                                       .Set("dataset", plan->dataset)
                                       .Set("dataset_commitment", wanted.dataset_commitment)
                                       .Set("base_model", row.base_model)
                                       .Set("trainer", wanted.trainer)
                                       .Set("effective_policy", wanted.effective_policy)
                                       .Build())
                          .status());
      LogInfo("job `" + row.job.text() + "` waits for approval: see `" + config_.requests + "`");
    }
    return answer(audit::EventType::kOfferHeld, v1::ANSWER_HOLD, why, &decided.record);
  }
  held_.erase(row.job);
  RETURN_IF_ERROR(books_
                      ->Append(audit::EventBuilder(audit::EventType::kGrantLoaded)
                                   .Set("grant", grant->digest)
                                   .Set("job", row.job)
                                   .Set("plan", plan_digest)
                                   .Set("dataset", plan->dataset)
                                   .Set("dataset_commitment", wanted.dataset_commitment)
                                   .Set("base_model", row.base_model)
                                   .Set("trainer", wanted.trainer)
                                   .Set("effective_policy", wanted.effective_policy)
                                   .Set("not_after", grant->body.not_after)
                                   .Build())
                      .status());
  const std::uint32_t floor = terms.policies.effective.MinContributors(plan->dataset);
  RETURN_IF_ERROR(books_
                      ->Append(audit::EventBuilder(audit::EventType::kOfferAccepted)
                                   .Set("job", row.job)
                                   .Set("plan", plan_digest)
                                   .Set("min_contributors", floor)
                                   .Set("effective_policy", terms.policies.digests.effective)
                                   .Set("grant", grant->digest)
                                   .Set("decision", ToJson(decided.record))
                                   .Build())
                      .status());
  v1::SiteMessage message = Reply(row, v1::ANSWER_ACCEPT, Reason::kNone);
  message.mutable_offer_reply()->set_min_contributors(floor);
  const Digest& policy = terms.policies.digests.effective;
  message.mutable_offer_reply()->set_effective_policy_digest(policy.bytes.data(),
                                                             policy.bytes.size());
  LogInfo("job `" + row.job.text() + "` accepted");
  return connection.control->Send(message);
}

Status Agent::AnswerHeld(Connection& connection) {
  const std::set<JobId> held = held_;
  for (const JobId& job : held) {
    ASSIGN_OR_RETURN(const std::optional<JobRow> row,
                     books_->With([&](SiteStore& store) { return store.FindJob(job); }));
    if (row) {
      RETURN_IF_ERROR(AnswerOffer(*row, connection));
    }
  }
  return OkStatus();
}

}  // namespace domicile::site_agent

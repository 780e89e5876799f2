// Offers: decided, held for approval, answered again when one arrives.
#include <utility>

#include "audit/records.h"
#include "base/log.h"
#include "contracts/plan_facts.h"
#include "crypto/sha256.h"
#include "site_agent/egress/agent.h"
#include "site_agent/egress/outbox.h"
#include "site_agent/egress/wire_words.h"

namespace domicile::site_agent {

namespace {

using policy::Reason;

// A request proposes this life of the grant; the person who signs may shorten it.
constexpr std::chrono::hours kGrantLife{24 * 30};

v1::SiteMessage Reply(const JobRow& row, v1::Answer answer, Reason reason) {
  v1::SiteMessage message;
  v1::OfferReply* reply = message.mutable_offer_reply();
  reply->set_job(row.job.text());
  reply->set_plan_digest(Raw(crypto::Sha256(AsBytes(row.plan))));
  reply->set_answer(answer);
  reply->set_reason(static_cast<std::uint32_t>(reason));
  return message;
}

// What a grant is asked for, or was loaded for.
void SetWanted(audit::EventBuilder& leaf, const contracts::GrantBody& wanted) {
  leaf.Set("job", wanted.job)
      .Set("plan", wanted.plan)
      .Set("dataset", wanted.dataset)
      .Set("dataset_commitment", wanted.dataset_commitment)
      .Set("base_model", wanted.base_model)
      .Set("trainer", wanted.trainer)
      .Set("effective_policy", wanted.effective_policy);
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

struct Agent::OfferAtHand {
  const JobRow& row;
  Connection& connection;
  Digest plan_digest;
  DatasetAlias dataset;
  contracts::GrantBody wanted;
};

Status Agent::AnswerOffer(const JobRow& row, Connection& connection) {
  const Terms& terms = connection.terms;
  OfferAtHand offer{.row = row,
                    .connection = connection,
                    .plan_digest = crypto::Sha256(AsBytes(row.plan)),
                    .dataset = {},
                    .wanted = {}};
  const StatusOr<contracts::Plan> plan = contracts::PlanFromText(row.plan);
  if (!plan.ok()) {
    return Decline(offer, Reason::kMalformed, nullptr);
  }
  const std::optional<HelloMessage> trainer = trainer_.Facts();
  if (!trainer) {
    return Decline(offer, Reason::kTrainerUnavailable, nullptr);
  }
  offer.dataset = plan->dataset;
  offer.wanted = WantedGrant(*site_, terms, row, *plan, *trainer);
  if (offer.wanted.dataset_commitment.IsZero()) {
    return Decline(offer, Reason::kDatasetUnknown, nullptr);
  }
  Reason why = Reason::kApprovalMissing;
  ASSIGN_OR_RETURN(const std::optional<FoundGrant> grant,
                   GrantFor(*site_, terms, offer.wanted, why));
  if (why == Reason::kApprovalDenied || why == Reason::kGrantUsed) {
    return Decline(offer, why, nullptr);
  }
  ASSIGN_OR_RETURN(const JobBorder border,
                   BorderOfJob(*site_, terms, *plan, {.job = row.job, .round = 0, .phase = {}},
                               grant ? &*grant : nullptr));
  const Decided decided = DecideOffer(terms.policies, *plan, border, clock_.Now());
  if (decided.decision.result == policy::Result::kDeny) {
    return Decline(offer, decided.decision.Why(), &decided);
  }
  return grant && decided.Allowed() ? Accept(offer, *grant, decided) : Hold(offer, why, decided);
}

Status Agent::Decline(const OfferAtHand& offer, Reason reason, const Decided* decided) {
  held_.erase(offer.row.job);
  LogWarning("job `" + offer.row.job.text() + "` declined: " + std::string(policy::Code(reason)));
  audit::EventBuilder leaf(audit::EventType::kOfferDeclined);
  leaf.Set("job", offer.row.job).Set("plan", offer.plan_digest);
  leaf.Set("reason", std::string(policy::Code(reason)));
  if (decided != nullptr) {
    leaf.Set("decision", ToJson(decided->record));
  }
  RETURN_IF_ERROR(books_->Append(leaf.Build()).status());
  return offer.connection.control->Send(Reply(offer.row, v1::ANSWER_DECLINE, reason));
}

Status Agent::Hold(const OfferAtHand& offer, Reason why, const Decided& decided) {
  const JobRow& row = offer.row;
  if (held_.insert(row.job).second) {
    contracts::GrantBody request = offer.wanted;
    request.not_after = clock_.Now() + kGrantLife;
    RETURN_IF_ERROR(WriteRequest(config_, request, row.plan));
    audit::EventBuilder asked(audit::EventType::kGrantRequested);
    SetWanted(asked, offer.wanted);
    RETURN_IF_ERROR(books_->Append(asked.Build()).status());
    LogInfo("job `" + row.job.text() + "` waits for approval: see `" + config_.requests + "`");
  }
  RETURN_IF_ERROR(books_
                      ->Append(audit::EventBuilder(audit::EventType::kOfferHeld)
                                   .Set("job", row.job)
                                   .Set("plan", offer.plan_digest)
                                   .Set("reason", std::string(policy::Code(why)))
                                   .Set("decision", ToJson(decided.record))
                                   .Build())
                      .status());
  return offer.connection.control->Send(Reply(row, v1::ANSWER_HOLD, why));
}

Status Agent::Accept(const OfferAtHand& offer, const FoundGrant& grant, const Decided& decided) {
  const JobRow& row = offer.row;
  const Terms& terms = offer.connection.terms;
  held_.erase(row.job);
  audit::EventBuilder loaded(audit::EventType::kGrantLoaded);
  loaded.Set("grant", grant.digest).Set("not_after", grant.body.not_after);
  SetWanted(loaded, offer.wanted);
  RETURN_IF_ERROR(books_->Append(loaded.Build()).status());
  const std::uint32_t floor = terms.policies.effective.MinContributors(offer.dataset);
  RETURN_IF_ERROR(books_
                      ->Append(audit::EventBuilder(audit::EventType::kOfferAccepted)
                                   .Set("job", row.job)
                                   .Set("plan", offer.plan_digest)
                                   .Set("min_contributors", floor)
                                   .Set("effective_policy", terms.policies.digests.effective)
                                   .Set("grant", grant.digest)
                                   .Set("decision", ToJson(decided.record))
                                   .Build())
                      .status());
  v1::SiteMessage message = Reply(row, v1::ANSWER_ACCEPT, Reason::kNone);
  message.mutable_offer_reply()->set_min_contributors(floor);
  message.mutable_offer_reply()->set_effective_policy_digest(Raw(terms.policies.digests.effective));
  LogInfo("job `" + row.job.text() + "` accepted");
  return offer.connection.control->Send(message);
}

// What a person has refused, or taken back, ends here and now: the work under way, what waits to be
// sent, and the offer.
Status Agent::TakeDenials(Connection* connection) {
  ASSIGN_OR_RETURN(const std::vector<JobId> denied, FindDenials(config_.grants));
  for (const JobId& job : denied) {
    ASSIGN_OR_RETURN(const Reason closed,
                     books_->With([&](SiteStore& store) { return store.WhyClosed(job); }));
    if (closed != Reason::kNone) {
      continue;
    }
    RETURN_IF_ERROR(books_
                        ->Record([&](SiteStore& store, std::uint64_t) -> StatusOr<audit::Event> {
                          RETURN_IF_ERROR(store.CloseJob(job, Reason::kApprovalDenied).status());
                          return audit::EventBuilder(audit::EventType::kGrantRefused)
                              .Set("job", job)
                              .Set("reason", std::string(policy::Code(Reason::kApprovalDenied)))
                              .Build();
                        })
                        .status());
    LogInfo("job `" + job.text() + "` was denied by a person at this site");
    runner_->Cancel(job);
    RETURN_IF_ERROR(SettleJobEnd(*books_, job, Reason::kApprovalDenied));
    ASSIGN_OR_RETURN(const std::optional<JobRow> row,
                     books_->With([&](SiteStore& store) { return store.FindJob(job); }));
    if (row && connection != nullptr) {
      RETURN_IF_ERROR(AnswerOffer(*row, *connection));
    }
  }
  return OkStatus();
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

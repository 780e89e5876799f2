#include "aggregator/service/convert.h"

#include <string>

namespace domicile::aggregator {

namespace {

std::string Raw(const Digest& digest) { return {digest.bytes.begin(), digest.bytes.end()}; }

std::string RawOrNone(const Digest& digest) { return digest.IsZero() ? "" : Raw(digest); }

StatusOr<Digest> DigestFrom(const std::string& bytes) { return DigestFromBytes(AsBytes(bytes)); }

v1::PhaseKind PhaseToWire(PhaseKind kind) { return static_cast<v1::PhaseKind>(kind); }

void SetLeaf(const audit::ProvenLeaf& leaf, v1::LoggedLeaf* out) {
  out->set_index(leaf.index);
  out->set_leaf(leaf.leaf);
  for (const Digest& node : leaf.proof) {
    out->add_proof(Raw(node));
  }
  out->set_head(leaf.head.note);
}

v1::Directive Offer(const OfferMessage& message) {
  v1::Directive directive;
  v1::JobOffer* offer = directive.mutable_job_offer();
  offer->set_job(message.job.text());
  offer->set_plan(message.plan);
  *offer->mutable_base_model() = ToWire(message.base_model);
  return directive;
}

v1::Directive Open(const OpenMessage& message) {
  v1::Directive directive;
  v1::OpenPhase* open = directive.mutable_open_phase();
  *open->mutable_phase() = PhaseIdOf(message.job, message.key);
  *open->mutable_epoch() = ToWire(message.epoch);
  *open->mutable_model() = ToWire(message.model);
  open->set_deadline_seconds(message.deadline_seconds);
  open->set_floor(message.floor);
  SetLeaf(message.opening, open->mutable_opening());
  return directive;
}

v1::Directive OutcomeOf(const OutcomeMessage& message) {
  v1::Directive directive;
  v1::PhaseOutcome* outcome = directive.mutable_phase_outcome();
  *outcome->mutable_phase() = PhaseIdOf(message.job, message.key);
  *outcome->mutable_epoch() = ToWire(message.epoch);
  const bool committed = message.reason == policy::Reason::kNone;
  outcome->set_outcome(committed ? v1::OUTCOME_COMMITTED : v1::OUTCOME_ABANDONED);
  outcome->set_reason(static_cast<std::uint32_t>(message.reason));
  SetLeaf(message.leaf, outcome->mutable_leaf());
  return directive;
}

v1::Directive Ended(const EndedMessage& message) {
  v1::Directive directive;
  v1::JobEnded* ended = directive.mutable_job_ended();
  ended->set_job(message.job.text());
  ended->set_state(static_cast<v1::JobState>(message.stage));
  ended->set_reason(static_cast<std::uint32_t>(message.reason));
  return directive;
}

v1::Directive HeadsOf(const HeadsMessage& message) {
  v1::Directive directive;
  v1::Heads* heads = directive.mutable_heads();
  heads->set_head(message.head);
  for (const Digest& node : message.consistency) {
    heads->add_consistency(Raw(node));
  }
  heads->set_witnessed_size(message.witnessed_size);
  return directive;
}

}  // namespace

policy::Reason ReasonFrom(std::uint32_t number) {
  return policy::ReasonFromNumber(number).value_or(policy::Reason::kMalformed);
}

Epoch EpochFrom(const v1::Epoch& epoch) {
  return {.starts = epoch.starts(), .attempt = epoch.attempt()};
}

StatusOr<std::vector<Digest>> DigestsFrom(
    const google::protobuf::RepeatedPtrField<std::string>& bytes) {
  std::vector<Digest> digests;
  for (const std::string& raw : bytes) {
    ASSIGN_OR_RETURN(digests.emplace_back(), DigestFrom(raw));
  }
  return digests;
}

StatusOr<std::pair<JobId, PhaseKey>> PhaseFrom(const v1::PhaseId& phase) {
  ASSIGN_OR_RETURN(JobId job, JobId::Parse(phase.job()));
  return std::pair(std::move(job), PhaseKey{.round = phase.round(),
                                            .phase = static_cast<PhaseKind>(phase.phase())});
}

namespace {

StatusOr<audit::RecoveryClaim> RecoveryFrom(const v1::Recovery& recovery) {
  audit::RecoveryClaim claim{.index = recovery.entry().index(),
                             .leaf = recovery.entry().leaf(),
                             .proof = {},
                             .head_note = recovery.entry().head(),
                             .root_then = {},
                             .consistency = {}};
  ASSIGN_OR_RETURN(claim.proof, DigestsFrom(recovery.entry().proof()));
  if (!recovery.root().empty()) {
    ASSIGN_OR_RETURN(claim.root_then, DigestFrom(recovery.root()));
  }
  ASSIGN_OR_RETURN(claim.consistency, DigestsFrom(recovery.consistency()));
  return claim;
}

}  // namespace

StatusOr<SiteHello> HelloFrom(const v1::Hello& hello) {
  SiteHello parsed;
  parsed.instance = hello.instance();
  for (const std::string& alias : hello.dataset_aliases()) {
    ASSIGN_OR_RETURN(parsed.datasets.emplace_back(), DatasetAlias::Parse(alias));
  }
  parsed.policy_statement = hello.policy_statement();
  parsed.own_head = hello.own_head();
  parsed.last_aggregator_head = hello.last_aggregator_head();
  parsed.sent_unix_ms = hello.sent_unix_ms();
  if (hello.has_recovery()) {
    ASSIGN_OR_RETURN(parsed.recovery, RecoveryFrom(hello.recovery()));
  }
  return parsed;
}

StatusOr<std::vector<std::pair<JobId, PhaseKey>>> PendingFrom(const v1::Hello& hello) {
  std::vector<std::pair<JobId, PhaseKey>> pending;
  for (const v1::PendingUpdate& update : hello.pending()) {
    ASSIGN_OR_RETURN(pending.emplace_back(), PhaseFrom(update.phase()));
  }
  return pending;
}

StatusOr<OfferReply> OfferReplyFrom(const v1::OfferReply& reply) {
  OfferReply parsed;
  ASSIGN_OR_RETURN(parsed.job, JobId::Parse(reply.job()));
  ASSIGN_OR_RETURN(parsed.plan, DigestFrom(reply.plan_digest()));
  parsed.answer = static_cast<Answer>(reply.answer());
  parsed.min_contributors = reply.min_contributors();
  if (parsed.answer == Answer::kAccept) {
    ASSIGN_OR_RETURN(parsed.effective_policy, DigestFrom(reply.effective_policy_digest()));
  } else {
    parsed.reason = ReasonFrom(reply.reason());
  }
  return parsed;
}

StatusOr<UpdateHead> UpdateHeadFrom(const v1::UpdateHeader& header) {
  UpdateHead head;
  ASSIGN_OR_RETURN(std::tie(head.job, head.key), PhaseFrom(header.phase()));
  head.epoch = EpochFrom(header.epoch());
  ASSIGN_OR_RETURN(head.digest, DigestFrom(header.update().digest()));
  head.size_bytes = header.update().size_bytes();
  ASSIGN_OR_RETURN(head.base_model, DigestFrom(header.base_model()));
  ASSIGN_OR_RETURN(head.effective_policy, DigestFrom(header.effective_policy_digest()));
  head.instance = header.instance();
  head.decision_index = header.decision().index();
  head.decision_leaf = header.decision().leaf();
  ASSIGN_OR_RETURN(head.decision_proof, DigestsFrom(header.decision().proof()));
  head.decision_head = header.decision().head();
  return head;
}

v1::Epoch ToWire(const Epoch& epoch) {
  v1::Epoch out;
  out.set_starts(epoch.starts);
  out.set_attempt(epoch.attempt);
  return out;
}

v1::PhaseId PhaseIdOf(const JobId& job, const PhaseKey& key) {
  v1::PhaseId phase;
  phase.set_job(job.text());
  phase.set_round(key.round);
  phase.set_phase(PhaseToWire(key.phase));
  return phase;
}

v1::BlobRef ToWire(const ModelRow& model) {
  v1::BlobRef blob;
  blob.set_digest(Raw(model.digest));
  blob.set_size_bytes(model.size_bytes);
  return blob;
}

v1::Refusal ToWire(const Refusal& refusal) {
  v1::Refusal out;
  out.set_reason(static_cast<std::uint32_t>(refusal.reason));
  if (refusal.job && refusal.open_phase) {
    *out.mutable_open_phase() = PhaseIdOf(*refusal.job, *refusal.open_phase);
    out.set_open_model(RawOrNone(refusal.open_model));
  }
  out.set_limit(refusal.limit);
  out.set_found(refusal.found);
  out.set_tensor(refusal.tensor);
  out.set_index(refusal.index);
  return out;
}

v1::Receipt ToWire(const UpdateReceipt& receipt) {
  v1::Receipt out;
  *out.mutable_epoch() = ToWire(receipt.epoch);
  out.set_digest(Raw(receipt.digest));
  SetLeaf(receipt.leaf, out.mutable_leaf());
  return out;
}

v1::Welcome ToWire(const Welcome& welcome) {
  v1::Welcome out;
  out.set_starts(welcome.starts);
  out.set_sent_unix_ms(welcome.sent_unix_ms);
  out.set_federation_policy(welcome.federation_policy);
  out.set_aggregator_policy(welcome.aggregator_policy);
  out.set_legal_facts(welcome.legal_facts);
  out.set_roster(welcome.roster);
  out.set_head(welcome.head);
  for (const Digest& node : welcome.consistency) {
    out.add_consistency(Raw(node));
  }
  out.set_witnessed_head(welcome.witnessed_head);
  return out;
}

v1::Directive ToWire(const ToSite& message) {
  if (const auto* offer = std::get_if<OfferMessage>(&message)) {
    return Offer(*offer);
  }
  if (const auto* open = std::get_if<OpenMessage>(&message)) {
    return Open(*open);
  }
  if (const auto* outcome = std::get_if<OutcomeMessage>(&message)) {
    return OutcomeOf(*outcome);
  }
  if (const auto* ended = std::get_if<EndedMessage>(&message)) {
    return Ended(*ended);
  }
  return HeadsOf(std::get<HeadsMessage>(message));
}

v1::JobSummary SummaryOf(const JobView& view) {
  v1::JobSummary summary;
  summary.set_job(view.job.text());
  summary.set_name(view.name);
  summary.set_state(static_cast<v1::JobState>(view.stage));
  summary.set_reason(static_cast<std::uint32_t>(view.reason));
  summary.set_rounds_planned(view.rounds_planned);
  summary.set_rounds_committed(view.rounds_committed);
  summary.set_submitted_unix_seconds(static_cast<std::uint64_t>(view.submitted_unix_seconds));
  return summary;
}

void AddSites(const JobView& view, google::protobuf::RepeatedPtrField<v1::SiteState>* sites) {
  for (const SiteView& site : view.sites) {
    v1::SiteState* state = sites->Add();
    state->set_site(site.site.text());
    state->set_jurisdiction(site.jurisdiction);
    state->set_connected(site.connected);
    state->set_answer(static_cast<v1::Answer>(site.answer));
    state->set_reason(static_cast<std::uint32_t>(site.reason));
    state->set_percent(site.percent);
    state->set_received(site.received);
  }
}

v1::RoundMetrics ToWire(const MetricsView& view) {
  v1::RoundMetrics metrics;
  metrics.set_round(view.key.round);
  metrics.set_phase(PhaseToWire(view.key.phase));
  metrics.set_contributors(view.metrics.contributors);
  metrics.set_examples(view.metrics.examples);
  metrics.set_loss(view.metrics.loss);
  metrics.set_accuracy(view.metrics.accuracy);
  metrics.set_majority(view.metrics.majority);
  metrics.set_auc(view.metrics.auc);
  return metrics;
}

}  // namespace domicile::aggregator

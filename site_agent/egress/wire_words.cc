#include "site_agent/egress/wire_words.h"

namespace domicile::site_agent {

std::string Raw(const Digest& digest) { return {digest.bytes.begin(), digest.bytes.end()}; }

StatusOr<std::vector<Digest>> DigestsFrom(
    const google::protobuf::RepeatedPtrField<std::string>& bytes) {
  std::vector<Digest> digests;
  for (const std::string& raw : bytes) {
    ASSIGN_OR_RETURN(digests.emplace_back(), DigestFromBytes(AsBytes(raw)));
  }
  return digests;
}

StatusOr<PhaseId> PhaseFrom(const v1::PhaseId& phase) {
  PhaseId id;
  ASSIGN_OR_RETURN(id.job, JobId::Parse(phase.job()));
  id.round = phase.round();
  id.phase = static_cast<contracts::PhaseKind>(phase.phase());
  return id;
}

Epoch EpochFrom(const v1::Epoch& epoch) {
  return {.starts = epoch.starts(), .attempt = epoch.attempt()};
}

void Fill(v1::PhaseId& to, const PhaseId& phase) {
  to.set_job(phase.job.text());
  to.set_round(phase.round);
  to.set_phase(static_cast<v1::PhaseKind>(phase.phase));
}

void Fill(v1::Epoch& to, const Epoch& epoch) {
  to.set_starts(epoch.starts);
  to.set_attempt(epoch.attempt);
}

void Fill(v1::Recovery& to, const audit::RecoveryClaim& claim) {
  to.mutable_entry()->set_index(claim.index);
  to.mutable_entry()->set_leaf(claim.leaf);
  for (const Digest& node : claim.proof) {
    to.mutable_entry()->add_proof(Raw(node));
  }
  to.mutable_entry()->set_head(claim.head_note);
  if (!claim.root_then.IsZero()) {
    to.set_root(Raw(claim.root_then));
  }
  for (const Digest& node : claim.consistency) {
    to.add_consistency(Raw(node));
  }
}

policy::Reason ReasonFrom(const v1::Refusal& refusal) {
  const std::optional<policy::Reason> reason = policy::ReasonFromNumber(refusal.reason());
  return reason && *reason != policy::Reason::kNone ? *reason : policy::Reason::kMalformed;
}

v1::SiteMessage DeclinePhase(const PhaseId& phase, const Epoch& epoch, policy::Reason reason) {
  v1::SiteMessage message;
  v1::PhaseReply* reply = message.mutable_phase_reply();
  Fill(*reply->mutable_phase(), phase);
  Fill(*reply->mutable_epoch(), epoch);
  reply->mutable_refusal()->set_reason(static_cast<std::uint32_t>(reason));
  return message;
}

StatusOr<audit::CheckedLeaf> CheckWireLeaf(const v1::LoggedLeaf& leaf,
                                           const crypto::NoteVerifier& key) {
  ASSIGN_OR_RETURN(const std::vector<Digest> proof, DigestsFrom(leaf.proof()));
  return audit::CheckLeaf(
      {.index = leaf.index(), .leaf = leaf.leaf(), .proof = proof, .head_note = leaf.head()}, key);
}

}  // namespace domicile::site_agent

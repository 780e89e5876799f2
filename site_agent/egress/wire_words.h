// Between the messages of the wire and this site's own words.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "audit/peer_heads.h"
#include "audit/recovery.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/status.h"
#include "crypto/note.h"
#include "policy/reason.h"
#include "site_agent/egress/site_store.h"
#include "wire/proto/federation.pb.h"

namespace domicile::site_agent {

// The 32 bytes as a field of `bytes`.
std::string Raw(const Digest& digest);
// Errors: kInvalidArgument.
StatusOr<std::vector<Digest>> DigestsFrom(
    const google::protobuf::RepeatedPtrField<std::string>& bytes);

// Errors: kInvalidArgument.
StatusOr<PhaseId> PhaseFrom(const v1::PhaseId& phase);
Epoch EpochFrom(const v1::Epoch& epoch);
void Fill(v1::PhaseId& to, const PhaseId& phase);
void Fill(v1::Epoch& to, const Epoch& epoch);
void Fill(v1::Recovery& to, const audit::RecoveryClaim& claim);

// kMalformed for a code that is not in the list.
policy::Reason ReasonFrom(const v1::Refusal& refusal);

// This site cannot take part in a phase.
v1::SiteMessage DeclinePhase(const PhaseId& phase, const Epoch& epoch, policy::Reason reason);

// A leaf of the aggregator's log as it came over the wire, verified. Errors as audit::CheckLeaf.
StatusOr<audit::CheckedLeaf> CheckWireLeaf(const v1::LoggedLeaf& leaf,
                                           const crypto::NoteVerifier& key);

}  // namespace domicile::site_agent

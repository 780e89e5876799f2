// Between the wire's generated types and the coordinator's values: one place, both directions. What
// a message must not say is refused here.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "aggregator/coordinator/coordinator.h"
#include "aggregator/coordinator/messages.h"
#include "base/status.h"
#include "wire/proto/admin.pb.h"
#include "wire/proto/federation.pb.h"

namespace domicile::aggregator {

// ---- from the wire; errors: kInvalidArgument ----

StatusOr<SiteHello> HelloFrom(const v1::Hello& hello);
StatusOr<std::vector<std::pair<JobId, PhaseKey>>> PendingFrom(const v1::Hello& hello);
StatusOr<OfferReply> OfferReplyFrom(const v1::OfferReply& reply);
// Round 0 or no phase is let through: the round machine refuses it with its own reason.
StatusOr<UpdateHead> UpdateHeadFrom(const v1::UpdateHeader& header);
StatusOr<std::pair<JobId, PhaseKey>> PhaseFrom(const v1::PhaseId& phase);
StatusOr<std::vector<Digest>> DigestsFrom(
    const google::protobuf::RepeatedPtrField<std::string>& bytes);
// Unknown numbers become kMalformed: a peer's reason is shown, never acted on.
policy::Reason ReasonFrom(std::uint32_t number);
Epoch EpochFrom(const v1::Epoch& epoch);

// ---- to the wire ----

v1::Refusal ToWire(const Refusal& refusal);
v1::Receipt ToWire(const UpdateReceipt& receipt);
v1::Welcome ToWire(const Welcome& welcome);
v1::Directive ToWire(const ToSite& message);
v1::JobSummary SummaryOf(const JobView& view);
void AddSites(const JobView& view, google::protobuf::RepeatedPtrField<v1::SiteState>* sites);
v1::RoundMetrics ToWire(const MetricsView& metrics);
v1::PhaseId PhaseIdOf(const JobId& job, const PhaseKey& key);
v1::Epoch ToWire(const Epoch& epoch);
v1::BlobRef ToWire(const ModelRow& model);

}  // namespace domicile::aggregator

// The events that somebody else reads back, as structs: what one side logs and the other verifies,
// and what reconcile and the table of transfers count. Each has ToEvent() for the writer and a Read
// function for the reader; the fields are those of docs/formats/events.md. Values, no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/event.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/status.h"

namespace domicile::audit {

// Digests of the policies a decision was made under. A zero digest is left out; `effective` is
// required.
struct PolicyDigests {
  Digest effective = {};
  Digest federation = {};
  Digest aggregator = {};
  Digest site = {};
  Digest facts = {};
  friend bool operator==(const PolicyDigests&, const PolicyDigests&) = default;
};

// What a gate decided and why. `reasons` are codes of policy/reason.h (`PERMITTED`), `rules` ids of
// rules.
struct DecisionRecord {
  std::string result;  // `allow`, `deny`, `hold`
  std::vector<std::string> reasons;
  std::vector<std::string> rules;
  PolicyDigests policies;
  friend bool operator==(const DecisionRecord&, const DecisionRecord&) = default;
};
// The id of a rule as logs write it: `site/charite-2026/S-1`, from the source, the id of the policy
// and of the rule. Characters that a log does not have (white space) become `-`.
std::string RuleId(std::string_view source, std::string_view policy, std::string_view rule);
Json ToJson(const DecisionRecord& decision);  // for the field `decision` of other events

// `control.summary`: control messages between this party and a peer over a time, in sums.
struct ControlSummary {
  std::string peer;  // `site/NAME`, `aggregator/NAME`
  std::uint64_t seconds = 0;
  std::uint64_t messages_in = 0;
  std::uint64_t messages_out = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  friend bool operator==(const ControlSummary&, const ControlSummary&) = default;
};
StatusOr<Event> ToEvent(const ControlSummary& record);
StatusOr<ControlSummary> ReadControlSummary(const Event& event);

// One end of a transfer: `site/charite`, `aggregator/main`, `operator/alice`; the jurisdiction is
// empty only for people.
struct PartyPlace {
  std::string party;
  std::string jurisdiction;
  friend bool operator==(const PartyPlace&, const PartyPlace&) = default;
  friend auto operator<=>(const PartyPlace&, const PartyPlace&) = default;
};
Json ToJson(const PartyPlace& place);  // for the fields `from` and `to`

// `egress.decided` (result `allow`): these bytes may leave; written with the ledger entry, before
// `egress.intent`. `transfer` is the digest of the wire bytes. A denial has its own type,
// EgressDenied.
struct EgressDecided {
  PhaseKey key;
  Digest transfer;
  std::vector<std::string> kinds;  // update kinds of the policy language, `delta.plain`
  DatasetAlias dataset;
  PartyPlace from;
  PartyPlace to;
  DecisionRecord decision;
  std::uint64_t bytes = 0;
  std::uint64_t numbers = 0;        // released numbers in it
  std::uint64_t capacity_bits = 0;  // most that it can carry about records
  std::uint32_t cohort_bucket = 0;  // number of records, rounded as the policy says; 0: not stated
  std::uint64_t epsilon_micro = 0;  // what it adds to the dataset's epsilon, in millionths
  Digest grant;
  friend bool operator==(const EgressDecided&, const EgressDecided&) = default;
};
StatusOr<Event> ToEvent(const EgressDecided& record);
StatusOr<EgressDecided> ReadEgressDecided(const Event& event);

// `phase.opened`. The grid bounds follow from the plan and these numbers.
struct PhaseOpened {
  PhaseKey key;
  Digest plan;
  Digest model;
  std::vector<SiteId> participants;  // sorted
  std::uint32_t floor = 0;           // fewest contributors
  std::uint32_t scale_bits = 0;      // the grid: units of 2^-scale_bits
  std::uint32_t max_weight = 0;
  std::uint32_t max_sites = 0;
  std::uint32_t deadline_seconds = 0;
  PolicyDigests policies;  // `effective` is the aggregator's own (federation, aggregator, facts)
  friend bool operator==(const PhaseOpened&, const PhaseOpened&) = default;
};
StatusOr<Event> ToEvent(const PhaseOpened& record);
StatusOr<PhaseOpened> ReadPhaseOpened(const Event& event);

// `phase.committed`: exactly these updates are in the sum. `model` is the new model, or the
// unchanged one after a phase that makes none.
struct Contributor {
  SiteId site;
  Digest digest;
  std::optional<std::uint64_t> weight;  // where the view shows it
  friend bool operator==(const Contributor&, const Contributor&) = default;
};
struct PhaseCommitted {
  PhaseKey key;
  std::vector<Contributor> contributors;  // sorted by site, each once
  Digest model;
  friend bool operator==(const PhaseCommitted&, const PhaseCommitted&) = default;
};
StatusOr<Event> ToEvent(const PhaseCommitted& record);
StatusOr<PhaseCommitted> ReadPhaseCommitted(const Event& event);

// `ingress.received`: in this epoch, in memory, not yet counted. `bytes` is the size of the update.
struct IngressReceived {
  PhaseKey key;
  SiteId site;
  std::string jurisdiction;
  Digest digest;
  std::uint64_t bytes = 0;
  std::vector<std::string> kinds;
  std::uint64_t capacity_bits = 0;
  DecisionRecord decision;
  friend bool operator==(const IngressReceived&, const IngressReceived&) = default;
};
StatusOr<Event> ToEvent(const IngressReceived& record);
StatusOr<IngressReceived> ReadIngressReceived(const Event& event);

// `egress.intent` (before the first byte: the size of the update), `egress.done` (with the index of
// the aggregator's `ingress.received` leaf), `egress.aborted` (the bytes really written, and why).
struct EgressStep {
  PhaseKey key;
  Digest digest;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> receipt_seq;  // `egress.done` only
  std::string reason;                        // `egress.aborted` only: a reason code
  friend bool operator==(const EgressStep&, const EgressStep&) = default;
};
// `type` is kEgressIntent, kEgressDone or kEgressAborted.
StatusOr<Event> ToEvent(EventType type, const EgressStep& record);
StatusOr<EgressStep> ReadEgressStep(const Event& event);

// `model.sent` (aggregator, before the first byte) and `model.intake` (site, when the checks have
// passed): a model is a transfer from every site that contributed. `kind` is a policy kind,
// `model.global`.
struct ModelTransfer {
  PhaseKey key;
  Digest model;
  std::uint64_t bytes = 0;
  std::string kind;
  PartyPlace from;
  PartyPlace to;
  DecisionRecord decision;
  friend bool operator==(const ModelTransfer&, const ModelTransfer&) = default;
};
// `type` is kModelSent or kModelIntake.
StatusOr<Event> ToEvent(EventType type, const ModelTransfer& record);
StatusOr<ModelTransfer> ReadModelTransfer(const Event& event);

}  // namespace domicile::audit

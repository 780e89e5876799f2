// What passes between the coordinator and whoever carries messages to and from sites and people:
// plain values, no generated types. aggregator/service translates.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "aggregator/coordinator/phase_sum.h"
#include "aggregator/coordinator/refusal.h"
#include "aggregator/coordinator/store.h"
#include "aggregator/rounds/state.h"
#include "audit/log.h"
#include "audit/recovery.h"
#include "base/bytes.h"
#include "base/ids.h"

namespace domicile::aggregator {

// ---- from a site ----

struct SiteHello {
  std::uint64_t instance = 0;
  std::vector<DatasetAlias> datasets;
  std::string policy_statement;
  std::string own_head;              // note
  std::string last_aggregator_head;  // note; empty at first
  std::uint64_t sent_unix_ms = 0;    // the site's clock; 0: unknown
  std::optional<audit::RecoveryClaim> recovery = {};
};

struct OfferReply {
  JobId job;
  Digest plan;
  Answer answer = Answer::kNone;
  policy::Reason reason = policy::Reason::kNone;
  std::uint32_t min_contributors = 0;
  Digest effective_policy;
};

struct UpdateHead {
  JobId job;
  PhaseKey key;
  Epoch epoch;
  Digest digest;
  std::uint64_t size_bytes = 0;
  Digest base_model;
  Digest effective_policy;
  std::uint64_t instance = 0;
  // The site's `egress.decided`, in a head signed with its log key.
  std::uint64_t decision_index = 0;
  std::string decision_leaf;
  std::vector<Digest> decision_proof;
  std::string decision_head;
};

// ---- to a site ----

struct Welcome {
  std::uint64_t starts = 0;
  std::string federation_policy;
  std::string aggregator_policy;
  std::string legal_facts;
  std::string roster;
  std::string head;
  std::vector<Digest> consistency;
  std::string witnessed_head;      // note; empty: none
  std::uint64_t sent_unix_ms = 0;  // this aggregator's clock
};

struct OfferMessage {
  JobId job;
  std::string plan;
  ModelRow base_model;
};

struct OpenMessage {
  JobId job;
  PhaseKey key;
  Epoch epoch;
  ModelRow model;
  std::uint32_t deadline_seconds = 0;
  std::uint32_t floor = 0;
  audit::ProvenLeaf opening;
};

struct OutcomeMessage {
  JobId job;
  PhaseKey key;
  Epoch epoch;
  policy::Reason reason = policy::Reason::kNone;  // kNone: committed
  audit::ProvenLeaf leaf;
};

struct EndedMessage {
  JobId job;
  JobStage stage = JobStage::kNone;
  policy::Reason reason = policy::Reason::kNone;
};

struct HeadsMessage {
  std::string head;
  std::vector<Digest> consistency;
  std::uint64_t witnessed_size = 0;
};

using ToSite = std::variant<OfferMessage, OpenMessage, OutcomeMessage, EndedMessage, HeadsMessage>;

// What has gone over a site's control stream until now.
struct ControlTally {
  std::uint64_t messages_in = 0;
  std::uint64_t messages_out = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
};

// A connected site. Thread-safe, never blocks; called with the coordinator's lock held.
class SitePort {
 public:
  virtual ~SitePort() = default;
  virtual ControlTally Tally() const = 0;
  virtual void Push(const ToSite& message) = 0;
  virtual void End(const Refusal& why) = 0;
};

struct UpdateReceipt {
  Epoch epoch;
  Digest digest;
  audit::ProvenLeaf leaf;
};

// ---- to people ----

struct SiteView {
  SiteId site;
  std::string jurisdiction;
  bool connected = false;
  Answer answer = Answer::kNone;
  policy::Reason reason = policy::Reason::kNone;
  std::uint32_t percent = 0;
  bool received = false;
};

struct MetricsView {
  PhaseKey key;
  PhaseMetrics metrics;
};

struct JobView {
  JobId job;
  std::string name;
  JobStage stage = JobStage::kNone;
  policy::Reason reason = policy::Reason::kNone;
  std::uint32_t rounds_planned = 0;
  std::uint32_t rounds_committed = 0;
  std::int64_t submitted_unix_seconds = 0;
  std::string plan;
  Digest plan_digest;
  ModelRow model;
  std::optional<PhaseKey> phase;  // the current one
  Epoch epoch;
  std::vector<SiteView> sites;
  std::vector<MetricsView> metrics;  // of every committed phase, in order; or none, because
  policy::Reason metrics_withheld =
      policy::Reason::kNone;  // a contributor keeps them from this one
  std::uint64_t change = 0;   // grows with every change; what Watch waits for
};

}  // namespace domicile::aggregator

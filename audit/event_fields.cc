#include "audit/internal/event_fields.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/text.h"

namespace domicile::audit::internal {

namespace {

#define PHASE_FIELDS "job:name round:round phase:phase epoch:epoch "
#define SOME_PHASE_FIELDS "?job:name ?round:round ?phase:phase ?epoch:epoch "
constexpr std::array kTypes = {
    TypeFields{EventType::kAgentStarted, "agent.started",
               "site:name jurisdiction:place instance:count version:code ?organisation:name"},
    TypeFields{EventType::kAgentStopped, "agent.stopped", "instance:count ?reason:reason"},
    TypeFields{EventType::kAggregatorStarted, "aggregator.started",
               "aggregator:name jurisdiction:place starts:count version:code"},
    TypeFields{EventType::kAggregatorStopped, "aggregator.stopped", "starts:count ?reason:reason"},
    TypeFields{EventType::kPolicyLoaded, "policy.loaded",
               "source:code digest:digest ?version:count ?schema:count"},
    TypeFields{EventType::kPolicyRefused, "policy.refused",
               "source:code ?digest:digest reason:reason"},
    TypeFields{EventType::kPolicyWaiting, "policy.waiting",
               "source:code digest:digest version:count effective_at:time"},
    TypeFields{EventType::kLedgerRestored, "ledger.restored", "entries:count"},
    TypeFields{EventType::kFactsLoaded, "facts.loaded", "digest:digest ?version:count"},
    TypeFields{EventType::kRosterLoaded, "roster.loaded", "digest:digest version:count"},
    TypeFields{EventType::kSandboxActive, "sandbox.active",
               "program:code network:code landlock:flag seccomp:flag namespaces:flag "
               "?landlock_abi:count"},
    TypeFields{EventType::kGrantRequested, "grant.requested",
               "job:name plan:digest dataset:name ?dataset_commitment:digest ?base_model:digest "
               "?trainer:digest ?effective_policy:digest"},
    TypeFields{EventType::kGrantLoaded, "grant.loaded",
               "grant:digest job:name plan:digest dataset:name dataset_commitment:digest "
               "base_model:digest trainer:digest effective_policy:digest not_after:time"},
    TypeFields{EventType::kGrantRefused, "grant.refused", "?grant:digest ?job:name reason:reason"},
    TypeFields{EventType::kJobSubmitted, "job.submitted",
               "job:name plan:digest base_model:digest operator:name"},
    TypeFields{EventType::kJobOffered, "job.offered",
               "job:name plan:digest ?site:name ?base_model:digest"},
    TypeFields{EventType::kOfferAccepted, "offer.accepted",
               "job:name plan:digest ?site:name min_contributors:count effective_policy:digest "
               "?grant:digest ?decision:decision"},
    TypeFields{EventType::kOfferDeclined, "offer.declined",
               "job:name plan:digest ?site:name reason:reason ?decision:decision"},
    TypeFields{EventType::kOfferHeld, "offer.held",
               "job:name plan:digest ?site:name reason:reason ?decision:decision"},
    TypeFields{EventType::kJobStarted, "job.started", "job:name sites:names"},
    TypeFields{EventType::kJobEnded, "job.ended",
               "job:name state:code ?reason:reason ?rounds:count ?model:digest"},
    TypeFields{EventType::kPhaseOpened, "phase.opened",
               PHASE_FIELDS "plan:digest model:digest participants:names floor:count grid:grid "
                            "deadline_seconds:count policies:policies"},
    TypeFields{EventType::kPhaseCommitted, "phase.committed",
               PHASE_FIELDS "contributors:contributors model:digest"},
    TypeFields{EventType::kPhaseAbandoned, "phase.abandoned",
               PHASE_FIELDS "reason:reason ?received:count"},
    TypeFields{EventType::kModelIntake, "model.intake",
               PHASE_FIELDS "model:digest bytes:count kind:code from:end to:end "
                            "?decision:decision"},
    TypeFields{EventType::kModelRefused, "model.refused",
               PHASE_FIELDS "?model:digest ?bytes:count reason:reason"},
    TypeFields{EventType::kDataOpened, "data.opened",
               "job:name round:round phase:phase ?epoch:epoch dataset:name "
               "dataset_commitment:digest grant:digest ?decision:decision"},
    TypeFields{EventType::kTrainStarted, "train.started",
               "job:name round:round phase:phase ?epoch:epoch grant:digest ?trainer:digest"},
    TypeFields{EventType::kTrainEnded, "train.ended",
               "job:name round:round phase:phase ?epoch:epoch result:code ?reason:reason "
               "?seconds:count"},
    TypeFields{EventType::kEgressDecided, "egress.decided",
               PHASE_FIELDS "transfer:digest kinds:codes dataset:name from:end to:end "
                            "decision:decision bytes:count numbers:count capacity_bits:count "
                            "?cohort_bucket:count ?epsilon_micro:count grant:digest"},
    TypeFields{EventType::kEgressDenied, "egress.denied",
               "job:name round:round phase:phase ?epoch:epoch ?transfer:digest kinds:codes "
               "?dataset:name from:end to:end decision:decision ?bytes:count ?count:count"},
    TypeFields{EventType::kEgressIntent, "egress.intent", PHASE_FIELDS "digest:digest bytes:count"},
    TypeFields{EventType::kEgressDone, "egress.done",
               PHASE_FIELDS "digest:digest bytes:count receipt_seq:count"},
    TypeFields{EventType::kEgressAborted, "egress.aborted",
               PHASE_FIELDS "digest:digest bytes:count reason:reason"},
    TypeFields{EventType::kUpdateCounted, "update.counted",
               PHASE_FIELDS "digest:digest commit_seq:count"},
    TypeFields{EventType::kUpdateNotCounted, "update.not_counted",
               PHASE_FIELDS "digest:digest reason:reason ?commit_seq:count"},
    TypeFields{EventType::kIngressReceived, "ingress.received",
               PHASE_FIELDS "site:name jurisdiction:place digest:digest bytes:count kinds:codes "
                            "capacity_bits:count decision:decision"},
    TypeFields{EventType::kIngressRefused, "ingress.refused",
               SOME_PHASE_FIELDS "site:name ?jurisdiction:place ?digest:digest bytes:count "
                                 "reason:reason ?decision:decision ?count:count"},
    TypeFields{EventType::kIngressPartial, "ingress.partial",
               PHASE_FIELDS "site:name ?jurisdiction:place digest:digest bytes:count "
                            "reason:reason"},
    TypeFields{EventType::kModelSent, "model.sent",
               PHASE_FIELDS "model:digest bytes:count kind:code from:end to:end "
                            "decision:decision"},
    TypeFields{EventType::kModelReleased, "model.released",
               "job:name round:round model:digest bytes:count kind:code from:end to:end "
               "decision:decision"},
    TypeFields{EventType::kModelReleaseDenied, "model.release_denied",
               "job:name round:round ?model:digest kind:code from:end to:end decision:decision"},
    TypeFields{EventType::kViewAllowed, "view.allowed",
               "job:name round:round kind:code from:end to:end decision:decision"},
    TypeFields{EventType::kViewDenied, "view.denied",
               "job:name round:round kind:code from:end to:end decision:decision"},
    TypeFields{EventType::kPeerConnected, "peer.connected",
               "peer:party ?jurisdiction:place key:digest ?instance:count ?protocol:count"},
    TypeFields{EventType::kPeerDisconnected, "peer.disconnected", "peer:party ?reason:reason"},
    TypeFields{EventType::kPeerRefused, "peer.refused", "?peer:party seconds:count counts:counts"},
    TypeFields{EventType::kHeadWitnessed, "head.witnessed", "log:key size:count root:digest"},
    TypeFields{EventType::kHeadConflict, "head.conflict",
               "log:key remembered_size:count remembered_root:digest shown_size:count "
               "shown_root:digest"},
    TypeFields{EventType::kInstanceConflict, "instance.conflict",
               "peer:party instance:count greatest:count"},
    TypeFields{EventType::kLogRecovered, "log.recovered",
               "operator:name instance:count size:count root:digest kept:count "
               "remembered_size:count remembered_root:digest datasets:names"},
    TypeFields{EventType::kControlSummary, "control.summary",
               "peer:party seconds:count messages_in:count messages_out:count bytes_in:count "
               "bytes_out:count"},
    TypeFields{EventType::kHeadRecovered, "head.recovered",
               "log:key recovered_seq:count size:count root:digest remembered_size:count "
               "remembered_root:digest"},
};
#undef PHASE_FIELDS
#undef SOME_PHASE_FIELDS

// Lists of objects are written with the plural of the kind below.
constexpr std::array kObjects = {
    TypeFields{EventType::kNone, "epoch", "starts:count attempt:round"},
    TypeFields{EventType::kNone, "end", "party:party ?jurisdiction:place"},
    TypeFields{EventType::kNone, "policies",
               "effective:digest ?federation:digest ?aggregator:digest ?site:digest "
               "?facts:digest"},
    TypeFields{EventType::kNone, "decision",
               "result:result reasons:reasons rules:rules policies:policies"},
    TypeFields{EventType::kNone, "contributor", "site:name digest:digest ?weight:count"},
    TypeFields{EventType::kNone, "grid", "scale_bits:count max_weight:count max_sites:count"},
    TypeFields{EventType::kNone, "tally", "reason:reason count:count"},
};

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

template <typename Allowed>
bool Made(std::string_view text, std::size_t longest, Allowed allowed) {
  return !text.empty() && text.size() <= longest && std::all_of(text.begin(), text.end(), allowed);
}

bool IsName(std::string_view text) { return SiteId::Parse(text).ok(); }
bool IsDigest(std::string_view text) { return ParseDigest(text).ok(); }
bool IsCode(std::string_view text) {
  return Made(text, 40,
              [](char c) { return IsLower(c) || IsDigit(c) || c == '.' || c == '_' || c == '-'; });
}
bool IsReason(std::string_view text) {
  return Made(text, 40, [](char c) { return IsUpper(c) || IsDigit(c) || c == '-'; });
}
// Ids of rules name a source and a key of the policy language, and may hold a jurisdiction.
bool IsRule(std::string_view text) {
  return Made(text, 120, [](char c) {
    return IsUpper(c) || IsLower(c) || IsDigit(c) ||
           std::string_view("._:/@#[]=+*-").find(c) != std::string_view::npos;
  });
}
bool IsPlace(std::string_view text) {
  return Made(text, 8, [](char c) { return IsUpper(c) || IsDigit(c) || c == '-'; }) &&
         text.size() >= 2 && IsUpper(text[0]) && IsUpper(text[1]);
}
bool IsTime(std::string_view text) {
  const auto time = ParseTime(text);
  return time.ok() && PrintTime(*time) == text;
}
bool IsKey(std::string_view text) {
  return Made(text, 200, [](char c) {
    return IsUpper(c) || IsLower(c) || IsDigit(c) || c == '.' || c == '_' || c == '-' || c == '/';
  });
}
bool IsParty(std::string_view text) {
  const auto parts = Split(text, '/');
  static constexpr std::array<std::string_view, 4> kRoles = {"site", "aggregator", "operator",
                                                             "auditor"};
  return parts.size() == 2 && std::find(kRoles.begin(), kRoles.end(), parts[0]) != kRoles.end() &&
         IsName(parts[1]);
}
bool IsPhase(std::string_view text) {
  return text == "statistics" || text == "train" || text == "evaluate";
}
bool IsResult(std::string_view text) { return text == "allow" || text == "deny" || text == "hold"; }

using TextCheck = bool (*)(std::string_view);
struct NamedCheck {
  std::string_view kind;
  TextCheck check;
};
constexpr std::array kTexts = {
    NamedCheck{"name", IsName},     NamedCheck{"digest", IsDigest}, NamedCheck{"code", IsCode},
    NamedCheck{"reason", IsReason}, NamedCheck{"rule", IsRule},     NamedCheck{"place", IsPlace},
    NamedCheck{"time", IsTime},     NamedCheck{"key", IsKey},       NamedCheck{"party", IsParty},
    NamedCheck{"phase", IsPhase},   NamedCheck{"result", IsResult},
};
struct ListKind {
  std::string_view kind;
  std::string_view item;
};
constexpr std::array kLists = {
    ListKind{"names", "name"}, ListKind{"codes", "code"},   ListKind{"reasons", "reason"},
    ListKind{"rules", "rule"}, ListKind{"counts", "tally"}, ListKind{"contributors", "contributor"},
};

struct Field {
  std::string_view name;
  std::string_view kind;
  bool required = true;
};

std::vector<Field> ParseFields(std::string_view fields) {
  std::vector<Field> parsed;
  for (std::string_view word : Split(fields, ' ')) {
    Field field;
    if (word.front() == '?') {
      field.required = false;
      word.remove_prefix(1);
    }
    const std::size_t colon = word.find(':');
    DOMICILE_CHECK(colon != std::string_view::npos);
    field.name = word.substr(0, colon);
    field.kind = word.substr(colon + 1);
    parsed.push_back(field);
  }
  return parsed;
}

using FieldsByName = std::map<std::string_view, std::vector<Field>, std::less<>>;

// Parsed once, by name of type or object; names of the two do not meet, since types have a dot.
const FieldsByName& Fields() {
  static const FieldsByName all = [] {
    FieldsByName fields;
    for (const TypeFields& type : kTypes) {
      fields.emplace(type.name, ParseFields(type.fields));
    }
    for (const TypeFields& object : kObjects) {
      fields.emplace(object.name, ParseFields(object.fields));
    }
    return fields;
  }();
  return all;
}

Status CheckObject(std::string_view kind, const Json& value, const std::string& where);

Status Wrong(const std::string& where, std::string_view kind) {
  return Error(StatusCode::kInvalidArgument,
               "`" + where + "` is not a " + std::string(kind) + " (docs/formats/events.md)");
}

Status CheckValue(std::string_view kind, const Json& value, const std::string& where) {
  if (kind == "count" || kind == "round") {
    const std::int64_t* number = value.TryInt();
    const std::int64_t least = kind == "round" ? 1 : 0;
    const std::int64_t most = kind == "round" ? UINT32_MAX : kLargestJsonInteger;
    return number != nullptr && *number >= least && *number <= most ? OkStatus()
                                                                    : Wrong(where, kind);
  }
  if (kind == "flag") {
    return value.TryBool() != nullptr ? OkStatus() : Wrong(where, kind);
  }
  for (const NamedCheck& text : kTexts) {
    if (text.kind == kind) {
      const std::string* found = value.TryString();
      return found != nullptr && text.check(*found) ? OkStatus() : Wrong(where, kind);
    }
  }
  for (const ListKind& list : kLists) {
    if (list.kind == kind) {
      const JsonArray* items = value.TryArray();
      if (items == nullptr) {
        return Wrong(where, "list");
      }
      for (std::size_t i = 0; i < items->size(); ++i) {
        RETURN_IF_ERROR(CheckValue(list.item, (*items)[i], where + "[" + std::to_string(i) + "]"));
      }
      return OkStatus();
    }
  }
  return CheckObject(kind, value, where);
}

Status CheckObject(std::string_view kind, const Json& value, const std::string& where) {
  const auto fields = Fields().find(kind);
  DOMICILE_CHECK(fields != Fields().end());
  const JsonObject* object = value.TryObject();
  if (object == nullptr) {
    return Wrong(where, "object");
  }
  std::size_t known = 0;
  for (const Field& field : fields->second) {
    const Json* member = value.Find(field.name);
    if (member != nullptr) {
      ++known;
      RETURN_IF_ERROR(CheckValue(field.kind, *member, where + "." + std::string(field.name)));
    } else if (field.required) {
      return Error(StatusCode::kInvalidArgument,
                   "`" + where + "." + std::string(field.name) + "` is missing");
    }
  }
  if (known == object->size()) {
    return OkStatus();
  }
  std::vector<std::string_view> names;
  for (const Field& field : fields->second) {
    names.push_back(field.name);
  }
  for (const auto& [name, member] : *object) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const std::string near = NearestSpelling(name, names);
      return Error(StatusCode::kInvalidArgument,
                   "`" + where + "` has no field `" + Visible(name, 40) + "`" +
                       (near.empty() ? "" : "; did you mean `" + near + "`?"));
    }
  }
  return OkStatus();
}

}  // namespace

bool IsLogName(std::string_view text) { return IsKey(text); }

std::span<const TypeFields> AllTypeFields() { return kTypes; }
std::span<const TypeFields> AllObjectFields() { return kObjects; }

Status CheckBody(EventType type, const Json& body) {
  const std::string_view name = TypeName(type);
  if (type == EventType::kNone) {
    return Error(StatusCode::kInvalidArgument, "an event without a type");
  }
  return CheckObject(name, body, std::string(name));
}

}  // namespace domicile::audit::internal

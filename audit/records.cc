#include "audit/records.h"

#include <algorithm>
#include <utility>

namespace domicile::audit {

namespace {

Json List(const std::vector<std::string>& texts) { return JsonArray(texts.begin(), texts.end()); }

void SetUnlessZero(JsonObject& object, std::string_view key, const Digest& digest) {
  if (!digest.IsZero()) {
    object.emplace(key, PrintHex(digest));
  }
}

Json ToJson(const PolicyDigests& policies) {
  JsonObject object;
  SetUnlessZero(object, "effective", policies.effective);
  SetUnlessZero(object, "federation", policies.federation);
  SetUnlessZero(object, "aggregator", policies.aggregator);
  SetUnlessZero(object, "site", policies.site);
  SetUnlessZero(object, "facts", policies.facts);
  return object;
}

// Reading. The event was checked when it was made, so its fields are there and of their kinds; an
// absent optional one reads as empty.

const Json& Member(const Json& object, std::string_view key) {
  static const Json empty{JsonObject{}};
  const Json* member = object.Find(key);
  return member == nullptr ? empty : *member;
}

std::string TextOf(const Json& object, std::string_view key) {
  const std::string* text = Member(object, key).TryString();
  return text == nullptr ? std::string() : *text;
}

std::uint64_t CountOf(const Json& object, std::string_view key) {
  const std::int64_t* number = Member(object, key).TryInt();
  return number == nullptr ? 0 : static_cast<std::uint64_t>(*number);
}

// Counts that the record holds in 32 bits; a larger one is cut to the largest, which no writer
// logs.
std::uint32_t SmallCountOf(const Json& object, std::string_view key) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(CountOf(object, key), UINT32_MAX));
}

Digest DigestOf(const Json& object, std::string_view key) {
  const auto digest = ParseDigest(TextOf(object, key));
  return digest.ok() ? *digest : Digest{};
}

template <typename NameType>
NameType NameOf(const Json& object, std::string_view key) {
  auto name = NameType::Parse(TextOf(object, key));
  return name.ok() ? *std::move(name) : NameType();
}

std::vector<std::string> TextsOf(const Json& object, std::string_view key) {
  std::vector<std::string> texts;
  if (const JsonArray* items = Member(object, key).TryArray()) {
    for (const Json& item : *items) {
      texts.push_back(*item.TryString());
    }
  }
  return texts;
}

PolicyDigests PoliciesOf(const Json& json) {
  return {.effective = DigestOf(json, "effective"),
          .federation = DigestOf(json, "federation"),
          .aggregator = DigestOf(json, "aggregator"),
          .site = DigestOf(json, "site"),
          .facts = DigestOf(json, "facts")};
}

DecisionRecord DecisionOf(const Json& json) {
  return {.result = TextOf(json, "result"),
          .reasons = TextsOf(json, "reasons"),
          .rules = TextsOf(json, "rules"),
          .policies = PoliciesOf(Member(json, "policies"))};
}

PartyPlace PlaceOf(const Json& json) {
  return {.party = TextOf(json, "party"), .jurisdiction = TextOf(json, "jurisdiction")};
}

Status WantType(const Event& event, std::initializer_list<EventType> wanted) {
  if (std::find(wanted.begin(), wanted.end(), event.type()) != wanted.end()) {
    return OkStatus();
  }
  return Error(StatusCode::kInvalidArgument,
               "an event `" + std::string(TypeName(event.type())) + "`, where `" +
                   std::string(TypeName(*wanted.begin())) + "` was expected");
}

}  // namespace

std::string RuleId(std::string_view source, std::string_view policy, std::string_view rule) {
  std::string id = std::string(source) + "/" + std::string(policy) + "/" + std::string(rule);
  for (char& c : id) {
    const bool known = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("._:/@#[]=+*-").find(c) != std::string_view::npos;
    c = known ? c : '-';
  }
  return id.substr(0, 120);
}

Json ToJson(const DecisionRecord& decision) {
  return JsonObject{{"result", decision.result},
                    {"reasons", List(decision.reasons)},
                    {"rules", List(decision.rules)},
                    {"policies", ToJson(decision.policies)}};
}

Json ToJson(const PartyPlace& place) {
  JsonObject object{{"party", place.party}};
  if (!place.jurisdiction.empty()) {
    object.emplace("jurisdiction", place.jurisdiction);
  }
  return object;
}

StatusOr<Event> ToEvent(const EgressDecided& record) {
  EventBuilder builder(EventType::kEgressDecided);
  builder.Phase(record.key)
      .Set("transfer", record.transfer)
      .Set("kinds", record.kinds)
      .Set("dataset", record.dataset)
      .Set("from", ToJson(record.from))
      .Set("to", ToJson(record.to))
      .Set("decision", ToJson(record.decision))
      .Set("bytes", Json(record.bytes))
      .Set("numbers", Json(record.numbers))
      .Set("capacity_bits", Json(record.capacity_bits))
      .Set("grant", record.grant);
  if (record.cohort_bucket != 0) {
    builder.Set("cohort_bucket", Json(record.cohort_bucket));
  }
  if (record.epsilon_micro != 0) {
    builder.Set("epsilon_micro", Json(record.epsilon_micro));
  }
  return builder.Build();
}

StatusOr<EgressDecided> ReadEgressDecided(const Event& event) {
  RETURN_IF_ERROR(WantType(event, {EventType::kEgressDecided}));
  const Json& body = event.body();
  return EgressDecided{.key = event.Phase(),
                       .transfer = DigestOf(body, "transfer"),
                       .kinds = TextsOf(body, "kinds"),
                       .dataset = NameOf<DatasetAlias>(body, "dataset"),
                       .from = PlaceOf(Member(body, "from")),
                       .to = PlaceOf(Member(body, "to")),
                       .decision = DecisionOf(Member(body, "decision")),
                       .bytes = CountOf(body, "bytes"),
                       .numbers = CountOf(body, "numbers"),
                       .capacity_bits = CountOf(body, "capacity_bits"),
                       .cohort_bucket = SmallCountOf(body, "cohort_bucket"),
                       .epsilon_micro = CountOf(body, "epsilon_micro"),
                       .grant = DigestOf(body, "grant")};
}

StatusOr<Event> ToEvent(const PhaseOpened& record) {
  JsonArray participants;
  for (const SiteId& site : record.participants) {
    participants.emplace_back(site.text());
  }
  return EventBuilder(EventType::kPhaseOpened)
      .Phase(record.key)
      .Set("plan", record.plan)
      .Set("model", record.model)
      .Set("participants", Json(std::move(participants)))
      .Set("floor", Json(record.floor))
      .Set("grid", Json(JsonObject{{"scale_bits", record.scale_bits},
                                   {"max_weight", record.max_weight},
                                   {"max_sites", record.max_sites}}))
      .Set("deadline_seconds", Json(record.deadline_seconds))
      .Set("policies", ToJson(record.policies))
      .Build();
}

StatusOr<PhaseOpened> ReadPhaseOpened(const Event& event) {
  RETURN_IF_ERROR(WantType(event, {EventType::kPhaseOpened}));
  const Json& body = event.body();
  const Json& grid = Member(body, "grid");
  PhaseOpened record;
  record.key = event.Phase();
  record.plan = DigestOf(body, "plan");
  record.model = DigestOf(body, "model");
  for (const std::string& site : TextsOf(body, "participants")) {
    ASSIGN_OR_RETURN(record.participants.emplace_back(), SiteId::Parse(site));
  }
  record.floor = SmallCountOf(body, "floor");
  record.scale_bits = SmallCountOf(grid, "scale_bits");
  record.max_weight = SmallCountOf(grid, "max_weight");
  record.max_sites = SmallCountOf(grid, "max_sites");
  record.deadline_seconds = SmallCountOf(body, "deadline_seconds");
  record.policies = PoliciesOf(Member(body, "policies"));
  return record;
}

StatusOr<Event> ToEvent(const PhaseCommitted& record) {
  JsonArray contributors;
  for (const Contributor& contributor : record.contributors) {
    JsonObject object{{"site", contributor.site.text()}, {"digest", PrintHex(contributor.digest)}};
    if (contributor.weight) {
      object.emplace("weight", *contributor.weight);
    }
    contributors.emplace_back(std::move(object));
  }
  return EventBuilder(EventType::kPhaseCommitted)
      .Phase(record.key)
      .Set("contributors", Json(std::move(contributors)))
      .Set("model", record.model)
      .Build();
}

StatusOr<PhaseCommitted> ReadPhaseCommitted(const Event& event) {
  RETURN_IF_ERROR(WantType(event, {EventType::kPhaseCommitted}));
  PhaseCommitted record;
  record.key = event.Phase();
  record.model = DigestOf(event.body(), "model");
  for (const Json& item : *Member(event.body(), "contributors").TryArray()) {
    Contributor contributor;
    contributor.site = NameOf<SiteId>(item, "site");
    contributor.digest = DigestOf(item, "digest");
    if (item.Find("weight") != nullptr) {
      contributor.weight = CountOf(item, "weight");
    }
    record.contributors.push_back(std::move(contributor));
  }
  return record;
}

StatusOr<Event> ToEvent(const IngressReceived& record) {
  return EventBuilder(EventType::kIngressReceived)
      .Phase(record.key)
      .Set("site", record.site)
      .Set("jurisdiction", Json(record.jurisdiction))
      .Set("digest", record.digest)
      .Set("bytes", Json(record.bytes))
      .Set("kinds", record.kinds)
      .Set("capacity_bits", Json(record.capacity_bits))
      .Set("decision", ToJson(record.decision))
      .Build();
}

StatusOr<IngressReceived> ReadIngressReceived(const Event& event) {
  RETURN_IF_ERROR(WantType(event, {EventType::kIngressReceived}));
  const Json& body = event.body();
  return IngressReceived{.key = event.Phase(),
                         .site = NameOf<SiteId>(body, "site"),
                         .jurisdiction = TextOf(body, "jurisdiction"),
                         .digest = DigestOf(body, "digest"),
                         .bytes = CountOf(body, "bytes"),
                         .kinds = TextsOf(body, "kinds"),
                         .capacity_bits = CountOf(body, "capacity_bits"),
                         .decision = DecisionOf(Member(body, "decision"))};
}

StatusOr<Event> ToEvent(EventType type, const EgressStep& record) {
  EventBuilder builder(type);
  builder.Phase(record.key).Set("digest", record.digest).Set("bytes", Json(record.bytes));
  if (record.receipt_seq) {
    builder.Set("receipt_seq", Json(*record.receipt_seq));
  }
  if (!record.reason.empty()) {
    builder.Set("reason", Json(record.reason));
  }
  ASSIGN_OR_RETURN(Event event, builder.Build());
  RETURN_IF_ERROR(WantType(
      event, {EventType::kEgressIntent, EventType::kEgressDone, EventType::kEgressAborted}));
  return event;
}

StatusOr<EgressStep> ReadEgressStep(const Event& event) {
  RETURN_IF_ERROR(WantType(
      event, {EventType::kEgressIntent, EventType::kEgressDone, EventType::kEgressAborted}));
  const Json& body = event.body();
  EgressStep step{.key = event.Phase(),
                  .digest = DigestOf(body, "digest"),
                  .bytes = CountOf(body, "bytes"),
                  .receipt_seq = std::nullopt,
                  .reason = TextOf(body, "reason")};
  if (body.Find("receipt_seq") != nullptr) {
    step.receipt_seq = CountOf(body, "receipt_seq");
  }
  return step;
}

StatusOr<Event> ToEvent(const ControlSummary& record) {
  return EventBuilder(EventType::kControlSummary)
      .Set("peer", record.peer)
      .Set("seconds", record.seconds)
      .Set("messages_in", record.messages_in)
      .Set("messages_out", record.messages_out)
      .Set("bytes_in", record.bytes_in)
      .Set("bytes_out", record.bytes_out)
      .Build();
}

StatusOr<ControlSummary> ReadControlSummary(const Event& event) {
  RETURN_IF_ERROR(WantType(event, {EventType::kControlSummary}));
  const Json& body = event.body();
  return ControlSummary{.peer = TextOf(body, "peer"),
                        .seconds = CountOf(body, "seconds"),
                        .messages_in = CountOf(body, "messages_in"),
                        .messages_out = CountOf(body, "messages_out"),
                        .bytes_in = CountOf(body, "bytes_in"),
                        .bytes_out = CountOf(body, "bytes_out")};
}

StatusOr<Event> ToEvent(EventType type, const ModelTransfer& record) {
  EventBuilder builder(type);
  builder.Phase(record.key)
      .Set("model", record.model)
      .Set("bytes", Json(record.bytes))
      .Set("kind", Json(record.kind))
      .Set("from", ToJson(record.from))
      .Set("to", ToJson(record.to));
  if (!record.decision.result.empty()) {
    builder.Set("decision", ToJson(record.decision));
  }
  ASSIGN_OR_RETURN(Event event, builder.Build());
  RETURN_IF_ERROR(WantType(event, {EventType::kModelSent, EventType::kModelIntake}));
  return event;
}

StatusOr<ModelTransfer> ReadModelTransfer(const Event& event) {
  RETURN_IF_ERROR(WantType(event, {EventType::kModelSent, EventType::kModelIntake}));
  const Json& body = event.body();
  return ModelTransfer{.key = event.Phase(),
                       .model = DigestOf(body, "model"),
                       .bytes = CountOf(body, "bytes"),
                       .kind = TextOf(body, "kind"),
                       .from = PlaceOf(Member(body, "from")),
                       .to = PlaceOf(Member(body, "to")),
                       .decision = DecisionOf(Member(body, "decision"))};
}

}  // namespace domicile::audit

#include "aggregator/rounds/event_json.h"

#include <array>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/json.h"

namespace domicile::aggregator {
namespace {

using policy::Reason;

constexpr std::int64_t kLargestU32 = std::numeric_limits<std::uint32_t>::max();
// In the order of the variant.
constexpr std::array<std::string_view, std::variant_size_v<Event>> kNames = {
    "submitted",          "site_connected",  "site_disconnected", "offer_answered",  "start_due",
    "phase_declined",     "update_received", "deadline_passed",   "phase_committed", "phase_failed",
    "aggregator_started", "cancelled",       "answers_withdrawn"};

std::string_view AnswerName(Answer answer) {
  switch (answer) {
    case Answer::kNone:
      return "";
    case Answer::kAccept:
      return "accept";
    case Answer::kDecline:
      return "decline";
    case Answer::kHold:
      return "hold";
  }
  return "";
}

// ---- printing ----

Json KeyJson(const PhaseKey& key) {
  return JsonObject{{"phase", contracts::PhaseName(key.phase)}, {"round", key.round}};
}

Json EpochJson(const Epoch& epoch) {
  return JsonObject{{"attempt", epoch.attempt}, {"starts", epoch.starts}};
}

JsonObject PhaseFields(const PhaseKey& key, const Epoch& epoch) {
  return {{"epoch", EpochJson(epoch)}, {"key", KeyJson(key)}};
}

struct Fields {
  JsonObject operator()(const Submitted& event) const {
    return {{"model", PrintHex(event.model)}, {"starts", event.starts}};
  }
  JsonObject operator()(const SiteConnected& event) const { return {{"site", event.site.text()}}; }
  JsonObject operator()(const SiteDisconnected& event) const {
    return {{"site", event.site.text()}};
  }
  JsonObject operator()(const OfferAnswered& event) const {
    JsonObject fields = {{"answer", AnswerName(event.answer)},
                         {"min_contributors", event.min_contributors},
                         {"organisation", event.organisation.text()},
                         {"policy", PrintHex(event.policy)},
                         {"site", event.site.text()}};
    if (event.answer != Answer::kAccept) {
      fields.emplace("reason", policy::Code(event.reason));
    }
    return fields;
  }
  JsonObject operator()(const StartDue& /*event*/) const { return {}; }
  JsonObject operator()(const PhaseDeclined& event) const {
    JsonObject fields = PhaseFields(event.key, event.epoch);
    fields.emplace("reason", policy::Code(event.reason));
    fields.emplace("site", event.site.text());
    return fields;
  }
  JsonObject operator()(const UpdateReceived& event) const {
    JsonObject fields = PhaseFields(event.key, event.epoch);
    fields.emplace("digest", PrintHex(event.digest));
    fields.emplace("leaf", event.leaf);
    fields.emplace("site", event.site.text());
    fields.emplace("weight", event.weight);
    return fields;
  }
  JsonObject operator()(const DeadlinePassed& event) const {
    return PhaseFields(event.key, event.epoch);
  }
  JsonObject operator()(const PhaseCommitted& event) const {
    JsonObject fields = PhaseFields(event.key, event.epoch);
    JsonArray contributors;
    for (const Contributor& contributor : event.contributors) {
      contributors.emplace_back(JsonObject{{"digest", PrintHex(contributor.digest)},
                                           {"leaf", contributor.leaf},
                                           {"site", contributor.site.text()},
                                           {"weight", contributor.weight}});
    }
    fields.emplace("contributors", std::move(contributors));
    if (!event.model.IsZero()) {
      fields.emplace("model", PrintHex(event.model));
    }
    return fields;
  }
  JsonObject operator()(const PhaseFailed& event) const {
    JsonObject fields = PhaseFields(event.key, event.epoch);
    fields.emplace("reason", policy::Code(event.reason));
    return fields;
  }
  JsonObject operator()(const AggregatorStarted& event) const {
    return {{"starts", event.starts}, {"waited_seconds", event.waited.count()}};
  }
  JsonObject operator()(const Cancelled& /*event*/) const { return {}; }
  JsonObject operator()(const AnswersWithdrawn& event) const {
    JsonArray sites;
    for (const SiteId& site : event.sites) {
      sites.emplace_back(site.text());
    }
    return {{"reason", policy::Code(event.reason)}, {"sites", std::move(sites)}};
  }
};

// ---- parsing ----

template <typename Id>
Id ReadName(JsonReader& reader, std::string_view key) {
  StatusOr<Id> name = Id::Parse(reader.String(key));
  reader.Merge(name.status());
  return name.ok() ? *std::move(name) : Id();
}

Digest ReadDigest(JsonReader& reader, std::string_view key) {
  const StatusOr<Digest> digest = ParseDigest(reader.String(key));
  reader.Merge(digest.status());
  return digest.ok() ? *digest : Digest{};
}

Reason ReadReason(JsonReader& reader) {
  const std::optional<Reason> reason = policy::ReasonFromCode(reader.String("reason"));
  if (!reason || *reason == Reason::kNone) {
    reader.Fail("reason", "is no code of the list");
    return Reason::kNone;
  }
  return *reason;
}

std::uint64_t ReadStarts(JsonReader& reader) {
  return static_cast<std::uint64_t>(reader.Int("starts", 1, kLargestJsonInteger));
}

void ReadPhase(JsonReader& reader, PhaseKey& key, Epoch& epoch) {
  JsonReader key_reader(reader.Object("key"), reader.where() + ".key");
  key.round = static_cast<RoundNumber>(key_reader.Int("round", 1, kLargestU32));
  const std::string phase = key_reader.String("phase");
  for (const PhaseKind kind : {PhaseKind::kStatistics, PhaseKind::kTrain, PhaseKind::kEvaluate}) {
    key.phase = contracts::PhaseName(kind) == phase ? kind : key.phase;
  }
  if (key.phase == PhaseKind::kNone) {
    key_reader.Fail("phase", "is no phase");
  }
  reader.Merge(key_reader.Finish());
  JsonReader epoch_reader(reader.Object("epoch"), reader.where() + ".epoch");
  epoch.starts = ReadStarts(epoch_reader);
  epoch.attempt = static_cast<std::uint32_t>(epoch_reader.Int("attempt", 1, kLargestU32));
  reader.Merge(epoch_reader.Finish());
}

void Read(JsonReader& reader, Submitted& event) {
  event.model = ReadDigest(reader, "model");
  event.starts = ReadStarts(reader);
}
void Read(JsonReader& reader, SiteConnected& event) {
  event.site = ReadName<SiteId>(reader, "site");
}
void Read(JsonReader& reader, SiteDisconnected& event) {
  event.site = ReadName<SiteId>(reader, "site");
}
void Read(JsonReader& reader, OfferAnswered& event) {
  const std::string answer = reader.String("answer");
  for (const Answer kind : {Answer::kAccept, Answer::kDecline, Answer::kHold}) {
    event.answer = AnswerName(kind) == answer ? kind : event.answer;
  }
  if (event.answer == Answer::kNone) {
    reader.Fail("answer", "is no answer");
  }
  event.site = ReadName<SiteId>(reader, "site");
  event.organisation = ReadName<OrganisationId>(reader, "organisation");
  event.min_contributors =
      static_cast<std::uint32_t>(reader.Int("min_contributors", 0, kLargestU32));
  event.policy = ReadDigest(reader, "policy");
  if (event.answer != Answer::kAccept) {
    event.reason = ReadReason(reader);
  }
}
void Read(JsonReader& /*reader*/, StartDue& /*event*/) {}
void Read(JsonReader& reader, PhaseDeclined& event) {
  ReadPhase(reader, event.key, event.epoch);
  event.site = ReadName<SiteId>(reader, "site");
  event.reason = ReadReason(reader);
}
void Read(JsonReader& reader, UpdateReceived& event) {
  ReadPhase(reader, event.key, event.epoch);
  event.site = ReadName<SiteId>(reader, "site");
  event.digest = ReadDigest(reader, "digest");
  event.weight = reader.Int("weight", 1, kLargestJsonInteger);
  event.leaf = static_cast<std::uint64_t>(reader.Int("leaf", 0, kLargestJsonInteger));
}
void Read(JsonReader& reader, DeadlinePassed& event) { ReadPhase(reader, event.key, event.epoch); }
void Read(JsonReader& reader, PhaseCommitted& event) {
  ReadPhase(reader, event.key, event.epoch);
  const JsonArray& contributors = reader.Array("contributors");
  for (std::size_t i = 0; i < contributors.size(); ++i) {
    JsonReader inner(contributors[i], reader.where() + ".contributors[" + std::to_string(i) + "]");
    Contributor contributor;
    contributor.site = ReadName<SiteId>(inner, "site");
    contributor.digest = ReadDigest(inner, "digest");
    contributor.weight = inner.Int("weight", 1, kLargestJsonInteger);
    contributor.leaf = static_cast<std::uint64_t>(inner.Int("leaf", 0, kLargestJsonInteger));
    reader.Merge(inner.Finish());
    event.contributors.push_back(std::move(contributor));
  }
  if (reader.Has("model")) {
    event.model = ReadDigest(reader, "model");
    if (event.model.IsZero()) {
      reader.Fail("model", "is zero; leave it out where there is none");
    }
  }
}
void Read(JsonReader& reader, PhaseFailed& event) {
  ReadPhase(reader, event.key, event.epoch);
  event.reason = ReadReason(reader);
}
void Read(JsonReader& reader, AggregatorStarted& event) {
  event.starts = ReadStarts(reader);
  event.waited = std::chrono::seconds(reader.Int("waited_seconds", 0, kLargestU32));
}
void Read(JsonReader& /*reader*/, Cancelled& /*event*/) {}
void Read(JsonReader& reader, AnswersWithdrawn& event) {
  event.reason = ReadReason(reader);
  for (const Json& site : reader.Array("sites")) {
    const std::string* name = site.TryString();
    StatusOr<SiteId> id = SiteId::Parse(name == nullptr ? std::string_view() : *name);
    reader.Merge(id.status());
    if (id.ok()) {
      event.sites.push_back(*std::move(id));
    }
  }
}

// Reads the alternative whose name it is, trying I, I + 1, ...
template <std::size_t I = 0>
void ReadNamed(JsonReader& reader, std::string_view name, Event& event) {
  if constexpr (I == std::variant_size_v<Event>) {
    reader.Fail("event", "is no event of this version");
  } else if (kNames[I] == name) {
    Read(reader, event.emplace<I>());
  } else {
    ReadNamed<I + 1>(reader, name, event);
  }
}

}  // namespace

std::string_view EventName(const Event& event) { return kNames[event.index()]; }

std::string PrintEvent(const Event& event) {
  JsonObject fields = std::visit(Fields{}, event);
  fields.emplace("event", EventName(event));
  fields.emplace("v", 1);
  return PrintJson(std::move(fields));
}

StatusOr<Event> ParseEvent(std::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseCanonicalJson(text));
  JsonReader reader(json, "event");
  reader.Int("v", 1, 1);
  Event event;
  ReadNamed(reader, reader.String("event"), event);
  RETURN_IF_ERROR(reader.Finish());
  return event;
}

}  // namespace domicile::aggregator

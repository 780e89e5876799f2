#include "audit/event.h"

#include <algorithm>

#include "audit/internal/event_fields.h"
#include "base/text.h"

namespace domicile::audit {

namespace {

constexpr std::size_t kBootDigits = 32;

bool IsBoot(std::string_view text) {
  return text.size() == kBootDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

std::string_view TypeName(EventType type) {
  for (const internal::TypeFields& fields : internal::AllTypeFields()) {
    if (fields.type == type) {
      return fields.name;
    }
  }
  return "none";
}

std::optional<EventType> TypeFromName(std::string_view name) {
  for (const internal::TypeFields& fields : internal::AllTypeFields()) {
    if (fields.name == name) {
      return fields.type;
    }
  }
  return std::nullopt;
}

std::span<const EventType> AllEventTypes() {
  static const std::vector<EventType> all = [] {
    std::vector<EventType> types;
    for (const internal::TypeFields& fields : internal::AllTypeFields()) {
      types.push_back(fields.type);
    }
    return types;
  }();
  return all;
}

std::string Event::Text(std::string_view field) const {
  const Json* value = body_.Find(field);
  const std::string* text = value == nullptr ? nullptr : value->TryString();
  return text == nullptr ? std::string() : *text;
}

std::int64_t Event::Int(std::string_view field) const {
  const Json* value = body_.Find(field);
  const std::int64_t* number = value == nullptr ? nullptr : value->TryInt();
  return number == nullptr ? 0 : *number;
}

PhaseKey Event::Phase() const {
  PhaseKey key;
  if (auto job = JobId::Parse(Text("job")); job.ok()) {
    key.job = *std::move(job);
  }
  key.round = static_cast<RoundNumber>(Int("round"));
  key.phase = Text("phase");
  if (const Json* epoch = body_.Find("epoch"); epoch != nullptr) {
    const Json* starts = epoch->Find("starts");
    const Json* attempt = epoch->Find("attempt");
    if (starts != nullptr && attempt != nullptr) {
      key.epoch = {static_cast<std::uint64_t>(*starts->TryInt()),
                   static_cast<std::uint32_t>(*attempt->TryInt())};
    }
  }
  return key;
}

EventBuilder& EventBuilder::Set(std::string_view field, Json value) {
  body_.Set(field, std::move(value));
  return *this;
}

EventBuilder& EventBuilder::Set(std::string_view field, const Digest& digest) {
  return Set(field, Json(PrintHex(digest)));
}

EventBuilder& EventBuilder::Set(std::string_view field, const Epoch& epoch) {
  return Set(field,
             Json(JsonObject{{"starts", Json(epoch.starts)}, {"attempt", Json(epoch.attempt)}}));
}

EventBuilder& EventBuilder::Set(std::string_view field, WallTime time) {
  return Set(field, Json(PrintTime(time)));
}

EventBuilder& EventBuilder::Set(std::string_view field, std::span<const std::string> texts) {
  return Set(field, Json(JsonArray(texts.begin(), texts.end())));
}

EventBuilder& EventBuilder::Phase(const PhaseKey& key) {
  return Set("job", key.job)
      .Set("round", Json(key.round))
      .Set("phase", Json(key.phase))
      .Set("epoch", key.epoch);
}

StatusOr<Event> EventBuilder::Build() const {
  RETURN_IF_ERROR(internal::CheckBody(type_, body_));
  return Event(type_, body_);
}

StatusOr<std::string> PrintLeaf(const Frame& frame, const Event& event) {
  std::string bytes = PrintJson(Json(JsonObject{{"v", Json(1)},
                                                {"origin", Json(frame.origin)},
                                                {"seq", Json(frame.seq)},
                                                {"type", Json(TypeName(event.type()))},
                                                {"ts", Json(PrintTime(frame.time))},
                                                {"mono_us", Json(frame.mono_us)},
                                                {"boot", Json(frame.boot)},
                                                {"body", event.body()}}));
  if (bytes.size() > kLongestLeaf) {
    return Error(StatusCode::kInvalidArgument, "event `" + std::string(TypeName(event.type())) +
                                                   "` has " + std::to_string(bytes.size()) +
                                                   " bytes; a leaf has at most " +
                                                   std::to_string(kLongestLeaf));
  }
  return bytes;
}

StatusOr<Leaf> ParseLeaf(std::string_view bytes) {
  if (bytes.size() > kLongestLeaf) {
    return Error(StatusCode::kInvalidArgument, "longer than a leaf can be");
  }
  ASSIGN_OR_RETURN(const Json json, ParseCanonicalJson(bytes));
  JsonReader reader(json, "leaf");
  Frame frame;
  reader.Int("v", 1, 1);
  frame.origin = reader.String("origin");
  frame.seq = static_cast<std::uint64_t>(reader.Int("seq", 0, kLargestJsonInteger));
  const std::string type_name = reader.String("type");
  const std::string time_text = reader.String("ts");
  frame.mono_us = static_cast<std::uint64_t>(reader.Int("mono_us", 0, kLargestJsonInteger));
  frame.boot = reader.String("boot");
  const Json& body = reader.Object("body");
  RETURN_IF_ERROR(reader.Finish());
  if (!internal::IsLogName(frame.origin)) {
    return Error(StatusCode::kInvalidArgument, "`leaf.origin` is not the name of a log");
  }
  const auto time = ParseTime(time_text);
  if (!time.ok() || PrintTime(*time) != time_text) {
    return Error(StatusCode::kInvalidArgument, "`leaf.ts` is not a UTC time in milliseconds");
  }
  frame.time = *time;
  if (!IsBoot(frame.boot)) {
    return Error(StatusCode::kInvalidArgument, "`leaf.boot` is not 32 hexadecimal digits");
  }
  const std::optional<EventType> type = TypeFromName(type_name);
  if (!type) {
    return Error(StatusCode::kInvalidArgument, "`leaf.type` is not in the list of events");
  }
  EventBuilder builder(*type);
  builder.body_ = body;
  ASSIGN_OR_RETURN(Event event, builder.Build());
  return Leaf{std::move(frame), std::move(event)};
}

}  // namespace domicile::audit

#include "audit/event.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "audit/internal/event_fields.h"
#include "audit/records.h"
#include "base/text.h"
#include "tests/support/example_log.h"

namespace domicile::audit {
namespace {

using test::Must;

Frame ExampleFrame() {
  return {.origin = "demo/site/charite/log",
          .seq = 3,
          .time = test::kExampleTime,
          .mono_us = 12,
          .boot = std::string(32, '0')};
}

TEST_CASE("EventType: every type has one name, and the name finds it") {
  std::set<std::string_view> names;
  for (const EventType type : AllEventTypes()) {
    CHECK(names.insert(TypeName(type)).second);
    CHECK(TypeFromName(TypeName(type)) == type);
  }
  CHECK(names.size() == AllEventTypes().size());
  CHECK(!TypeFromName("none"));
  CHECK(!TypeFromName("egress.sent"));
  CHECK(TypeName(static_cast<EventType>(9999)) == "none");
}

TEST_CASE("Events: the page of the format lists the fields that the code checks") {
  std::ifstream page(std::string(DOMICILE_SOURCE_DIR) + "/docs/formats/events.md");
  std::stringstream text;
  text << page.rdbuf();

  for (const auto& list : {internal::AllTypeFields(), internal::AllObjectFields()}) {
    for (const internal::TypeFields& type : list) {
      const std::string row =
          "| `" + std::string(type.name) + "` | `" + std::string(type.fields) + "` |\n";
      CAPTURE(row);
      CHECK(text.str().find(row) != std::string::npos);
    }
  }
}

// Valid values for every kind, to make an event of every type.
Json ExampleOf(std::string_view kind) {
  const Digest digest = test::ExampleDigest(0x42);
  if (kind == "count" || kind == "round") return 7;
  if (kind == "flag") return true;
  if (kind == "name") return "a-name";
  if (kind == "digest") return PrintHex(digest);
  if (kind == "code") return "delta.plain";
  if (kind == "reason") return "MODEL-JUMP";
  if (kind == "rule") return "site/p-1/S-1";
  if (kind == "place") return "US-CA";
  if (kind == "time") return "2026-12-01T09:30:00.250Z";
  if (kind == "key") return "demo/site/x/log";
  if (kind == "party") return "operator/alice";
  if (kind == "phase") return "evaluate";
  if (kind == "result") return "hold";
  if (kind == "names") return JsonArray{"a", "b"};
  if (kind == "codes") return JsonArray{"delta.plain"};
  if (kind == "reasons") return JsonArray{"VIEW"};
  if (kind == "rules") return JsonArray{};
  if (kind == "counts") return JsonArray{ExampleOf("tally")};
  if (kind == "contributors") return JsonArray{ExampleOf("contributor")};
  for (const internal::TypeFields& object : internal::AllObjectFields()) {
    if (object.name == kind) {
      Json json;
      for (std::string_view field : Split(object.fields, ' ')) {
        field.remove_prefix(field.front() == '?' ? 1 : 0);
        const std::size_t colon = field.find(':');
        json.Set(field.substr(0, colon), ExampleOf(field.substr(colon + 1)));
      }
      return json;
    }
  }
  FAIL("no example of the kind ", kind);
  return {};
}

struct FieldOf {
  EventType type;
  std::string name;
  std::string kind;
  bool required;
};

std::vector<FieldOf> FieldsOf(const internal::TypeFields& type) {
  std::vector<FieldOf> fields;
  for (std::string_view field : Split(type.fields, ' ')) {
    const bool required = field.front() != '?';
    field.remove_prefix(required ? 0 : 1);
    const std::size_t colon = field.find(':');
    fields.push_back({type.type, std::string(field.substr(0, colon)),
                      std::string(field.substr(colon + 1)), required});
  }
  return fields;
}

Json BodyOf(const std::vector<FieldOf>& fields) {
  Json body;
  for (const FieldOf& field : fields) {
    body.Set(field.name, ExampleOf(field.kind));
  }
  return body;
}

StatusOr<Event> Build(EventType type, const Json& body) {
  EventBuilder builder(type);
  for (const auto& [name, value] : *body.TryObject()) {
    builder.Set(name, value);
  }
  return builder.Build();
}

TEST_CASE("EventBuilder: every type is made with all its fields, and reads back the same") {
  for (const internal::TypeFields& type : internal::AllTypeFields()) {
    CAPTURE(type.name);
    const auto event = Build(type.type, BodyOf(FieldsOf(type)));
    REQUIRE(event.ok());

    const std::string bytes = Must(PrintLeaf(ExampleFrame(), *event));
    const Leaf leaf = Must(ParseLeaf(bytes));

    CHECK(leaf == Leaf{ExampleFrame(), *event});
    CHECK(Must(PrintLeaf(leaf.frame, leaf.event)) == bytes);
  }
}

TEST_CASE("EventBuilder: a missing field, a wrong kind and free text are refused for every field") {
  for (const internal::TypeFields& type : internal::AllTypeFields()) {
    const auto fields = FieldsOf(type);
    for (const FieldOf& field : fields) {
      CAPTURE(type.name);
      CAPTURE(field.name);
      JsonObject without = *BodyOf(fields).TryObject();
      without.erase(field.name);
      const Status missing = Build(type.type, Json(without)).status();
      CHECK(missing.ok() == !field.required);

      for (const Json& wrong : {Json("Max Mustermann, 1961"), Json("/data/heart.csv"), Json(-1),
                                Json(JsonArray{Json("patient 17")}), Json("")}) {
        Json body = BodyOf(fields);
        body.Set(field.name, wrong);
        // A list of rules or of codes takes no text with a space, nor does anything else.
        const bool fits = field.kind == "key" && wrong == Json("/data/heart.csv");
        const Status status = Build(type.type, body).status();
        CHECK(status.ok() == fits);
        CHECK(Message(status).find("Mustermann") == std::string_view::npos);
        CHECK(Message(status).find("heart.csv") == std::string_view::npos);
        if (!status.ok()) {
          CHECK(Message(status).find(field.name) != std::string_view::npos);
        }
      }
    }
  }
}

TEST_CASE("EventBuilder: an unknown field is refused, with the nearest spelling") {
  const Status status = EventBuilder(EventType::kAgentStopped)
                            .Set("instance", Json(1))
                            .Set("instanze", Json(2))
                            .Build()
                            .status();

  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(Message(status).find("did you mean `instance`") != std::string_view::npos);
  CHECK(!EventBuilder(EventType::kNone).Build().ok());
}

TEST_CASE("PrintLeaf: a leaf that is too long is an error") {
  std::vector<std::pair<std::string, Digest>> many(700, {"charite", test::ExampleDigest(0x11)});

  const auto bytes = PrintLeaf(ExampleFrame(), test::Committed(many));

  CHECK(bytes.status().code() == StatusCode::kInvalidArgument);
  CHECK(Message(bytes.status()).find("phase.committed") != std::string_view::npos);
}

TEST_CASE("ParseLeaf: another spelling, a frame that is not one, or an unknown type is refused") {
  const std::string good = Must(PrintLeaf(ExampleFrame(), test::SiteStarted()));
  REQUIRE(ParseLeaf(good).ok());
  struct Case {
    const char* name;
    const char* from;
    const char* to;
  };
  const Case cases[] = {
      {"white space", "\"seq\":3", "\"seq\": 3"},
      {"unknown type", "agent.started", "agent.begun"},
      {"another version", "\"v\":1", "\"v\":2"},
      {"time with more digits", "Z\"", "0Z\""},
      {"time of another zone", "Z\"", "+00:00\""},
      {"short boot", "\"boot\":\"0", "\"boot\":\""},
      {"boot in capitals", "\"boot\":\"0", "\"boot\":\"A"},
      {"origin with a space", "charite/log", "charite log"},
      {"negative number", "\"seq\":3", "\"seq\":-3"},
      {"extra field", "\"v\":1", "\"v\":1,\"w\":1"},
      {"escaped letter", "agent.", "\\u0061gent."},
      {"null", "\"v\":1", "\"v\":null"},
      {"text in a name", "\"site\":\"charite\"", "\"site\":\"Frau Meier\""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    std::string bad = good;
    const std::size_t at = bad.find(c.from);
    REQUIRE(at != std::string::npos);
    bad.replace(at, std::string_view(c.from).size(), c.to);
    const Status status = ParseLeaf(bad).status();
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(Message(status).find("Meier") == std::string_view::npos);
  }
  for (std::size_t length = 0; length < good.size(); ++length) {
    CHECK(!ParseLeaf(std::string_view(good).substr(0, length)).ok());
  }
}

TEST_CASE("Records: what is written is what is read") {
  const auto decided = Must(ReadEgressDecided(test::Decided(test::ExampleDigest(1))));
  CHECK(decided.cohort_bucket == 200);
  CHECK(decided.decision == test::ExampleDecision());
  CHECK(Must(ToEvent(decided)) == test::Decided(test::ExampleDigest(1)));

  const PhaseOpened opened{
      .key = test::ExamplePhase(2),
      .plan = test::ExampleDigest(1),
      .model = test::ExampleDigest(2),
      .participants = {Must(SiteId::Parse("bonn")), Must(SiteId::Parse("lyon"))},
      .floor = 2,
      .scale_bits = 32,
      .max_weight = 1000,
      .max_sites = 16,
      .deadline_seconds = 60,
      .policies = {.effective = test::ExampleDigest(3)}};
  CHECK(Must(ReadPhaseOpened(Must(ToEvent(opened)))) == opened);

  PhaseCommitted committed{
      .key = test::ExamplePhase(),
      .contributors = {{Must(SiteId::Parse("bonn")), test::ExampleDigest(4), std::nullopt},
                       {Must(SiteId::Parse("lyon")), test::ExampleDigest(5), 12}},
      .model = test::ExampleDigest(6)};
  CHECK(Must(ReadPhaseCommitted(Must(ToEvent(committed)))) == committed);

  const auto received = Must(ReadIngressReceived(test::Received(test::ExampleDigest(7))));
  CHECK(Must(ToEvent(received)) == test::Received(test::ExampleDigest(7)));
  const ControlSummary summary{.peer = "site/lyon",
                               .seconds = 3600,
                               .messages_in = 1,
                               .messages_out = 2,
                               .bytes_in = 30,
                               .bytes_out = 40};
  CHECK(Must(ReadControlSummary(Must(ToEvent(summary)))) == summary);
  CHECK(!ReadControlSummary(test::SiteStarted()).ok());
  CHECK(!ReadIngressReceived(test::SiteStarted()).ok());
  CHECK(!ReadPhaseOpened(test::SiteStarted()).ok());
}

TEST_CASE("Records: a step without what its type needs is refused") {
  EgressStep step{.key = test::ExamplePhase(),
                  .digest = test::ExampleDigest(1),
                  .bytes = 5,
                  .receipt_seq = std::nullopt,
                  .reason = {}};

  CHECK(ToEvent(EventType::kEgressIntent, step).ok());
  CHECK(!ToEvent(EventType::kEgressDone, step).ok());
  CHECK(!ToEvent(EventType::kEgressAborted, step).ok());
  CHECK(!ToEvent(EventType::kIngressPartial, step).ok());
  step.reason = "CONNECTION-LOST";
  CHECK(ToEvent(EventType::kEgressAborted, step).ok());
  CHECK(!ToEvent(EventType::kEgressIntent, step).ok());
}

TEST_CASE("RuleId: anything a log does not hold becomes a hyphen") {
  CHECK(RuleId("site", "charite-2026", "S-1") == "site/charite-2026/S-1");
  CHECK(RuleId("site", "p", "strict default") == "site/p/strict-default");
  CHECK(RuleId("site", "p", std::string(200, 'x')).size() == 120);
}

}  // namespace
}  // namespace domicile::audit

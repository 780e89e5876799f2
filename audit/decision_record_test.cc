#include "audit/decision_record.h"

#include <doctest/doctest.h>

#include "tests/support/example_log.h"

namespace domicile::audit {
namespace {

TEST_CASE("RecordOf: keeps codes and rule ids, each once, in a form that a log takes") {
  policy::Decision decision;
  const policy::Origin rule{.source = policy::PolicySource::kSite,
                            .policy = "charite-2026",
                            .rule = "strict default",
                            .file = "/etc/domicile/site.policy.toml",
                            .line = 3};
  decision.findings = {{.reason = policy::Reason::kView, .origin = rule, .what = "a", .remedy = ""},
                       {.reason = policy::Reason::kView, .origin = rule, .what = "b", .remedy = ""},
                       {.reason = policy::Reason::kClip, .origin = {}, .what = "", .remedy = ""}};
  decision.rules = {rule, rule};

  const DecisionRecord record = RecordOf(decision, {.effective = test::ExampleDigest(1)});

  CHECK(record.result == "deny");
  CHECK(record.reasons == std::vector<std::string>{std::string(Code(policy::Reason::kView)),
                                                   std::string(Code(policy::Reason::kClip))});
  CHECK(record.rules == std::vector<std::string>{"site/charite-2026/strict-default"});
  const auto event = EventBuilder(EventType::kOfferDeclined)
                         .Set("job", Json("heart-1"))
                         .Set("plan", test::ExampleDigest(2))
                         .Set("reason", Json(record.reasons[0]))
                         .Set("decision", ToJson(record))
                         .Build();
  CHECK(event.ok());
}

TEST_CASE("Events: every reason code of the policy fits into a log") {
  for (const policy::Reason reason : policy::AllReasons()) {
    CAPTURE(Code(reason));
    CHECK(EventBuilder(EventType::kGrantRefused).Set("reason", Json(Code(reason))).Build().ok());
  }
}

}  // namespace
}  // namespace domicile::audit

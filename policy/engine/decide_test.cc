#include "policy/engine/decide.h"

#include <limits>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include "policy/engine/explain.h"
#include "policy/engine/testing.h"

namespace domicile::policy {
namespace {

Policy PolicyOf(const std::string& name, PolicySource source) { return HeartPolicy(name, source); }
Facts FactsOf() { return HeartFacts(); }
Transfer Update() { return HeartUpdate(); }

Effective HeartAt(const std::string& site) {
  return Meet(PolicyOf("federation.policy.toml", PolicySource::kFederation),
              PolicyOf("aggregator.policy.toml", PolicySource::kAggregator),
              PolicyOf("site." + site + ".policy.toml", PolicySource::kSite), FactsOf());
}

}  // namespace

static_assert(!std::is_default_constructible_v<Permit>);
static_assert(!std::is_constructible_v<Permit, Transfer>);
static_assert(!std::is_copy_constructible_v<Permit>);
static_assert(std::is_nothrow_move_constructible_v<Permit>);
static_assert(Decision{}.result == Result::kDeny);

TEST_CASE("Decide: an allowed transfer carries a permit for itself and its obligations") {
  const Decision decision = Decide(HeartAt("budapest"), Update());

  REQUIRE(decision.result == Result::kAllow);
  CHECK(decision.Why() == Reason::kPermitted);
  CHECK(decision.findings[0].origin.rule == "rule S-1");
  REQUIRE(decision.permit.has_value());
  CHECK(decision.permit->Scope().bytes == 400);
  CHECK(decision.permit->Scope().to.id == "main");
  CHECK(decision.obligations.clip_l2 == 4);
  CHECK(decision.obligations.min_contributors == 3);
  CHECK(decision.obligations.min_cohort == 10);
  CHECK(decision.obligations.weights == WeightRule::kExact);
  CHECK(decision.obligations.round_to == 1);
  CHECK(decision.obligations.scale_bits == 32);
}

TEST_CASE("Decide: obligations are the stricter of plan and policy") {
  Policy site = PolicyOf("site.budapest.policy.toml", PolicySource::kSite);
  site.weights = WeightRule::kRounded;
  site.rules[0].clip_l2 = 2.5;
  const Effective effective =
      Meet(PolicyOf("federation.policy.toml", PolicySource::kFederation),
           PolicyOf("aggregator.policy.toml", PolicySource::kAggregator), site, FactsOf());
  Transfer transfer = Update();

  const Decision rounded = Decide(effective, transfer);
  transfer.plan.weights = WeightRule::kEqual;
  transfer.plan.clip_l2 = 0.5;
  const Decision equal = Decide(effective, transfer);

  CHECK(rounded.obligations.weights == WeightRule::kRounded);
  CHECK(rounded.obligations.round_to == 5);
  CHECK(rounded.obligations.clip_l2 == 2.5);
  CHECK(equal.obligations.weights == WeightRule::kEqual);
  CHECK(equal.obligations.clip_l2 == 0.5);
}

TEST_CASE("Decide: whatever is unset denies") {
  struct Case {
    const char* name;
    void (*unset)(Transfer&);
  };
  const Case cases[] = {
      {"point", [](Transfer& t) { t.point = DecisionPoint::kNone; }},
      {"giver", [](Transfer& t) { t.from = {}; }},
      {"receiver", [](Transfer& t) { t.to = {}; }},
      {"place of the receiver", [](Transfer& t) { t.to.jurisdiction.clear(); }},
      {"place of the giver", [](Transfer& t) { t.from.jurisdiction.clear(); }},
      {"control", [](Transfer& t) { t.to.control.clear(); }},
      {"dataset", [](Transfer& t) { t.dataset = {}; }},
      {"kinds", [](Transfer& t) { t.kinds.clear(); }},
      {"a kind", [](Transfer& t) { t.kinds.push_back(UpdateKind::kNone); }},
      {"view", [](Transfer& t) { t.view = View::kNone; }},
      {"purpose", [](Transfer& t) { t.purpose = Purpose::kNone; }},
      {"plan", [](Transfer& t) { t.plan = {}; }},
      {"records", [](Transfer& t) { t.records_behind.reset(); }},
      {"sandbox", [](Transfer& t) { t.sandbox_network.reset(); }},
      {"time", [](Transfer& t) { t.now = {}; }},
      {"ledger", [](Transfer& t) { t.released_per_record = -1; }},
      {"everything", [](Transfer& t) { t = {}; }},
  };
  const Effective effective = HeartAt("budapest");
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Transfer transfer = Update();
    c.unset(transfer);
    const Decision decision = Decide(effective, transfer);
    CHECK(decision.result == Result::kDeny);
    CHECK(!decision.permit.has_value());
    CHECK(!decision.findings.empty());
  }
}

TEST_CASE("Decide: values outside the enumerations deny") {
  const Effective effective = HeartAt("budapest");
  Transfer transfer = Update();
  transfer.kinds = {static_cast<UpdateKind>(200)};
  CHECK(Decide(effective, transfer).result == Result::kDeny);
  transfer = Update();
  transfer.view = static_cast<View>(200);
  CHECK(Decide(effective, transfer).result == Result::kDeny);
  transfer = Update();
  transfer.point = static_cast<DecisionPoint>(200);
  CHECK(Decide(effective, transfer).result == Result::kDeny);
  transfer = Update();
  transfer.purpose = static_cast<Purpose>(200);
  CHECK(Decide(effective, transfer).result == Result::kDeny);
}

TEST_CASE("Decide: numbers that would wrap around or are not finite deny") {
  const Effective effective = HeartAt("budapest");
  Transfer transfer = Update();
  transfer.point = DecisionPoint::kIngress;
  CHECK(Decide(effective, transfer).result == Result::kAllow);
  transfer.numbers = ~std::uint64_t{0};
  CHECK(Decide(effective, transfer).Why() == Reason::kLimitReleasedNumbers);
  transfer = Update();
  transfer.plan.clip_l2 = std::numeric_limits<double>::quiet_NaN();
  CHECK(Decide(effective, transfer).Why() == Reason::kClip);
  transfer = Update();
  transfer.released_per_record = std::numeric_limits<double>::infinity();
  CHECK(Decide(effective, transfer).Why() == Reason::kRuleInvalid);
}

TEST_CASE("Decide: a text in the request that is no code or name is not repeated") {
  Transfer transfer = Update();
  transfer.to.jurisdiction = "Anna Kovacs, 1951";
  transfer.to.id = "ward 3, bed 2";
  transfer.to.control = {"HIV positive"};

  const Decision decision = Decide(HeartAt("budapest"), transfer);
  const std::string shown =
      ExplainText(decision, transfer) + PrintJson(ExplainJson(decision, transfer));

  CHECK(decision.result == Result::kDeny);
  CHECK(shown.find("Kovacs") == std::string::npos);
  CHECK(shown.find("bed") == std::string::npos);
  CHECK(shown.find("HIV") == std::string::npos);
}

TEST_CASE("Effective: policies that cannot both hold are named with both lines") {
  Policy federation = PolicyOf("federation.policy.toml", PolicySource::kFederation);
  federation.rules[0].aggregator_locations = {*Area::Parse("DE")};
  const Effective effective =
      Meet(federation, PolicyOf("aggregator.policy.toml", PolicySource::kAggregator),
           PolicyOf("site.budapest.policy.toml", PolicySource::kSite), FactsOf());

  const Status status = effective.CheckSatisfiable();

  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(Message(status).find("federation.policy.toml:17") != std::string_view::npos);
  CHECK(Message(status).find("policy.toml:", Message(status).find(" and ")) !=
        std::string_view::npos);
  CHECK(HeartAt("budapest").CheckSatisfiable().ok());
  CHECK(Decide(effective, Update()).Why() == Reason::kPolicyUnsatisfiable);
}

TEST_CASE("Effective: its text is canonical, names versions, and changes with any source") {
  const std::string text = HeartAt("budapest").Text();

  CHECK(ParseCanonicalJson(text).ok());
  CHECK(text.find("UCI Heart Disease") == std::string::npos);
  CHECK(text.find("policy.toml") == std::string::npos);
  CHECK(HeartAt("zurich-basel").Text() != text);
  Policy site = PolicyOf("site.budapest.policy.toml", PolicySource::kSite);
  site.identity.version = 2;
  CHECK(Meet(PolicyOf("federation.policy.toml", PolicySource::kFederation),
             PolicyOf("aggregator.policy.toml", PolicySource::kAggregator), site, FactsOf())
            .Text() != text);
  CHECK(HeartAt("budapest").MinContributors(*DatasetAlias::Parse("heart")) == 3);
  CHECK(HeartAt("budapest").MinContributors(*DatasetAlias::Parse("lungs")) == 0);
}

TEST_CASE("Explain: a denial names code, rule with line, meaning and what would flip it") {
  Transfer transfer = Update();
  transfer.to.jurisdiction = "US-VA";

  const Decision decision = Decide(HeartAt("budapest"), transfer);
  const std::string text = ExplainText(decision, transfer);

  CAPTURE(text);
  CHECK(
      text.starts_with("deny\n  egress: delta.plain, metrics.aggregate of dataset `heart`, from "
                       "site `budapest` at `HU`, to aggregator `main` at `US-VA`\n"));
  CHECK(text.find("LOCATION: aggregator `main` at `US-VA` is not in allow.aggregator_locations "
                  "[`IE`]\n    rule: site policy, rule S-1 (site.budapest.policy.toml:") !=
        std::string::npos);
  CHECK(text.find("would flip: add `US-VA` to allow.aggregator_locations in site policy, rule "
                  "S-1") != std::string::npos);
  CHECK(text.find("EDPB-UC6") != std::string::npos);
  CHECK(text.find("use secure aggregation") != std::string::npos);
  CHECK(text.find("relocate the aggregator") != std::string::npos);
}

TEST_CASE("Explain: the JSON holds the same, and is canonical when printed") {
  const Transfer transfer = Update();
  const Decision decision = Decide(HeartAt("budapest"), transfer);

  const Json json = ExplainJson(decision, transfer);

  CHECK(ParseCanonicalJson(PrintJson(json)).ok());
  CHECK(*json.Find("result")->TryString() == "allow");
  CHECK(*json.Find("request")->Find("to")->TryString() == "IE");
  REQUIRE(json.Find("findings")->TryArray()->size() == 1);
  const Json& finding = json.Find("findings")->TryArray()->front();
  CHECK(*finding.Find("code")->TryString() == "PERMITTED");
  CHECK(*finding.Find("rule")->Find("line")->TryInt() > 0);
  CHECK(*json.Find("obligations")->Find("clip_l2")->TryString() == "4");
  CHECK(!json.Find("facts")->TryArray()->empty());
}

}  // namespace domicile::policy

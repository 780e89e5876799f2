// Every reason code that the engine can give, each from one change to a request that is allowed.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "policy/engine/explain.h"
#include "policy/engine/testing.h"

namespace domicile::policy {
namespace {

using std::chrono::hours;

// An allowed request and all that it is decided by.
struct World {
  Policy federation = HeartPolicy("federation.policy.toml", PolicySource::kFederation);
  Policy aggregator = HeartPolicy("aggregator.policy.toml", PolicySource::kAggregator);
  Policy site = HeartPolicy("site.budapest.policy.toml", PolicySource::kSite);
  Facts facts = HeartFacts();
  std::optional<GrantFacts> grant;
  Transfer transfer = HeartUpdate();

  Rule& SiteRule() { return site.rules[0]; }
  PolicyDataset& Dataset() { return site.datasets[0]; }
  Decision Decide() const {
    const Effective effective = Meet(federation, aggregator, site, facts);
    return policy::Decide(grant ? WithGrant(effective, *grant) : effective, transfer);
  }
  // The aggregator in a country that no fact calls adequate, with clauses for it.
  void MoveAggregatorTo(const char* place) {
    const Area area = *Area::Parse(place);
    transfer.to.jurisdiction = place;
    for (Policy* policy : {&federation, &aggregator, &site}) {
      for (Rule& rule : policy->rules) {
        if (rule.aggregator_locations) {
          rule.aggregator_locations->insert(area);
        }
      }
    }
    TransferGround ground;
    ground.to = area;
    ground.mechanism = Mechanism::kScc;
    ground.valid_until = transfer.now + hours(24 * 100);
    SiteRule().transfers.push_back(ground);
  }
  void UseSums() {
    transfer.view = View::kAggregateOnly;
    transfer.plan.secagg_threshold = 0.75;
  }
  void GiveDp() {
    transfer.plan.dp_mode = DpMode::kEnforced;
    transfer.plan.epsilon = 1.5;
    transfer.plan.delta = 1e-6;
    transfer.plan.dp_unit = DpUnit::kPerson;
    transfer.plan.sampling = Sampling::kNoneAssumed;
    transfer.epsilon_spent = 1;
  }
  void LookAtMetrics() {
    transfer.point = DecisionPoint::kView;
    transfer.via = transfer.to;
    transfer.to = {PartyRole::kOperator,       "alice", "federation-office", "IE", {"IE"},
                   LocationEvidence::kDeclared};
    transfer.kinds = {UpdateKind::kMetricsAggregate};
    transfer.contributors = 3;
  }
  Fact NewFact(FactKind kind, Regime regime, const char* to) const {
    Fact fact;
    fact.id = "new";
    fact.kind = kind;
    fact.regime = regime;
    fact.from = {*Area::Parse("HU")};
    fact.to = {*Area::Parse(to)};
    fact.from_date = transfer.now - hours(24);
    return fact;
  }
};

struct Row {
  Reason reason;
  void (*change)(World&);
};

const Row kRows[] = {
    {Reason::kPermitted, [](World&) {}},
    {Reason::kNoRuleMatched, [](World& w) { w.site.rules.clear(); }},
    {Reason::kForbidden, [](World& w) { w.transfer.to.control.push_back("RU"); }},
    {Reason::kRuleInvalid, [](World& w) { w.transfer.view = View::kNone; }},
    {Reason::kPolicyExpired, [](World& w) { w.transfer.now = w.site.identity.expires; }},
    {Reason::kPolicyNotYetValid,
     [](World& w) { w.transfer.now = w.site.identity.not_before - hours(1); }},
    {Reason::kPolicyUnsatisfiable,
     [](World& w) { w.federation.rules[0].aggregator_locations = {*Area::Parse("DE")}; }},
    {Reason::kLocation, [](World& w) { w.transfer.to.jurisdiction = "FR"; }},
    {Reason::kControl, [](World& w) { w.transfer.to.control = {"FR"}; }},
    {Reason::kRecipient,
     [](World& w) {
       w.LookAtMetrics();
       w.SiteRule().recipients = {{"sites"}};
     }},
    {Reason::kPurpose, [](World& w) { w.transfer.purpose = Purpose::kHealthcareDelivery; }},
    {Reason::kUpdateKind, [](World& w) { w.transfer.kinds = {UpdateKind::kDeltaMasked}; }},
    {Reason::kView, [](World& w) { w.SiteRule().aggregator_view = View::kAggregateOnly; }},
    {Reason::kEdpbUseCase6, [](World& w) { w.MoveAggregatorTo("US"); }},
    {Reason::kEdpbUseCase7,
     [](World& w) {
       w.MoveAggregatorTo("US");
       w.transfer.to.jurisdiction = "IE";
       w.LookAtMetrics();
       w.transfer.to.jurisdiction = "US";
     }},
    {Reason::kNoTransferMechanism,
     [](World& w) {
       w.MoveAggregatorTo("US");
       w.UseSums();
       w.SiteRule().transfers.clear();
     }},
    {Reason::kFactMissing,
     [](World& w) {
       w.site.rules[0].aggregator_locations = {*Area::Parse("EU")};
       std::erase_if(w.facts.facts, [](const Fact& fact) { return fact.bloc == "EU"; });
     }},
    {Reason::kFactExpired, [](World& w) { w.facts.expires = w.transfer.now; }},
    {Reason::kDocumentMissing, [](World& w) { w.Dataset().dpia.reset(); }},
    {Reason::kDocumentExpired, [](World& w) { w.Dataset().dpia->valid_until = w.transfer.now; }},
    {Reason::kMinContributors, [](World& w) { w.transfer.plan.max_sites = 2; }},
    {Reason::kMinCohort,
     [](World& w) {
       w.SiteRule().min_batch = 1;
       w.SiteRule().params_per_record = 10;
       w.transfer.records_behind = 9;
     }},
    {Reason::kClip, [](World& w) { w.transfer.plan.clip_l2 = 0; }},
    {Reason::kLocalSteps, [](World& w) { w.transfer.plan.local_steps = 1; }},
    {Reason::kBatch, [](World& w) { w.transfer.plan.batch = 8; }},
    {Reason::kLimitRounds, [](World& w) { w.transfer.plan.rounds = 41; }},
    {Reason::kLimitRuns, [](World& w) { w.transfer.runs_today = 3; }},
    {Reason::kLimitBytes, [](World& w) { w.transfer.bytes = 1U << 20U; }},
    {Reason::kLimitReleasedNumbers, [](World& w) { w.transfer.released_per_record = 1000; }},
    {Reason::kPrivacyRequired, [](World& w) { w.SiteRule().dp_mode = DpMode::kEnforced; }},
    {Reason::kModelNotAllowed, [](World& w) { w.SiteRule().models = {{std::string(64, 'a')}}; }},
    {Reason::kTrainerNotAllowed,
     [](World& w) { w.SiteRule().trainers = {{std::string(64, 'a')}}; }},
    {Reason::kDatasetUnknown, [](World& w) { w.transfer.dataset = *DatasetAlias::Parse("lungs"); }},
    {Reason::kApprovalMissing, [](World& w) { w.transfer.approvals.clear(); }},
    {Reason::kSandboxMissing, [](World& w) { w.transfer.sandbox_profile.reset(); }},
    {Reason::kOutputForbidden, [](World& w) { w.transfer.outputs = {{Output::kEmbeddings}}; }},
    {Reason::kSecureAggregationRequired, [](World& w) { w.SiteRule().require_secagg = true; }},
    {Reason::kLimitMetrics, [](World& w) { w.transfer.metrics = 5; }},
    {Reason::kLegalFactsDigest,
     [](World& w) { w.federation.identity.legal_facts = std::string(64, 'a'); }},
    {Reason::kLocationEvidence,
     [](World& w) { w.transfer.to.evidence = LocationEvidence::kUnset; }},
    {Reason::kDerogation,
     [](World& w) {
       w.MoveAggregatorTo("US");
       w.UseSums();
       w.SiteRule().transfers.back().mechanism = Mechanism::kDerogation491a;
       w.SiteRule().transfers = {w.SiteRule().transfers.back()};
     }},
    {Reason::kLimitEpsilon,
     [](World& w) {
       w.GiveDp();
       w.transfer.epsilon_spent = 7;
     }},
    {Reason::kDpUnit,
     [](World& w) {
       w.GiveDp();
       w.transfer.plan.dp_unit = DpUnit::kRecord;
     }},
    {Reason::kSampling,
     [](World& w) {
       w.GiveDp();
       w.SiteRule().sampling = Sampling::kPoissonByAgent;
     }},
    {Reason::kRetention, [](World& w) { w.transfer.retention.update = hours(24 * 31); }},
    {Reason::kWitnesses, [](World& w) { w.site.audit.witnesses_min = 1; }},
    {Reason::kTransit,
     [](World& w) {
       w.transfer.transit = {
           {PartyRole::kNone, "relay", "relay", "FR", {"FR"}, LocationEvidence::kCertificate}};
     }},
    {Reason::kPurposeProhibited, [](World& w) { w.transfer.purpose = Purpose::kMarketing; }},
    {Reason::kNegativeList,
     [](World& w) {
       w.facts.facts.push_back(w.NewFact(FactKind::kNegativeList, Regime::kEuGdpr, "IE"));
     }},
    {Reason::kExportSubjects, [](World& w) { w.SiteRule().export_subjects_per_year = 1000; }},
    {Reason::kSubjectsThreshold,
     [](World& w) {
       Fact fact = w.NewFact(FactKind::kThreshold, Regime::kEuGdpr, "IE");
       fact.at_least = 100;
       fact.mechanisms = {Mechanism::kCacAssessment};
       w.facts.facts.push_back(fact);
     }},
    {Reason::kGrantExpired,
     [](World& w) {
       w.grant = {.id = "g",
                  .dataset = w.transfer.dataset,
                  .plan = "",
                  .trainer = "",
                  .not_after = w.transfer.now};
     }},
    {Reason::kGrantPlan,
     [](World& w) {
       w.transfer.plan_digest = Digest{};
       w.transfer.trainer_digest = Digest{};
       w.grant = {.id = "g",
                  .dataset = w.transfer.dataset,
                  .plan = std::string(64, 'a'),
                  .trainer = std::string(64, '0'),
                  .not_after = w.transfer.now + hours(1)};
     }},
    {Reason::kGrantTrainer,
     [](World& w) {
       w.transfer.plan_digest = Digest{};
       w.transfer.trainer_digest = Digest{};
       w.grant = {.id = "g",
                  .dataset = w.transfer.dataset,
                  .plan = std::string(64, '0'),
                  .trainer = std::string(64, 'a'),
                  .not_after = w.transfer.now + hours(1)};
     }},
    {Reason::kApprovalExpired,
     [](World& w) { w.transfer.approvals[0].signed_at = w.transfer.now - hours(24 * 91); }},
    {Reason::kClock, [](World& w) { w.transfer.clock_skew = std::chrono::milliseconds(30'001); }},
    {Reason::kUnwitnessed,
     [](World& w) {
       w.site.audit.witnesses_min = 1;
       w.transfer.witnesses = 1;
       w.transfer.unwitnessed_age = hours(2);
     }},
    {Reason::kJurisdictionMismatch, [](World& w) { w.transfer.from.jurisdiction = "AT"; }},
};

// Codes of the first part of the list that somebody else gives: the gates, the loader.
const std::set<Reason> kOfOthers = {Reason::kNone, Reason::kPolicyDigestMismatch,
                                    Reason::kPolicySignature, Reason::kPolicyRollback,
                                    Reason::kPolicyCooldown};
// The grants' codes begin here.
constexpr auto kFirstOfGrants = static_cast<std::uint16_t>(Reason::kGrantSignature);

}  // namespace

TEST_CASE("Decide: each code is given, first of all, for what it is for") {
  for (const Row& row : kRows) {
    CAPTURE(Code(row.reason));
    World world;
    row.change(world);
    const Decision decision = world.Decide();
    CAPTURE(ExplainText(decision, world.transfer));
    CHECK(Code(decision.Why()) == Code(row.reason));
    CHECK((decision.result == Result::kAllow) == (row.reason == Reason::kPermitted));
    const bool is_hold =
        row.reason == Reason::kApprovalMissing || row.reason == Reason::kApprovalExpired;
    CHECK((decision.result == Result::kHold) == is_hold);
    CHECK((decision.result == Result::kAllow || decision.findings[0].hand != Hand::kNobody));
  }
}

TEST_CASE("Decide: no code of policies is missing from the table") {
  std::set<Reason> given;
  for (const Row& row : kRows) {
    given.insert(row.reason);
  }
  for (const Reason reason : AllReasons()) {
    const bool is_of_policies = static_cast<std::uint16_t>(reason) < kFirstOfGrants;
    CAPTURE(Code(reason));
    CHECK((!is_of_policies || given.contains(reason) != kOfOthers.contains(reason)));
  }
}

TEST_CASE("Answer: the result of Decide, for every row and every decision point") {
  for (const Row& row : kRows) {
    CAPTURE(Code(row.reason));
    World world;
    row.change(world);
    const Effective effective = Meet(world.federation, world.aggregator, world.site, world.facts);
    CHECK(Answer(effective, world.transfer) == Decide(effective, world.transfer).result);
  }
}

TEST_CASE("Simulate: says what Decide says, carries no permit and shows what it is") {
  const World world;
  const Effective effective = Meet(world.federation, world.aggregator, world.site, world.facts);

  const Decision real = Decide(effective, world.transfer);
  const Decision dry = Simulate(effective, world.transfer);

  CHECK(real.permit.has_value());
  CHECK(dry.result == Result::kAllow);
  CHECK_FALSE(dry.permit.has_value());
  CHECK(ExplainText(dry, world.transfer).starts_with("SIMULATED: "));
  CHECK(ExplainText(real, world.transfer).starts_with("allow\n"));
  CHECK(*ExplainJson(dry, world.transfer).Find("event")->TryString() == "decision.simulated");
  CHECK(*ExplainJson(real, world.transfer).Find("event")->TryString() == "decision");
}

TEST_CASE("Explain: the changes that would flip a denial say whose they are") {
  World world;
  world.transfer.plan.rounds = 500;  // the site allows 40, the aggregator 200
  const Decision decision = world.Decide();
  const std::string text = ExplainText(decision, world.transfer);

  CAPTURE(text);
  CHECK(text.find("nearest changes that together would flip it, 1 of 2 in the site's own hand") !=
        std::string::npos);
  CHECK(text.find("  aggregator: ask for at most 200") != std::string::npos);
  CHECK(text.find("  site: ask for at most 40") != std::string::npos);
  CHECK(text.find("free-flow-eea: ") != std::string::npos);  // a fact, with its source
}

TEST_CASE("Decide: every border is named with its ground and its EDPB use case") {
  World world;
  world.MoveAggregatorTo("US");
  world.UseSums();
  const Decision decision = world.Decide();

  CAPTURE(ExplainText(decision, world.transfer));
  CHECK(decision.result == Result::kAllow);
  REQUIRE(decision.crossings.size() == 1);
  CHECK(decision.crossings[0].edpb_use_case == 5);
  CHECK(decision.crossings[0].ground == "scc");
  CHECK(decision.crossings[0].law == "eu-gdpr");
}

TEST_CASE("Decide: at enrolment one dataset that may speak is enough") {
  World world;
  world.transfer.point = DecisionPoint::kEnrolment;
  CHECK(world.Decide().Why() == Reason::kRuleInvalid);  // no dataset is named there
  world.transfer.dataset = {};
  CHECK(world.Decide().result == Result::kAllow);
  world.transfer.to.jurisdiction = "US";
  CHECK(world.Decide().Why() == Reason::kLocation);
  world.transfer.to.jurisdiction = "IE";
  world.transfer.clock_skew.reset();
  CHECK(world.Decide().Why() == Reason::kClock);
  world.transfer.clock_skew = std::chrono::milliseconds(0);
  world.transfer.from.evidence = LocationEvidence::kDeclared;
  CHECK(world.Decide().Why() == Reason::kLocationEvidence);
}

TEST_CASE("Decide: a sum goes to a parent only from enough contributors, and to an allowed place") {
  World world;
  world.transfer.point = DecisionPoint::kParentSum;
  world.transfer.via = world.transfer.to;
  world.transfer.view = View::kAggregateOnly;
  CHECK(world.Decide().Why() == Reason::kMinContributors);  // not known how many
  world.transfer.contributors = 3;
  CHECK(world.Decide().result == Result::kAllow);
  world.transfer.to.jurisdiction = "FR";
  CHECK(world.Decide().Why() == Reason::kLocation);
}

TEST_CASE("Decide: only the contributors that a rule names count, once an organisation") {
  World world;
  world.LookAtMetrics();
  world.transfer.view = View::kAggregateOnly;
  CHECK(world.Decide().result == Result::kAllow);
  world.SiteRule().contributors = {{"a", "b", "c"}};
  CHECK(world.Decide().Why() == Reason::kMinContributors);
  world.transfer.contributor_sites = {{"a", "x"}, {"b", "y"}, {"c", "y"}, {"d", "z"}};
  CHECK(world.Decide().Why() == Reason::kMinContributors);
  world.transfer.contributor_sites[2].organisation = "z";
  CHECK(world.Decide().result == Result::kAllow);
}

TEST_CASE("Decide: approvals of one role add up, each from another organisation if asked") {
  World world;
  world.site.approvals->required = {{ApprovalRole::kOperator, 2, true}};
  CHECK(world.Decide().result == Result::kHold);
  world.transfer.approvals.push_back(world.transfer.approvals[0]);
  CHECK(world.Decide().result == Result::kHold);
  world.transfer.approvals[1].organisation = "another";
  CHECK(world.Decide().result == Result::kAllow);
  world.transfer.approvals[1].signed_at.reset();
  CHECK(world.Decide().Why() == Reason::kApprovalExpired);
  world.transfer.approvals[1].signed_at = world.transfer.now + hours(1);
  CHECK(world.Decide().Why() == Reason::kApprovalExpired);
}

}  // namespace domicile::policy

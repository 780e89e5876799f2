#include "site_agent/egress/gate.h"

#include <functional>
#include <limits>

#include <doctest/doctest.h>

#include "site_agent/egress/testing.h"
#include "site_agent/egress/testing_gate.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;
using policy::Reason;
using policy::Result;

constexpr UpdateFacts kTrained = {
    .phase = PhaseKind::kTrain, .bytes = 512, .numbers = 17, .records = 196};

TEST_CASE("Gate: the demo's plan is allowed at every point, with the policy's obligations") {
  const ForcedPolicies policies = HeartPolicies();
  const contracts::Plan plan = HeartPlan();

  const Decided offer = DecideOffer(policies, plan, HeartBorder(), kPolicyNow);
  const Decided open = DecideDataOpen(policies, plan, HeartBorder(), kPolicyNow);
  const Decided egress = DecideEgress(policies, plan, HeartBorder(), kTrained, kPolicyNow);

  CAPTURE(policy::Code(offer.decision.Why()));
  CHECK(offer.Allowed());
  CHECK(open.Allowed());
  CHECK(egress.Allowed());
  CHECK(egress.decision.permit.has_value());
  CHECK(open.decision.obligations.clip_l2 == 4.0);
  CHECK(open.decision.obligations.min_cohort == 10);
  CHECK(egress.record.result == "allow");
  CHECK(egress.record.policies.effective == policies.digests.effective);
  CHECK_FALSE(egress.record.rules.empty());
}

TEST_CASE("Gate: near misses are not allowed, at the offer and when data are opened") {
  struct Case {
    const char* name;
    std::function<void(contracts::Plan&, JobBorder&)> change;
    Reason want;
  };
  const Case cases[] = {
      {"another purpose", [](auto& plan, auto&) { plan.purpose = "healthcare_delivery"; },
       Reason::kPurpose},
      {"fewer local steps", [](auto& plan, auto&) { plan.training.local_steps = 9; },
       Reason::kLocalSteps},
      {"small batches", [](auto& plan, auto&) { plan.training.batch = 63; }, Reason::kBatch},
      {"one round more", [](auto& plan, auto&) { plan.rounds.count = 41; }, Reason::kLimitRounds},
      {"a third run today", [](auto&, auto& border) { border.runs_today = 3; }, Reason::kLimitRuns},
      {"an unknown dataset",
       [](auto& plan, auto&) { plan.dataset = Must(DatasetAlias::Parse("hiv")); },
       Reason::kDatasetUnknown},
      {"an aggregator elsewhere",
       [](auto&, auto& border) { border.aggregator.jurisdiction = "US"; }, Reason::kLocation},
      {"an aggregator under foreign control",
       [](auto&, auto& border) {
         border.aggregator.control_jurisdictions = {"IE", "US"};
       },
       Reason::kControl},
  };
  const ForcedPolicies policies = HeartPolicies();
  for (const Case& c : cases) {
    CAPTURE(c.name);
    contracts::Plan plan = HeartPlan();
    JobBorder border = HeartBorder();
    c.change(plan, border);
    for (const Decided& decided : {DecideOffer(policies, plan, border, kPolicyNow),
                                   DecideDataOpen(policies, plan, border, kPolicyNow)}) {
      CHECK(decided.decision.result == Result::kDeny);
      CHECK(decided.decision.Why() == c.want);
      CHECK(decided.record.result == "deny");
      CHECK_FALSE(decided.decision.permit.has_value());
    }
  }
}

TEST_CASE("Gate: without an approval the offer is held and no data are opened") {
  JobBorder border = HeartBorder();
  border.approvals.clear();

  CHECK(DecideOffer(HeartPolicies(), HeartPlan(), border, kPolicyNow).decision.result ==
        Result::kHold);
  CHECK_FALSE(DecideDataOpen(HeartPolicies(), HeartPlan(), border, kPolicyNow).Allowed());
  CHECK_FALSE(DecideEgress(HeartPolicies(), HeartPlan(), border, kTrained, kPolicyNow).Allowed());
}

TEST_CASE("Gate: without all of the trainer's walls no data are opened") {
  JobBorder border = HeartBorder();
  border.sandbox = policy::SandboxNetwork::kUnset;

  const Decided decided = DecideDataOpen(HeartPolicies(), HeartPlan(), border, kPolicyNow);

  CHECK_FALSE(decided.Allowed());
  CHECK(decided.decision.Why() == Reason::kSandboxMissing);
}

TEST_CASE("Gate: a site works only with an aggregator that its policies let it speak to") {
  const ForcedPolicies policies = HeartPolicies();
  const JobBorder border = HeartBorder();
  const auto decide = [&](const contracts::RosterEntry& aggregator,
                          std::optional<std::chrono::milliseconds> skew) {
    return DecideEnrolment(policies, border.site, aggregator, skew, kPolicyNow).decision.Why();
  };

  CHECK(decide(border.aggregator, std::chrono::milliseconds(-20)) == Reason::kPermitted);
  CHECK(decide(border.aggregator, std::nullopt) == Reason::kClock);
  CHECK(decide(border.aggregator, std::chrono::seconds(31)) == Reason::kClock);
  contracts::RosterEntry elsewhere = border.aggregator;
  elsewhere.jurisdiction = "US";
  CHECK(decide(elsewhere, std::chrono::milliseconds(0)) == Reason::kLocation);
  ForcedPolicies silent = policies;
  silent.promise = {};
  CHECK(DecideEnrolment(silent, border.site, border.aggregator, std::chrono::milliseconds(0),
                        kPolicyNow)
            .decision.Why() == Reason::kRetention);
}

TEST_CASE("Gate: a grant narrows what the policies allow, to its plan, trainer and time") {
  const ForcedPolicies policies = HeartPolicies();
  const contracts::Plan plan = HeartPlan();
  const JobBorder border = HeartBorder();
  const policy::GrantFacts grant{.id = "grant",
                                 .dataset = plan.dataset,
                                 .plan = PrintHex(contracts::PlanDigest(plan)),
                                 .trainer = PrintHex(*border.trainer),
                                 .not_after = kPolicyNow + std::chrono::hours(1)};
  const auto decide = [&](const std::function<void(policy::GrantFacts&)>& change) {
    JobBorder granted = border;
    granted.grant = grant;
    change(*granted.grant);
    return DecideEgress(policies, plan, granted, kTrained, kPolicyNow).decision.Why();
  };

  CHECK(decide([](auto&) {}) == Reason::kPermitted);
  CHECK(decide([](auto& g) { g.plan = std::string(64, 'a'); }) == Reason::kGrantPlan);
  CHECK(decide([](auto& g) { g.trainer = std::string(64, 'a'); }) == Reason::kGrantTrainer);
  CHECK(decide([](auto& g) { g.not_after = kPolicyNow; }) == Reason::kGrantExpired);
  CHECK(decide([](auto& g) { g.dataset = Must(DatasetAlias::Parse("hiv")); }) ==
        Reason::kDatasetUnknown);
}

TEST_CASE("Gate: an epsilon counts in millionths, rounded up, and never as nothing") {
  CHECK(MicroEpsilon(0) == 0);
  CHECK(MicroEpsilon(1) == 1'000'000);
  CHECK(MicroEpsilon(1e-12) == 1);
  CHECK(MicroEpsilon(0.5000001) == 500'001);
  for (const double wrong : {-1.0, 1e300, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(MicroEpsilon(wrong) == 9'000'000'000'000'000);
  }
}

TEST_CASE("Gate: a dataset that is spent is denied at the offer, and numbers under the limit not") {
  const ForcedPolicies policies = HeartPolicies();
  JobBorder border = HeartBorder();
  const auto decide = [&](double released) {
    border.released_per_record = released;
    return DecideOffer(policies, HeartPlan(), border, kPolicyNow).decision.Why();
  };

  CHECK(decide(49.9) == Reason::kPermitted);
  CHECK(decide(50.1) == Reason::kLimitReleasedNumbers);
  CHECK(decide(std::numeric_limits<double>::max()) == Reason::kLimitReleasedNumbers);
  border.released_per_record = std::numeric_limits<double>::max();
  CHECK(DecideEgress(policies, HeartPlan(), border, kTrained, kPolicyNow).decision.Why() ==
        Reason::kLimitReleasedNumbers);
}

TEST_CASE("Gate: the real bytes are decided on") {
  struct Case {
    const char* name;
    std::function<void(UpdateFacts&, JobBorder&)> change;
    Reason want;
  };
  const Case cases[] = {
      {"records for the smallest batch", [](auto& update, auto&) { update.records = 64; },
       Reason::kPermitted},
      {"one record fewer than that", [](auto& update, auto&) { update.records = 63; },
       Reason::kBatch},
      {"fewer records than the cohort's floor", [](auto& update, auto&) { update.records = 9; },
       Reason::kMinCohort},
      {"as many bytes as allowed", [](auto& update, auto&) { update.bytes = 65'536; },
       Reason::kPermitted},
      {"a byte more", [](auto& update, auto&) { update.bytes = 65'537; }, Reason::kLimitBytes},
      {"nearly all of the ledger", [](auto&, auto& border) { border.released_per_record = 49.9; },
       Reason::kPermitted},
      {"more than the ledger allows",
       [](auto&, auto& border) { border.released_per_record = 49.95; },
       Reason::kLimitReleasedNumbers},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    UpdateFacts update = kTrained;
    JobBorder border = HeartBorder();
    c.change(update, border);
    const Decided decided = DecideEgress(HeartPolicies(), HeartPlan(), border, update, kPolicyNow);
    CHECK(decided.decision.Why() == c.want);
    CHECK(decided.decision.permit.has_value() == (c.want == Reason::kPermitted));
  }
}

TEST_CASE(
    "Gate: a plan that clips less and asks for fewer sites is bound by the policy all the same") {
  contracts::Plan plan = HeartPlan();
  plan.update.clip_l2 = 100;
  plan.rounds.quorum = 1;

  const Decided decided = DecideDataOpen(HeartPolicies(), plan, HeartBorder(), kPolicyNow);

  CHECK(decided.Allowed());
  CHECK(decided.decision.obligations.clip_l2 == 4.0);
  CHECK(decided.decision.obligations.min_contributors == 3);
}

TEST_CASE("Gate: policies run out") {
  const WallTime later = Must(ParseTime("2027-11-01T00:00:00Z"));
  CHECK(DecideEgress(HeartPolicies(), HeartPlan(), HeartBorder(), kTrained, later).decision.Why() ==
        Reason::kPolicyExpired);
}

TEST_CASE("MeetOnConnect: another copy of what both must hold is refused by its name") {
  const OwnPolicies own = Must(ReadHeart("budapest", "HU"));
  const std::string federation = HeartText("federation.policy.toml");
  const std::string aggregator = HeartText("aggregator.policy.toml");
  const std::string facts = HeartText("legal-facts.toml");

  const Status other_policy = MeetOnConnect(own, federation + "\n", aggregator, facts).status();
  CHECK(other_policy.code() == StatusCode::kUnavailable);
  CHECK(std::string(Message(other_policy)).find("federation policy") != std::string::npos);
  const Status other_facts = MeetOnConnect(own, federation, aggregator, "").status();
  CHECK(other_facts.code() == StatusCode::kUnavailable);
  CHECK(std::string(Message(other_facts)).find("legal facts") != std::string::npos);
  CHECK(MeetOnConnect(own, federation, "[policy", facts).status().code() ==
        StatusCode::kInvalidArgument);
}

TEST_CASE("Own policies: a policy for another place than the certificate's is refused") {
  CHECK(ReadHeart("budapest", "HU").ok());
  CHECK(ReadHeart("budapest", "DE").status().code() == StatusCode::kInvalidArgument);
  CHECK(ReadHeart("budapest", "").status().code() == StatusCode::kInvalidArgument);
  CHECK(ReadHeart("nowhere", "HU").status().code() == StatusCode::kNotFound);
}

}  // namespace
}  // namespace domicile::site_agent

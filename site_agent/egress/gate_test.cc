#include "site_agent/egress/gate.h"

#include <functional>

#include <doctest/doctest.h>

#include "site_agent/egress/testing.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;
using policy::Reason;
using policy::Result;

const WallTime kNow = Must(ParseTime("2026-12-01T09:00:00Z"));

StatusOr<OwnPolicies> Read(const std::string& site, const std::string& place) {
  return ReadOwnPolicies(kHeart + "site." + site + ".policy.toml",
                         kHeart + "federation.policy.toml", kHeart + "legal-facts.toml", place);
}

ForcedPolicies Forced() {
  return Must(MeetOnConnect(Must(Read("budapest", "HU")), HeartText("federation.policy.toml"),
                            HeartText("aggregator.policy.toml"), HeartText("legal-facts.toml")));
}

contracts::RosterEntry Entry(crypto::Role role, const std::string& name, const std::string& place,
                             const std::string& organisation) {
  return {.role = role,
          .name = name,
          .jurisdiction = place,
          .control_jurisdictions = {place},
          .organisation = organisation,
          .tls_keys = {},
          .log_key = {}};
}

JobBorder Border() {
  JobBorder border;
  border.aggregator = Entry(crypto::Role::kAggregator, "main", "IE", "federation-office");
  border.site = Entry(crypto::Role::kSite, "budapest", "HU", "hungarian-institute-of-cardiology");
  border.roster.entries = {
      border.aggregator, border.site,
      Entry(crypto::Role::kSite, "cleveland", "US-OH", "cleveland-clinic"),
      Entry(crypto::Role::kSite, "zurich-basel", "CH", "university-hospitals-zurich-basel")};
  border.approvals = {{.role = policy::ApprovalRole::kOperator, .count = 1}};
  border.sandbox = policy::SandboxNetwork::kNone;
  border.runs_today = 1;
  return border;
}

constexpr UpdateFacts kTrained = {
    .phase = PhaseKind::kTrain, .bytes = 512, .numbers = 17, .records = 196};

TEST_CASE("Gate: the demo's plan is allowed at every point, with the policy's obligations") {
  const ForcedPolicies policies = Forced();
  const contracts::Plan plan = HeartPlan();

  const Decided offer = DecideOffer(policies, plan, Border(), kNow);
  const Decided open = DecideDataOpen(policies, plan, Border(), kNow);
  const Decided egress = DecideEgress(policies, plan, Border(), kTrained, kNow);

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
  const ForcedPolicies policies = Forced();
  for (const Case& c : cases) {
    CAPTURE(c.name);
    contracts::Plan plan = HeartPlan();
    JobBorder border = Border();
    c.change(plan, border);
    for (const Decided& decided : {DecideOffer(policies, plan, border, kNow),
                                   DecideDataOpen(policies, plan, border, kNow)}) {
      CHECK(decided.decision.result == Result::kDeny);
      CHECK(decided.decision.Why() == c.want);
      CHECK(decided.record.result == "deny");
      CHECK_FALSE(decided.decision.permit.has_value());
    }
  }
}

TEST_CASE("Gate: without an approval the offer is held and no data are opened") {
  JobBorder border = Border();
  border.approvals.clear();

  CHECK(DecideOffer(Forced(), HeartPlan(), border, kNow).decision.result == Result::kHold);
  CHECK_FALSE(DecideDataOpen(Forced(), HeartPlan(), border, kNow).Allowed());
  CHECK_FALSE(DecideEgress(Forced(), HeartPlan(), border, kTrained, kNow).Allowed());
}

TEST_CASE("Gate: without all of the trainer's walls no data are opened") {
  JobBorder border = Border();
  border.sandbox = policy::SandboxNetwork::kUnset;

  const Decided decided = DecideDataOpen(Forced(), HeartPlan(), border, kNow);

  CHECK_FALSE(decided.Allowed());
  CHECK(decided.decision.Why() == Reason::kSandboxMissing);
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
    JobBorder border = Border();
    c.change(update, border);
    const Decided decided = DecideEgress(Forced(), HeartPlan(), border, update, kNow);
    CHECK(decided.decision.Why() == c.want);
    CHECK(decided.decision.permit.has_value() == (c.want == Reason::kPermitted));
  }
}

TEST_CASE(
    "Gate: a plan that clips less and asks for fewer sites is bound by the policy all the same") {
  contracts::Plan plan = HeartPlan();
  plan.update.clip_l2 = 100;
  plan.rounds.quorum = 1;

  const Decided decided = DecideDataOpen(Forced(), plan, Border(), kNow);

  CHECK(decided.Allowed());
  CHECK(decided.decision.obligations.clip_l2 == 4.0);
  CHECK(decided.decision.obligations.min_contributors == 3);
}

TEST_CASE("Gate: policies run out") {
  const WallTime later = Must(ParseTime("2027-11-01T00:00:00Z"));
  CHECK(DecideEgress(Forced(), HeartPlan(), Border(), kTrained, later).decision.Why() ==
        Reason::kPolicyExpired);
}

TEST_CASE("MeetOnConnect: another copy of what both must hold is refused by its name") {
  const OwnPolicies own = Must(Read("budapest", "HU"));
  const std::string federation = HeartText("federation.policy.toml");
  const std::string aggregator = HeartText("aggregator.policy.toml");
  const std::string facts = HeartText("legal-facts.toml");

  const Status other_policy = MeetOnConnect(own, federation + "\n", aggregator, facts).status();
  CHECK(other_policy.code() == StatusCode::kFailedPrecondition);
  CHECK(std::string(Message(other_policy)).find("federation policy") != std::string::npos);
  const Status other_facts = MeetOnConnect(own, federation, aggregator, "").status();
  CHECK(other_facts.code() == StatusCode::kFailedPrecondition);
  CHECK(std::string(Message(other_facts)).find("legal facts") != std::string::npos);
  CHECK(MeetOnConnect(own, federation, "[policy", facts).status().code() ==
        StatusCode::kInvalidArgument);
}

TEST_CASE("ReadOwnPolicies: a policy for another place than the certificate's is refused") {
  CHECK(Read("budapest", "HU").ok());
  CHECK(Read("budapest", "DE").status().code() == StatusCode::kInvalidArgument);
  CHECK(Read("budapest", "").status().code() == StatusCode::kInvalidArgument);
  CHECK(Read("nowhere", "HU").status().code() == StatusCode::kNotFound);
}

}  // namespace
}  // namespace domicile::site_agent

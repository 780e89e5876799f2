// Random policies and transfers from a small world, for properties of the meet. They lean to what
// is allowed, so that every answer comes up.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "policy/engine/decide.h"
#include "policy/engine/small_world.h"

namespace domicile::policy {

// One thread at a time.
class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  bool Chance(std::uint64_t one_in) { return random_.Below(one_in) == 0; }

  template <typename T>
  T Pick(const std::vector<T>& values) {
    return values[random_.Below(values.size())];
  }

  template <typename T>
  std::set<T> Subset(const std::vector<T>& values, std::uint64_t leave_out_one_in) {
    std::set<T> set;
    for (const T& value : values) {
      if (!Chance(leave_out_one_in)) {
        set.insert(value);
      }
    }
    return set;
  }

  std::set<Area> SomeAreas() {
    static const std::set<Area> kAll = Areas({"DE", "IE", "CH", "US", "US-OH", "EEA", "EU"});
    static const std::vector<Area> kList(kAll.begin(), kAll.end());
    return Subset<Area>(kList, 12);
  }

  Rule MakeRule(int number, bool is_site) {
    Rule rule;
    rule.id = "R-" + std::to_string(number);
    if (Chance(3)) {
      rule.dataset = Chance(6) ? *DatasetAlias::Parse("lungs") : kAlias;
    }
    const std::uint64_t silent = is_site ? 12 : 2;
    MakeAllow(rule, silent);
    MakeNumbers(rule, silent);
    MakePrivacy(rule, silent);
    if (Chance(8)) {
      rule.deny_locations = {*Area::Parse(Pick<const char*>({"US", "US-CA", "CH", "EEA"}))};
    }
    if (Chance(10)) {
      rule.deny_update_kinds = {UpdateKind::kDeltaPlain};
    }
    if (Chance(12)) {
      rule.deny_recipients = {"sites"};
    }
    if (Chance(12)) {
      rule.deny_outputs = Pick<std::set<Output>>({{}, {Output::kSamples}});
    }
    if (Chance(12)) {
      rule.deny_purposes = Pick<std::set<Purpose>>({{}, {Purpose::kScientificResearch}});
    }
    if (is_site && !Chance(4)) {
      rule.transfers.push_back(MakeGround("CH", Mechanism::kAdequacy, std::nullopt));
      rule.transfers.push_back(
          MakeGround("US", Mechanism::kScc, kNow + std::chrono::hours(Chance(6) ? 0 : 24)));
    }
    return rule;
  }

  Policy MakePolicy(PolicySource source, int number) {
    Policy policy;
    policy.source = source;
    policy.file = "p" + std::to_string(number);
    policy.identity.id = "policy/" + std::to_string(number);
    policy.identity.version = 1 + random_.Below(3);
    policy.identity.not_before = kNow - std::chrono::hours(Chance(30) ? -1 : 24);
    policy.identity.expires = kNow + std::chrono::hours(Chance(30) ? -1 : 240);
    const bool is_site = source == PolicySource::kSite;
    const std::uint64_t rules = is_site ? 1 + random_.Below(2) : random_.Below(3);
    for (std::uint64_t i = 0; i < rules; ++i) {
      policy.rules.push_back(MakeRule(static_cast<int>(i), is_site));
    }
    if (is_site) {
      MakeSite(policy);
    }
    if (is_site ? !Chance(12) : Chance(3)) {
      policy.model_recipients = SomeAreas();
    }
    if (is_site ? !Chance(12) : Chance(6)) {
      policy.approvals = ApprovalSection{};
      if (Chance(2)) {
        policy.approvals->required = {{ApprovalRole::kDpo, 1, Chance(4)}};
      }
      if (Chance(4)) {
        policy.approvals->max_age = std::chrono::hours(24 * (1 + random_.Below(40)));
      }
    }
    MakeSections(policy, is_site);
    return policy;
  }

  Transfer MakeTransfer() {
    Transfer transfer;
    transfer.point = Pick<DecisionPoint>(
        {DecisionPoint::kOffer, DecisionPoint::kEgress, DecisionPoint::kEgress,
         DecisionPoint::kIngress, DecisionPoint::kAggregateRelease, DecisionPoint::kModelToSite});
    transfer.from = {PartyRole::kSite, "a", "a", "DE", {"DE"}, LocationEvidence::kCertificate};
    transfer.to = {PartyRole::kAggregator, "hub", "hub", Place(), {"DE"}, Evidence()};
    if (transfer.point == DecisionPoint::kModelToSite) {
      transfer.via = transfer.to;
      transfer.to = {PartyRole::kSite, "b", "b", Place(), {"DE"}, Evidence()};
    } else if (Chance(8)) {
      transfer.transit = {{PartyRole::kNone, "relay", "relay", Place(), {"DE"}, Evidence()}};
    }
    transfer.recipients = {{PartyRole::kSite, "b", "b", Place(), {"DE"}, Evidence()}};
    transfer.dataset = kAlias;
    transfer.kinds = {Pick<UpdateKind>({UpdateKind::kDeltaMasked, UpdateKind::kDeltaPlain})};
    transfer.view =
        Pick<View>({View::kAggregateOnly, View::kAggregateOnly, View::kPlaintextIndividual});
    transfer.purpose = Purpose::kScientificResearch;
    transfer.plan = {.rounds = 1,
                     .local_steps = 5 + random_.Below(6),
                     .clip_l2 = 1,
                     .max_sites = static_cast<std::uint32_t>(4 + random_.Below(4)),
                     .weights = WeightRule::kExact,
                     .dp_mode = Chance(3) ? DpMode::kEnforced : DpMode::kNone,
                     .epsilon = 0.5 + static_cast<double>(random_.Below(4)),
                     .delta = 1e-6,
                     .dp_unit = Pick<DpUnit>({DpUnit::kPerson, DpUnit::kSite}),
                     .sampling = Sampling::kNoneAssumed,
                     .secagg_threshold = Chance(4) ? 0.6 : 0.75};
    transfer.contributors = static_cast<std::uint32_t>(2 + random_.Below(5));
    transfer.records_behind = 50 + random_.Below(100);
    transfer.bytes = 100;
    transfer.numbers = 10;
    transfer.runs_today = 1;
    transfer.sandbox_network = SandboxNetwork::kNone;
    if (!Chance(3)) {
      const WallTime signed_at = kNow - std::chrono::hours(24 * random_.Below(30));
      transfer.approvals = {{ApprovalRole::kDpo, 1, "a", signed_at},
                            {ApprovalRole::kOperator, 1, "a", signed_at}};
    }
    transfer.now = kNow;
    MakeFactsOf(transfer);
    return transfer;
  }

 private:
  std::string Place() {
    return Pick<const char*>({"DE", "DE", "DE", "DE-BY", "IE", "IE", "CH", "US-OH", "XX"});
  }
  LocationEvidence Evidence() {
    return Chance(12) ? LocationEvidence::kDeclared : LocationEvidence::kCertificate;
  }

  void MakeFactsOf(Transfer& transfer) {
    transfer.outputs = Chance(20) ? std::optional<std::set<Output>>() : std::set<Output>{};
    transfer.sandbox_profile = SandboxProfile::kNamespaces;
    transfer.epsilon_spent = static_cast<double>(random_.Below(8));
    transfer.subjects_exported = 50 + random_.Below(100);
    transfer.witnesses = static_cast<std::uint32_t>(1 + random_.Below(2));
    transfer.unwitnessed_age = std::chrono::minutes(random_.Below(62));
    transfer.clock_skew = std::chrono::seconds(random_.Below(32));
    transfer.retention = {.audit = std::chrono::hours(24 * 366 * (5 + random_.Below(30))),
                          .update = std::chrono::hours(24 * random_.Below(32)),
                          .model_review = std::chrono::hours(24 * 30)};
    transfer.contributor_sites = {{"a", "a"}, {"b", "b"}, {"c", "c"}, {"d", "d"}, {"e", "e"}};
    transfer.plan_digest = Digest{};
    transfer.trainer_digest = Digest{};
  }

  void MakePrivacy(Rule& rule, std::uint64_t silent) {
    if (Chance(silent)) {
      rule.secagg_threshold = Pick<double>({0.5, 0.7, 0.8});
      rule.dp_unit = Pick<DpUnit>({DpUnit::kRecord, DpUnit::kPerson, DpUnit::kSite});
      rule.epsilon_total = Pick<double>({2, 8, 20});
      rule.epsilon_per_run = Pick<double>({1, 2, 4});
    }
    if (Chance(20)) {
      rule.sampling = Sampling::kPoissonByAgent;
    }
    if (Chance(10)) {
      rule.delta = Pick<double>({1e-7, 1e-5});
      rule.budget_window = std::chrono::hours(24 * (1 + random_.Below(400)));
      rule.export_subjects_per_year = 100;
      rule.derogations = Chance(2);
    }
    if (Chance(20)) {
      rule.evidence =
          Pick<LocationEvidence>({LocationEvidence::kDeclared, LocationEvidence::kCertificate});
      rule.transit = SomeAreas();
    }
    if (Chance(30)) {
      rule.models = Pick<std::set<std::string>>({{std::string(64, '0')}, {std::string(64, 'a')}});
      rule.trainers = rule.models;
      rule.contributors = Subset<std::string>({"a", "b", "c", "d", "e"}, 6);
    }
  }

  void MakeSections(Policy& policy, bool is_site) {
    const std::uint64_t speaks = is_site ? 4 : 8;
    if (Chance(speaks)) {
      policy.retention.audit_min = std::chrono::hours(24 * 366 * (1 + random_.Below(8)));
      policy.retention.update_max = std::chrono::hours(24 * (5 + random_.Below(30)));
      policy.retention.model_review = std::chrono::hours(24 * 366);
    }
    if (Chance(speaks)) {
      policy.audit.witnesses_min = static_cast<std::uint32_t>(random_.Below(3));
      policy.audit.max_unwitnessed_age = std::chrono::minutes(10 + random_.Below(120));
    }
    if (Chance(speaks)) {
      policy.max_skew = std::chrono::seconds(10 + random_.Below(60));
    }
    if (Chance(speaks)) {
      policy.sandbox_profile = Chance(8) ? SandboxProfile::kGvisor : SandboxProfile::kNamespaces;
      policy.on_withdrawal = ErasureRule::kStopUse;
    }
  }

  void MakeAllow(Rule& rule, std::uint64_t silent) {
    if (!Chance(silent)) {
      rule.aggregator_locations = SomeAreas();
    }
    if (!Chance(silent)) {
      rule.aggregator_control = SomeAreas();
    }
    if (!Chance(silent)) {
      rule.recipients = Subset<std::string>({"sites", "b", "operator"}, 4);
    }
    if (!Chance(silent)) {
      const auto all = AllOf<UpdateKind>();
      rule.update_kinds = Subset<UpdateKind>({all.begin(), all.end()}, 10);
    }
    if (!Chance(silent)) {
      rule.aggregator_view = Pick<View>({View::kAggregateOnly, View::kPlaintextIndividual});
    }
  }

  void MakeNumbers(Rule& rule, std::uint64_t silent) {
    if (!Chance(silent)) {
      rule.min_contributors = static_cast<std::uint32_t>(3 + random_.Below(3));
    }
    if (!Chance(silent)) {
      rule.require_secagg = Chance(3);
    }
    if (!Chance(silent)) {
      rule.rounds = random_.Below(6) == 0 ? 0 : 10;
      rule.runs_per_day = 1;
      rule.update_bytes = 1000;
      rule.metrics = 5;
      rule.released_numbers_per_record = 10;
      rule.params_per_record = 1;
    }
    if (Chance(4)) {
      rule.min_cohort = 10 + random_.Below(60);
    }
    if (!Chance(silent)) {
      rule.min_local_steps = static_cast<std::uint32_t>(1 + random_.Below(7));
      rule.clip_l2 = Pick<double>({0.5, 1, 4});
      rule.min_batch = 1;
    }
  }

  void MakeSite(Policy& policy) {
    policy.site = SiteSection{};
    policy.site->jurisdiction = *Jurisdiction::Parse(Chance(20) ? "US-OH" : "DE");
    policy.site->control_jurisdictions = {policy.site->jurisdiction};
    PolicyDataset dataset;
    dataset.alias = Chance(20) ? *DatasetAlias::Parse("lungs") : kAlias;
    dataset.name = "name";
    dataset.categories = {Category::kOrdinary};
    dataset.subjects_count = Pick<SubjectsCount>({SubjectsCount::kUnset, SubjectsCount::kBelow100});
    if (!Chance(6)) {
      dataset.tia = DocumentRef{"tia", std::string(64, '0'), kNow + std::chrono::hours(24)};
    }
    dataset.regimes = Pick<std::set<Regime>>({{Regime::kEuGdpr},
                                              {Regime::kEuGdpr},
                                              {Regime::kUsHipaa, Regime::kEuGdpr},
                                              {Regime::kUsHipaa}});
    dataset.lawful_basis = "A6-1-e";
    dataset.purposes = {Purpose::kScientificResearch};
    policy.datasets = {dataset};
  }

  SeededRandom random_;
};

}  // namespace domicile::policy

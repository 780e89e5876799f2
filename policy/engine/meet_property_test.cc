// The laws of the meet, on random policies and transfers from a small world.
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/random.h"
#include "policy/engine/decide.h"

namespace domicile::policy {
namespace {

constexpr int kPerSeed = 5;

const WallTime kNow = *ParseTime("2026-12-01T00:00:00Z");
const DatasetAlias kAlias = *DatasetAlias::Parse("heart");

std::set<Area> Areas(std::initializer_list<const char*> texts) {
  std::set<Area> set;
  for (const char* text : texts) {
    set.insert(*Area::Parse(text));
  }
  return set;
}

Fact MakeFact(const char* id, FactKind kind, Regime regime, std::set<Area> from,
              std::set<Area> to) {
  Fact fact;
  fact.id = id;
  fact.kind = kind;
  fact.regime = regime;
  fact.from = std::move(from);
  fact.to = std::move(to);
  fact.from_date = kNow - std::chrono::hours(24 * 1000);
  return fact;
}

TransferGround MakeGround(const char* to, Mechanism mechanism, std::optional<WallTime> until) {
  TransferGround ground;
  ground.to = *Area::Parse(to);
  ground.mechanism = mechanism;
  ground.valid_until = until;
  return ground;
}

Facts World() {
  Facts facts;
  facts.id = "facts/world";
  facts.version = 1;
  facts.expires = kNow + std::chrono::hours(24 * 100);
  Fact bloc = MakeFact("eea", FactKind::kBloc, Regime::kNone, {}, {});
  bloc.bloc = "EEA";
  bloc.members = {*Jurisdiction::Parse("DE"), *Jurisdiction::Parse("IE")};
  facts.facts = {
      bloc,
      MakeFact("territory", FactKind::kTerritory, Regime::kEuGdpr, Areas({"EEA"}), {}),
      MakeFact("free", FactKind::kFreeFlow, Regime::kEuGdpr, Areas({"EEA"}), Areas({"EEA"})),
      MakeFact("ch", FactKind::kAdequacy, Regime::kEuGdpr, Areas({"EEA"}), Areas({"CH"})),
      MakeFact("us-free", FactKind::kFreeFlow, Regime::kUsHipaa, Areas({"US"}), Areas({"EEA"})),
  };
  return facts;
}

// Makes random values; leans to what is allowed, so that both answers come up.
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
    const std::set<Area> all = Areas({"DE", "IE", "CH", "US", "US-OH", "EEA", "EU"});
    return Subset<Area>({all.begin(), all.end()}, 8);
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
    if (Chance(8)) {
      rule.deny_locations = {*Area::Parse(Pick<const char*>({"US", "US-CA", "CH", "EEA"}))};
    }
    if (Chance(10)) {
      rule.deny_update_kinds = {UpdateKind::kDeltaPlain};
    }
    if (Chance(12)) {
      rule.deny_recipients = {"sites"};
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
        policy.approvals->required = {{ApprovalRole::kDpo, 1}};
      }
    }
    return policy;
  }

  Transfer MakeTransfer() {
    Transfer transfer;
    transfer.point = Pick<DecisionPoint>(
        {DecisionPoint::kOffer, DecisionPoint::kEgress, DecisionPoint::kEgress,
         DecisionPoint::kIngress, DecisionPoint::kAggregateRelease, DecisionPoint::kModelToSite});
    transfer.from = {PartyRole::kSite, "a", "a", "DE", {"DE"}};
    transfer.to = {PartyRole::kAggregator, "hub", "hub", Place(), {"DE"}};
    if (transfer.point == DecisionPoint::kModelToSite) {
      transfer.via = transfer.to;
      transfer.to = {PartyRole::kSite, "b", "b", Place(), {"DE"}};
    }
    transfer.recipients = {{PartyRole::kSite, "b", "b", Place(), {"DE"}}};
    transfer.dataset = kAlias;
    transfer.kinds = {Pick<UpdateKind>({UpdateKind::kDeltaMasked, UpdateKind::kDeltaPlain})};
    transfer.view =
        Pick<View>({View::kAggregateOnly, View::kAggregateOnly, View::kPlaintextIndividual});
    transfer.purpose = Purpose::kScientificResearch;
    transfer.plan = {.rounds = 1,
                     .local_steps = 5 + random_.Below(6),
                     .clip_l2 = 1,
                     .max_sites = static_cast<std::uint32_t>(4 + random_.Below(4)),
                     .weights = WeightRule::kExact};
    transfer.contributors = static_cast<std::uint32_t>(2 + random_.Below(5));
    transfer.records_behind = 50 + random_.Below(100);
    transfer.bytes = 100;
    transfer.numbers = 10;
    transfer.runs_today = 1;
    transfer.sandbox_network = SandboxNetwork::kNone;
    if (Chance(2)) {
      transfer.approvals = {{ApprovalRole::kDpo, 1}, {ApprovalRole::kOperator, 1}};
    }
    transfer.now = kNow;
    return transfer;
  }

 private:
  std::string Place() {
    return Pick<const char*>({"DE", "DE", "DE-BY", "IE", "CH", "US-OH", "XX"});
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

int Rank(Result result) { return static_cast<int>(result); }

}  // namespace

TEST_CASE("Meet: commutative, associative and idempotent") {
  const Facts facts = World();
  CHECK(rc::check([&facts](std::uint64_t seed) {
    Maker maker(seed);
    for (int i = 0; i < kPerSeed; ++i) {
      const auto any = [&](int number) {
        return FromPolicy(maker.MakePolicy(maker.Pick<PolicySource>({PolicySource::kFederation,
                                                                     PolicySource::kAggregator,
                                                                     PolicySource::kSite}),
                                           number),
                          facts);
      };
      const Effective a = any(1);
      const Effective b = any(2);
      const Effective c = any(3);
      RC_ASSERT(Meet(a, b).Text() == Meet(b, a).Text());
      RC_ASSERT(Meet(Meet(a, b), c).Text() == Meet(a, Meet(b, c)).Text());
      RC_ASSERT(Meet(a, a).Text() == a.Text());
      const Transfer transfer = maker.MakeTransfer();
      RC_ASSERT(Decide(Meet(a, b), transfer).result == Decide(Meet(b, a), transfer).result);
      RC_ASSERT(Decide(Meet(a, a), transfer).result == Decide(a, transfer).result);
    }
  }));
}

TEST_CASE("Meet: one more policy never turns deny into hold or hold into allow") {
  const Facts facts = World();
  CHECK(rc::check([&facts](std::uint64_t seed) {
    Maker maker(seed);
    for (int i = 0; i < kPerSeed; ++i) {
      const Effective base = Meet(maker.MakePolicy(PolicySource::kFederation, 1),
                                  maker.MakePolicy(PolicySource::kAggregator, 2),
                                  maker.MakePolicy(PolicySource::kSite, 3), facts);
      const Policy extra = maker.MakePolicy(
          maker.Pick<PolicySource>(
              {PolicySource::kFederation, PolicySource::kAggregator, PolicySource::kSite}),
          4);
      const Effective more = Meet(base, FromPolicy(extra, facts));
      const Transfer transfer = maker.MakeTransfer();
      RC_ASSERT(Rank(Decide(more, transfer).result) <= Rank(Decide(base, transfer).result));
    }
  }));
}

TEST_CASE("Meet: the generators reach every answer, and a tighter one after an extra policy") {
  const Facts facts = World();
  int count[3] = {};
  int tightened = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Maker maker(seed);
    const Effective base = Meet(maker.MakePolicy(PolicySource::kFederation, 1),
                                maker.MakePolicy(PolicySource::kAggregator, 2),
                                maker.MakePolicy(PolicySource::kSite, 3), facts);
    const Effective more = Meet(base, FromPolicy(maker.MakePolicy(PolicySource::kSite, 4), facts));
    const Transfer transfer = maker.MakeTransfer();
    const Result result = Decide(base, transfer).result;
    ++count[Rank(result)];
    tightened += Rank(Decide(more, transfer).result) < Rank(result) ? 1 : 0;
  }
  CHECK(count[Rank(Result::kDeny)] > 100);
  CHECK(count[Rank(Result::kHold)] > 3);
  CHECK(count[Rank(Result::kAllow)] > 30);
  CHECK(tightened > 10);
}

TEST_CASE("Decide: never allows what a deny rule of any source matches") {
  const Facts facts = World();
  CHECK(rc::check([&facts](std::uint64_t seed) {
    Maker maker(seed);
    for (int i = 0; i < kPerSeed; ++i) {
      Policy policies[] = {maker.MakePolicy(PolicySource::kFederation, 1),
                           maker.MakePolicy(PolicySource::kAggregator, 2),
                           maker.MakePolicy(PolicySource::kSite, 3)};
      const Transfer transfer = maker.MakeTransfer();
      Rule deny;
      deny.id = "deny";
      switch (maker.Pick<int>({0, 1, 2})) {
        case 0:
          deny.deny_update_kinds = {transfer.kinds[0]};
          break;
        case 1:
          deny.deny_control = {*Area::Parse("DE")};  // all parties are
          break;
        default:
          for (const char* text : {"DE", "IE", "CH", "US"}) {
            deny.deny_locations.insert(*Area::Parse(text));
          }
          break;
      }
      policies[maker.Pick<int>({0, 1, 2})].rules.push_back(deny);
      const Decision decision =
          Decide(Meet(policies[0], policies[1], policies[2], facts), transfer);
      RC_ASSERT(decision.result == Result::kDeny);
      RC_ASSERT(!decision.permit.has_value());
    }
  }));
}

TEST_CASE("Decide: without a site policy nothing is allowed, whatever the others say") {
  const Facts facts = World();
  CHECK(rc::check([&facts](std::uint64_t seed) {
    Maker maker(seed);
    for (int i = 0; i < kPerSeed; ++i) {
      const Effective effective =
          Meet(FromPolicy(maker.MakePolicy(PolicySource::kFederation, 1), facts),
               FromPolicy(maker.MakePolicy(PolicySource::kAggregator, 2), facts));
      RC_ASSERT(Decide(effective, maker.MakeTransfer()).result == Result::kDeny);
      RC_ASSERT(Decide(Effective(), maker.MakeTransfer()).result == Result::kDeny);
    }
  }));
}

}  // namespace domicile::policy

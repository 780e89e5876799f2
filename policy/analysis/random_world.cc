#include "policy/analysis/random_world.h"

#include <algorithm>
#include <set>

#include "base/random.h"

namespace domicile::policy::analysis {
namespace {

const WallTime kNow = *ParseTime("2026-12-01T00:00:00Z");

WallTime Day(int day) { return kNow + std::chrono::hours(24 * day); }

std::set<Area> Areas(const std::vector<const char*>& texts) {
  std::set<Area> areas;
  for (const char* text : texts) {
    areas.insert(*Area::Parse(text));
  }
  return areas;
}

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  World Make() {
    World world;
    world.facts = MakeFacts();
    world.policies.push_back(MakePolicy(PolicySource::kFederation, "federation/f"));
    world.policies.push_back(MakePolicy(PolicySource::kAggregator, "aggregator/a"));
    Policy site = MakePolicy(PolicySource::kSite, "site/s");
    MakeSite(site);
    world.policies.push_back(std::move(site));
    return world;
  }

 private:
  bool Chance(std::uint64_t one_in) { return random_.Below(one_in) == 0; }

  template <typename T>
  T Pick(const std::vector<T>& values) {
    return values[random_.Below(values.size())];
  }

  template <typename T>
  std::set<T> Most(const std::vector<T>& values, std::uint64_t leave_out_one_in) {
    std::set<T> some;
    for (const T& value : values) {
      if (!Chance(leave_out_one_in)) {
        some.insert(value);
      }
    }
    return some;
  }

  std::set<Area> SomeAreas() {
    std::set<Area> areas = Areas({Pick<const char*>({"EEA", "EU", "DE", "IE"})});
    for (const char* text : {"CH", "US", "US-CA", "JP"}) {
      if (Chance(2)) {
        areas.insert(*Area::Parse(text));
      }
    }
    return areas;
  }

  Fact MakeFact(const char* id, FactKind kind, Regime regime, std::set<Area> from,
                std::set<Area> to) {
    Fact fact;
    fact.id = id;
    fact.kind = kind;
    fact.regime = regime;
    fact.from = std::move(from);
    fact.to = std::move(to);
    fact.from_date = Day(Chance(6) ? 10 : -100);
    if (Chance(4)) {
      fact.until_date = Day(30);
    }
    return fact;
  }

  Facts MakeFacts() {
    Facts facts;
    facts.id = "facts/random";
    facts.version = 1;
    facts.expires = Day(Chance(5) ? 50 : 500);
    Fact eea = MakeFact("eea", FactKind::kBloc, Regime::kNone, {}, {});
    eea.bloc = "EEA";
    eea.members = {*Jurisdiction::Parse("DE"), *Jurisdiction::Parse("IE")};
    Fact eu = eea;
    eu.id = "eu";
    eu.bloc = "EU";
    eu.members = {*Jurisdiction::Parse("DE")};
    Fact dpf = MakeFact("dpf", FactKind::kAdequacy, Regime::kEuGdpr, Areas({"EEA"}), Areas({"US"}));
    dpf.scope = "certified";
    facts.facts = {
        eea,
        dpf,
        MakeFact("territory", FactKind::kTerritory, Regime::kEuGdpr, Areas({"EEA"}), {}),
        MakeFact("free", FactKind::kFreeFlow, Regime::kEuGdpr, Areas({"EEA"}), Areas({"EEA"})),
        MakeFact("ch", FactKind::kAdequacy, Regime::kEuGdpr, Areas({"EEA"}), Areas({"CH", "JP"})),
        MakeFact("hipaa", FactKind::kFreeFlow, Regime::kUsHipaa, Areas({"US"}), Areas({"EEA"})),
        MakeFact("concern", FactKind::kCountryOfConcern, Regime::kUsHipaa, Areas({"DE", "US"}),
                 Areas({"CN"}))};
    if (!Chance(3)) {
      facts.facts.push_back(eu);  // else `EU` cannot be told
    }
    return facts;
  }

  void MakeAllow(Rule& rule, std::uint64_t silent) {
    if (!Chance(silent)) {
      rule.aggregator_locations = SomeAreas();
    }
    if (!Chance(silent)) {
      rule.aggregator_control = SomeAreas();
    }
    if (!Chance(silent)) {
      rule.recipients = Most<std::string>({"sites", "b", "operator", "operator/alice"}, 4);
    }
    if (!Chance(silent)) {
      const auto all = AllOf<UpdateKind>();
      rule.update_kinds = Most<UpdateKind>({all.begin(), all.end()}, 4);
    }
    if (!Chance(silent)) {
      rule.aggregator_view = Pick<View>({View::kAggregateOnly, View::kPlaintextIndividual});
      rule.require_secagg = Chance(4);
    }
    if (!Chance(silent)) {
      rule.purposes = Most<Purpose>({Purpose::kScientificResearch, Purpose::kEducation}, 3);
    }
  }

  void MakeDeny(Rule& rule) {
    if (Chance(5)) {
      rule.deny_locations = Areas({Pick<const char*>({"US", "US-CA", "CH", "EU", "NZ"})});
    }
    if (Chance(6)) {
      rule.deny_control = Areas({Pick<const char*>({"US", "CN"})});
    }
    if (Chance(6)) {
      rule.deny_recipients = {Pick<std::string>({"b", "operator", "operator/alice", "sites"})};
    }
    if (Chance(6)) {
      rule.deny_update_kinds = {UpdateKind::kDeltaPlain};
    }
  }

  TransferGround MakeGround(const char* to, Mechanism mechanism) {
    TransferGround ground;
    ground.to = *Area::Parse(to);
    ground.mechanism = mechanism;
    ground.importer = Chance(2) ? "clinic" : "";
    if (mechanism != Mechanism::kAdequacy) {
      ground.valid_until = Day(Pick<int>({-1, 20, 300}));
    }
    return ground;
  }

  Policy MakePolicy(PolicySource source, const char* id) {
    const bool is_site = source == PolicySource::kSite;
    Policy policy;
    policy.source = source;
    policy.file = id;
    policy.identity.id = id;
    policy.identity.version = 1;
    policy.identity.schema = 1;
    policy.identity.not_before = Day(Chance(8) ? 5 : -20);
    policy.identity.expires = Day(Chance(4) ? 60 : 200);
    const std::uint64_t rules = is_site ? 1 + random_.Below(2) : random_.Below(2);
    for (std::uint64_t i = 0; i < rules; ++i) {
      Rule rule;
      rule.id = "R-" + std::to_string(i);
      MakeAllow(rule, is_site ? 12 : 3);
      MakeDeny(rule);
      if (is_site) {
        rule.rounds = 10;
        rule.runs_per_day = 1;
        rule.update_bytes = 1000;
        rule.metrics = 5;
        for (const char* to : {"CH", "US", "JP", "IE", "DE"}) {
          rule.transfers.push_back(
              MakeGround(to, Pick<Mechanism>({Mechanism::kAdequacy, Mechanism::kScc})));
        }
      }
      policy.rules.push_back(std::move(rule));
    }
    if (is_site ? !Chance(8) : Chance(3)) {
      policy.model_recipients = SomeAreas();
    }
    return policy;
  }

  void MakeSite(Policy& policy) {
    policy.site = SiteSection{};
    policy.site->jurisdiction = *Jurisdiction::Parse(Pick<const char*>({"DE", "DE", "US-CA"}));
    policy.site->control_jurisdictions = {policy.site->jurisdiction};
    PolicyDataset dataset;
    dataset.alias = *DatasetAlias::Parse("heart");
    dataset.name = "name";
    dataset.categories = {Category::kOrdinary};
    dataset.subject_jurisdictions = {policy.site->jurisdiction};
    dataset.regimes =
        Pick<std::set<Regime>>({{Regime::kEuGdpr}, {Regime::kUsHipaa, Regime::kEuGdpr}});
    dataset.lawful_basis = "A6-1-e";
    dataset.purposes = {Purpose::kScientificResearch, Purpose::kEducation, Purpose::kMarketing};
    const DocumentRef document = {"d", std::string(64, '0'), Day(Chance(4) ? 15 : 300)};
    dataset.dpia = document;
    dataset.tia = document;
    dataset.permit = document;
    dataset.baa = document;
    policy.datasets = {dataset};
  }

  SeededRandom random_;
};

using Texts = std::vector<std::string>;

// Calls `next` with each place and control of a party.
bool EachParty(const Texts& places, const Texts& controls, Party& party,
               const std::function<bool()>& next) {
  for (const std::string& place : places) {
    party.jurisdiction = place;
    for (const std::string& control : controls) {
      party.control = {control};
      if (!next()) {
        return false;
      }
    }
  }
  return true;
}

bool EachReceiver(const SmallSpace& space, Transfer& transfer, const std::function<bool()>& next) {
  struct Name {
    PartyRole role;
    const char* id;
  };
  constexpr Name kNames[] = {{PartyRole::kSite, "b"},          {PartyRole::kSite, "c"},
                             {PartyRole::kOperator, "alice"},  {PartyRole::kOperator, "bob"},
                             {PartyRole::kAuditor, "auditor"}, {PartyRole::kAggregator, "parent"}};
  const DecisionPoint point = transfer.point;
  for (const Name& name : kNames) {
    const bool fits = point == DecisionPoint::kModelToSite ? name.role == PartyRole::kSite
                      : point == DecisionPoint::kModelDownload
                          ? name.role == PartyRole::kSite || name.role == PartyRole::kOperator
                      : point == DecisionPoint::kView
                          ? name.role == PartyRole::kOperator || name.role == PartyRole::kAuditor
                          : name.role == PartyRole::kAggregator;
    transfer.to.role = name.role;
    transfer.to.id = name.id;
    for (const std::string& organisation : space.organisations) {
      transfer.to.organisation = organisation;
      if (fits && !EachParty(space.places, space.control, transfer.to, next)) {
        return false;
      }
    }
  }
  return true;
}

bool EachContent(const SmallSpace& space, Transfer& transfer, const std::function<bool()>& next) {
  const bool is_model = transfer.point == DecisionPoint::kModelToSite ||
                        transfer.point == DecisionPoint::kModelDownload;
  for (const WallTime date : space.dates) {
    transfer.now = date;
    for (PresentApproval& approval : transfer.approvals) {
      approval.signed_at = date;
    }
    for (const Purpose purpose : space.purposes) {
      transfer.purpose = purpose;
      if (is_model) {
        transfer.kinds = {UpdateKind::kModelFinal};
        transfer.view = View::kAggregateOnly;
        if (!next()) {
          return false;
        }
        continue;
      }
      for (const UpdateKind kind : AllOf<UpdateKind>()) {
        transfer.kinds = {kind};
        for (const View view : AllOf<View>()) {
          transfer.view = view;
          if (!next()) {
            return false;
          }
        }
      }
    }
  }
  return true;
}

}  // namespace

World RandomWorld(std::uint64_t seed) { return Maker(seed).Make(); }

Window RandomWorldWindow() { return {kNow, {}}; }

SmallSpace SmallSpaceOf(const World& world, const Window& window) {
  std::set<WallTime> instants = {window.from};
  WallTime end = window.from;
  const auto add = [&](WallTime time) {
    if (time > window.from) {
      instants.insert(time);
    }
  };
  for (const Policy& policy : world.policies) {
    end = std::max(end, policy.identity.expires);
    add(policy.identity.not_before);
    add(policy.identity.expires);
    for (const PolicyDataset& dataset : policy.datasets) {
      add(dataset.dpia->valid_until);
    }
    for (const Rule& rule : policy.rules) {
      for (const TransferGround& ground : rule.transfers) {
        if (ground.valid_until) {
          add(*ground.valid_until);
        }
      }
    }
  }
  add(world.facts.expires);
  for (const Fact& fact : world.facts.facts) {
    add(fact.from_date);
    if (fact.until_date) {
      add(*fact.until_date);
    }
  }
  SmallSpace space;
  std::copy_if(instants.begin(), instants.end(), std::back_inserter(space.dates),
               [end](WallTime time) { return time < end; });
  return space;
}

void EachRequest(const SmallSpace& space, DecisionPoint point, const Transfer& base,
                 const std::function<bool(const Transfer&)>& visit) {
  Transfer transfer = base;
  transfer.point = point;
  transfer.to.role = PartyRole::kAggregator;
  transfer.to.id = "main";
  transfer.to.evidence = LocationEvidence::kAttested;
  const auto content = [&] {
    return EachContent(space, transfer, [&] { return visit(transfer); });
  };
  const bool hands_on = point == DecisionPoint::kModelToSite ||
                        point == DecisionPoint::kModelDownload || point == DecisionPoint::kView ||
                        point == DecisionPoint::kParentSum;
  if (hands_on) {
    transfer.via = transfer.to;
    transfer.via->organisation = "any";
    EachParty(space.hub_places.empty() ? space.places : space.hub_places,
              space.hub_control.empty() ? space.control : space.hub_control, *transfer.via,
              [&] { return EachReceiver(space, transfer, content); });
    return;
  }
  for (const std::string& organisation : space.organisations) {
    transfer.to.organisation = organisation;
    if (!EachParty(space.places, space.control, transfer.to, content)) {
      return;
    }
  }
}

}  // namespace domicile::policy::analysis

// A world of few places and facts, in which properties of the meet are tried.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "policy/language/facts.h"
#include "policy/language/policy.h"

namespace domicile::policy {

inline const WallTime kNow = *ParseTime("2026-12-01T00:00:00Z");
inline const DatasetAlias kAlias = *DatasetAlias::Parse("heart");

inline std::set<Area> Areas(std::initializer_list<const char*> texts) {
  std::set<Area> set;
  for (const char* text : texts) {
    set.insert(*Area::Parse(text));
  }
  return set;
}

inline Fact MakeFact(const char* id, FactKind kind, Regime regime, std::set<Area> from,
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

inline TransferGround MakeGround(const char* to, Mechanism mechanism,
                                 std::optional<WallTime> until) {
  TransferGround ground;
  ground.to = *Area::Parse(to);
  ground.mechanism = mechanism;
  ground.valid_until = until;
  return ground;
}

inline std::shared_ptr<const Facts> World() {
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
  return std::make_shared<const Facts>(std::move(facts));
}

}  // namespace domicile::policy

// What facts forbid whatever is stated, and which documents the law asks for.
#include <algorithm>

#include "policy/engine/fold.h"
#include "policy/engine/internal/evaluation.h"

namespace domicile::policy::internal {
namespace {

bool NeedsDpia(Regime regime) {
  switch (regime) {
    case Regime::kEuGdpr:
    case Regime::kUkGdpr:
    case Regime::kChFadp:
    case Regime::kEuEhds:
      return true;
    case Regime::kNone:
    case Regime::kUsHipaa:
    case Regime::kUsDoj202:
    case Regime::kCnPipl:
    case Regime::kRu152Fz:
    case Regime::kInDpdp:
    case Regime::kBrLgpd:
    case Regime::kCaQc25:
    case Regime::kAuApp8:
    case Regime::kSaPdpl:
    case Regime::kEuAiAct:
      return false;
  }
  return false;
}

bool Names(const Fact& threshold, Category category) {
  return threshold.categories.empty() || threshold.categories.contains(category);
}

}  // namespace

// Few people are no bulk: a country of concern is one only from a threshold on, if the facts say so
// for every category of the dataset. What is not known counts as enough.
bool Evaluation::IsConcernLifted(Regime regime, const DatasetTraits& traits) {
  const Facts& facts = effective_.LegalFacts();
  if (transfer_.now >= facts.expires || traits.categories.empty()) {
    return false;
  }
  std::set<Category> named;
  for (const Fact* fact : law_.at(regime).thresholds) {
    if (!fact->mechanisms.empty() || !fact->HoldsAt(transfer_.now)) {
      continue;
    }
    for (const Category category : traits.categories) {
      if (!Names(*fact, category)) {
        continue;
      }
      if (MayReach(traits.subjects_count, fact->at_least)) {
        return false;
      }
      named.insert(category);
    }
  }
  return named == traits.categories;
}

void Evaluation::CheckConcern(const Party& to) {
  const StatusOr<Jurisdiction> from = Jurisdiction::Parse(transfer_.from.jurisdiction);
  if (!from.ok()) {
    return;  // noted elsewhere
  }
  for (const auto& [regime, law] : law_) {
    const bool applies =
        !law.concerns.empty() && std::any_of(terms_.traits.begin(), terms_.traits.end(),
                                             [this, regime = regime](const auto& clause) {
                                               return clause.value.regimes.contains(regime) &&
                                                      !IsConcernLifted(regime, clause.value);
                                             });
    for (const Fact* fact : law.concerns) {
      const bool holds = transfer_.now >= fact->from_date &&
                         !(fact->until_date && transfer_.now >= *fact->until_date);
      if (applies && holds && coverage_.Any(fact->from, *from, nullptr) != Cover::kNo) {
        DenyConcern(*fact, to);
      }
    }
  }
}

void Evaluation::DenyConcern(const Fact& fact, const Party& to) {
  const auto deny = [&](const std::string& text) {
    const StatusOr<Jurisdiction> place = Jurisdiction::Parse(text);
    if (!place.ok() || coverage_.Any(fact.to, *place, nullptr) == Cover::kNo) {
      return;
    }
    if (std::set<std::string>* used = Used()) {
      used->insert(fact.id);
    }
    Deny(
        Reason::kForbidden, {},
        [&] {
          return Who(to) + " is at or controlled from `" + text + "`, a country of concern under " +
                 std::string(Code(fact.regime)) + " (fact " + fact.id + ")";
        },
        "choose another receiver");
  };
  std::for_each(to.control.begin(), to.control.end(), deny);
  deny(to.jurisdiction);
}

struct Evaluation::WantedDocument {
  std::optional<WallTime> DatasetTraits::*until;
  std::string_view key;
  std::string_view what;  // "the impact assessment"
  std::string_view why;   // "special categories under a law that asks for an impact assessment"
};

void Evaluation::WantDocument(const WantedDocument& wanted) {
  for (const auto& clause : terms_.traits) {
    Bear(clause);
    const std::optional<WallTime>& until = clause.value.*wanted.until;
    if (!until) {
      Deny(
          Reason::kDocumentMissing, clause.origin,
          [&] {
            return std::string(wanted.why) + ", and " + std::string(wanted.key) + " is missing";
          },
          [&] {
            return "name " + std::string(wanted.what) + " in " + std::string(wanted.key) +
                   " of the " + policy::Print(clause.origin);
          });
    } else if (transfer_.now >= *until) {
      Deny(
          Reason::kDocumentExpired, clause.origin,
          [&] { return std::string(wanted.what) + " was valid until " + PrintTime(*until); },
          [&] {
            return "review it and renew " + std::string(wanted.key) + " in the " +
                   policy::Print(clause.origin);
          });
    }
  }
}

void Evaluation::CheckDocuments() {
  std::set<Regime> regimes;
  bool is_special = false;
  bool is_phi = false;
  for (const auto& clause : terms_.traits) {
    regimes.insert(clause.value.regimes.begin(), clause.value.regimes.end());
    is_special = is_special || clause.value.is_special;
    is_phi = is_phi ||
             (clause.value.regimes.contains(Regime::kUsHipaa) && !clause.value.is_deidentified);
  }
  if (is_special && std::any_of(regimes.begin(), regimes.end(), NeedsDpia)) {
    WantDocument({.until = &DatasetTraits::dpia,
                  .key = "refs.dpia",
                  .what = "the impact assessment",
                  .why = "special categories under a law that asks for an impact assessment"});
  }
  if (regimes.contains(Regime::kEuEhds)) {
    WantDocument({.until = &DatasetTraits::permit,
                  .key = "refs.permit",
                  .what = "the data permit",
                  .why = "eu-ehds asks for a data permit"});
  }
  const bool leaves_entity =
      transfer_.to.organisation.empty() || transfer_.to.organisation != transfer_.from.organisation;
  if (is_phi && leaves_entity) {
    WantDocument({.until = &DatasetTraits::baa,
                  .key = "refs.baa",
                  .what = "the business associate agreement",
                  .why = "us-hipaa asks for an agreement with who gets the data"});
  }
}

}  // namespace domicile::policy::internal

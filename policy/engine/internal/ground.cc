// The legal ground of borders: facts of the law, and mechanisms that the exporter states.
#include <algorithm>

#include "policy/engine/fold.h"
#include "policy/engine/internal/evaluation.h"

namespace domicile::policy::internal {
namespace {

// What one regime says about one border.
struct Ground {
  bool by_fact = false;  // free flow, or an adequacy decision that is relied on: readable may pass
  bool by_document = false;   // clauses, rules, certification: not for readable contributions
  bool has_adequacy = false;  // a decision for all is in force, but no rule relies on it
  bool has_expired_fact = false;
  bool has_expired_document = false;
  bool is_unknown = false;  // a bloc could not be told
  Origin origin;
};

class BorderReader {
 public:
  BorderReader(const Facts& facts, const Jurisdiction& from, const Jurisdiction& to,
               const std::string& importer, WallTime now, std::set<std::string>& used)
      : facts_(facts), from_(from), to_(to), importer_(importer), now_(now), used_(used) {}

  // Whether leaving `from` for `to` is an export under the regime. Without a fact that says where
  // the regime holds, it is.
  bool IsExport(Regime regime) const {
    const bool leaves_country = from_.Country() != to_.Country();
    bool known = false;
    bool inside = false;
    bool stays = false;
    for (const Fact& fact : facts_.facts) {
      if (fact.kind != FactKind::kTerritory || fact.regime != regime || !fact.HoldsAt(now_)) {
        continue;
      }
      known = true;
      used_.insert(fact.id);
      inside = inside || AnyCovers(fact.from, from_, facts_, now_, nullptr) != Cover::kNo;
      stays = stays || AnyCovers(fact.from, to_, facts_, now_, nullptr) == Cover::kYes;
    }
    if (!known || now_ >= facts_.expires) {
      return leaves_country;
    }
    return inside && (leaves_country || !stays);
  }

  Ground Find(Regime regime, const Clause<std::set<TransferGround>>& stated) const {
    Ground ground;
    ground.origin = stated.origin;
    for (const Fact& fact : facts_.facts) {
      if (fact.regime == regime &&
          (fact.kind == FactKind::kFreeFlow || fact.kind == FactKind::kAdequacy)) {
        ApplyFact(fact, stated.value, ground);
      }
    }
    ApplyDocuments(stated.value, ground);
    return ground;
  }

  // A mechanism by document, where no regime of the dataset holds at the exporter.
  Ground FindDocument(const Clause<std::set<TransferGround>>& stated) const {
    Ground ground;
    ground.origin = stated.origin;
    ApplyDocuments(stated.value, ground);
    return ground;
  }

 private:
  // The entry is the rule to show.
  static void Point(Ground& ground, const TransferGround& entry) {
    ground.origin.rule =
        "transfer to " + entry.to.text() + " by " + std::string(Code(entry.mechanism));
    ground.origin.line = entry.line;
  }

  bool Fits(const TransferGround& entry, Ground& ground) const {
    const Cover cover = Covers(entry.to, to_, facts_, now_, &used_);
    ground.is_unknown = ground.is_unknown || cover == Cover::kUnknown;
    if (cover != Cover::kYes || (!entry.importer.empty() && entry.importer != importer_)) {
      return false;
    }
    if (entry.valid_until && now_ >= *entry.valid_until) {
      ground.has_expired_document = true;
      return false;
    }
    return true;
  }

  bool ReliesOnAdequacy(const std::set<TransferGround>& stated) const {
    return std::any_of(stated.begin(), stated.end(), [this](const TransferGround& entry) {
      return entry.mechanism == Mechanism::kAdequacy &&
             Covers(entry.to, to_, facts_, now_, nullptr) != Cover::kNo;
    });
  }

  void ApplyFact(const Fact& fact, const std::set<TransferGround>& stated, Ground& ground) const {
    const Cover from = AnyCovers(fact.from, from_, facts_, now_, &used_);
    const Cover to = AnyCovers(fact.to, to_, facts_, now_, &used_);
    if (from == Cover::kNo || to == Cover::kNo) {
      return;
    }
    if (from == Cover::kUnknown || to == Cover::kUnknown) {
      ground.is_unknown = true;
      return;
    }
    if (now_ < fact.from_date) {
      return;  // decided, but not yet law
    }
    if (!fact.HoldsAt(now_) || now_ >= facts_.expires) {
      // A decision that fell matters to who relied on it.
      used_.insert(fact.id);
      ground.has_expired_fact =
          ground.has_expired_fact || fact.kind == FactKind::kFreeFlow || ReliesOnAdequacy(stated);
      return;
    }
    if (fact.kind == FactKind::kFreeFlow) {
      used_.insert(fact.id);
      ground.by_fact = true;
      return;
    }
    ground.has_adequacy = ground.has_adequacy || fact.scope.empty();
    for (const TransferGround& entry : stated) {
      // A decision for certified importers only helps an importer that is named.
      const bool in_scope = fact.scope.empty() || !entry.importer.empty();
      if (entry.mechanism == Mechanism::kAdequacy && in_scope && Fits(entry, ground)) {
        used_.insert(fact.id);
        ground.by_fact = true;
        Point(ground, entry);
      }
    }
  }

  void ApplyDocuments(const std::set<TransferGround>& stated, Ground& ground) const {
    for (const TransferGround& entry : stated) {
      if (entry.mechanism != Mechanism::kAdequacy && Fits(entry, ground)) {
        ground.by_document = true;
        if (!ground.by_fact) {
          Point(ground, entry);
        }
      }
    }
  }

  const Facts& facts_;
  const Jurisdiction& from_;
  const Jurisdiction& to_;
  const std::string& importer_;
  WallTime now_;
  std::set<std::string>& used_;
};

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

// Why the ground does not carry the border; kPermitted if it does.
Reason WhyNot(const Ground& ground, bool readable) {
  if (ground.by_fact || (ground.by_document && !readable)) {
    return Reason::kPermitted;
  }
  if (ground.has_expired_fact) {
    return Reason::kFactExpired;
  }
  if (ground.is_unknown) {
    return Reason::kFactMissing;
  }
  if (readable && !ground.has_adequacy) {
    return Reason::kEdpbUseCase6;
  }
  if (ground.has_expired_document) {
    return Reason::kDocumentExpired;
  }
  return readable && ground.by_document ? Reason::kEdpbUseCase6 : Reason::kNoTransferMechanism;
}

std::string RemedyFor(Reason reason, const std::string& border, const Origin& origin) {
  if (reason == Reason::kEdpbUseCase6) {
    return "use secure aggregation, so that no single contribution is readable there, or relocate "
           "the aggregator to a place that " +
           std::string("needs no mechanism or has an adequacy decision");
  }
  if (reason == Reason::kFactExpired || reason == Reason::kFactMissing) {
    return "have counsel check the legal facts for " + border;
  }
  return "state a mechanism for " + border + " in a [[rule.transfer]] of the " +
         policy::Print(origin);
}

}  // namespace

void Evaluation::CheckConcern(const Party& to) {
  const StatusOr<Jurisdiction> from = Jurisdiction::Parse(transfer_.from.jurisdiction);
  if (!from.ok()) {
    return;  // noted elsewhere
  }
  std::vector<std::string> places = to.control;
  places.push_back(to.jurisdiction);
  const std::set<Regime> regimes = Union(terms_.regimes);
  for (const Fact& fact : effective_.LegalFacts().facts) {
    if (fact.kind != FactKind::kCountryOfConcern || !regimes.contains(fact.regime) ||
        transfer_.now < fact.from_date ||
        AnyCovers(fact.from, *from, effective_.LegalFacts(), transfer_.now, nullptr) ==
            Cover::kNo) {
      continue;
    }
    for (const std::string& text : places) {
      const StatusOr<Jurisdiction> place = Jurisdiction::Parse(text);
      if (place.ok() &&
          AnyCovers(fact.to, *place, effective_.LegalFacts(), transfer_.now, nullptr) !=
              Cover::kNo &&
          !(fact.until_date && transfer_.now >= *fact.until_date)) {
        used_facts_.insert(fact.id);
        Deny(Reason::kForbidden, {},
             Who(to) + " is at or controlled from `" + text + "`, a country of concern under " +
                 std::string(Code(fact.regime)) + " (fact " + fact.id + ")",
             "choose another receiver");
      }
    }
  }
}

void Evaluation::CheckDocuments() {
  const std::set<Regime> regimes = Union(terms_.regimes);
  const bool is_special = Greatest(terms_.special_category).value_or(true);
  if (!is_special || std::none_of(regimes.begin(), regimes.end(), NeedsDpia)) {
    return;
  }
  for (const auto& clause : terms_.dpia_valid_until) {
    Bear(clause.origin);
    if (!clause.value) {
      Deny(Reason::kDocumentMissing, clause.origin,
           "special categories under a law that asks for an impact assessment, and refs.dpia is "
           "missing",
           "name the assessment in refs.dpia of the " + policy::Print(clause.origin));
    } else if (transfer_.now >= *clause.value) {
      Deny(Reason::kDocumentExpired, clause.origin,
           "the impact assessment was valid until " + PrintTime(*clause.value),
           "review the assessment and renew refs.dpia in the " + policy::Print(clause.origin));
    }
  }
}

void Evaluation::CheckBorder(const Jurisdiction& from, const Party& to, bool readable) {
  const StatusOr<Jurisdiction> place = Jurisdiction::Parse(to.jurisdiction);
  if (!place.ok()) {
    return;  // noted elsewhere
  }
  const BorderReader reader(effective_.LegalFacts(), from, *place, to.organisation, transfer_.now,
                            used_facts_);
  const std::string border = "`" + from.text() + "` to `" + place->text() + "`";
  const auto conclude = [&](const Ground& ground, std::string_view law) {
    Bear(ground.origin);
    const Reason reason = WhyNot(ground, readable);
    if (reason != Reason::kPermitted) {
      Deny(reason, ground.origin,
           Who(to) + ": no " + (readable ? "adequate " : "") + "legal ground for " + border +
               " under " + std::string(law),
           RemedyFor(reason, border, ground.origin));
    }
  };
  // INVARIANT: each clause makes its own demands, so that one more policy can only add some. A
  // regime that a second policy names must not satisfy what the first one's regimes leave open.
  for (const auto& law : terms_.regimes) {
    const bool is_export =
        std::any_of(law.value.begin(), law.value.end(),
                    [&reader](Regime regime) { return reader.IsExport(regime); });
    for (const auto& stated : terms_.grounds) {
      for (const Regime regime : law.value) {
        if (reader.IsExport(regime)) {
          conclude(reader.Find(regime, stated), Code(regime));
        }
      }
      // None of the dataset's laws holds where the bytes are: then a document must carry the
      // border.
      if (!is_export && from.Country() != place->Country()) {
        conclude(reader.FindDocument(stated), "any law named for the dataset");
      }
    }
  }
}

void Evaluation::CheckBorders() {
  const StatusOr<Jurisdiction> from = Jurisdiction::Parse(transfer_.from.jurisdiction);
  if (!from.ok()) {
    return;  // noted elsewhere
  }
  const bool readable = !IsModel() && transfer_.view == View::kPlaintextIndividual;
  CheckBorder(*from, transfer_.to, readable);
  if (transfer_.via) {
    if (const auto via = Jurisdiction::Parse(transfer_.via->jurisdiction); via.ok()) {
      CheckBorder(*via, transfer_.to, readable);
    }
  }
  if (!IsContribution()) {
    return;
  }
  // The way back of the model, known before anything is computed.
  const StatusOr<Jurisdiction> hub = Jurisdiction::Parse(transfer_.to.jurisdiction);
  for (const Party& party : transfer_.recipients) {
    CheckBorder(*from, party, false);
    if (hub.ok()) {
      CheckBorder(*hub, party, false);
    }
  }
}

}  // namespace domicile::policy::internal

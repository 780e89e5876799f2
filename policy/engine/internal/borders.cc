// The borders that a transfer crosses, each of which needs a legal ground.
#include <algorithm>

#include "policy/engine/fold.h"
#include "policy/engine/internal/evaluation.h"
#include "policy/engine/internal/ground.h"

namespace domicile::policy::internal {

struct Evaluation::Border {
  BorderView view;
  const Party& party;
  bool readable = false;
  std::string Text() const { return "`" + view.from.text() + "` to `" + view.to.text() + "`"; }
};

namespace {

// Where a safeguard of Art. 46 or its equivalents wants a transfer impact assessment beside it.
bool WantsTia(Regime regime) {
  return regime == Regime::kEuGdpr || regime == Regime::kUkGdpr || regime == Regime::kChFadp;
}

bool IsPerson(const Party& party) {
  return party.role == PartyRole::kOperator || party.role == PartyRole::kAuditor;
}

// EDPB Recommendations 01/2020, use cases 6 and 7: clear data in the hands of a recipient, or
// looked at from afar.
Reason Readable(const Party& party) {
  return IsPerson(party) ? Reason::kEdpbUseCase7 : Reason::kEdpbUseCase6;
}

// Whether the documents carry the border, with the assessment that the regime wants.
Reason CheckDocumentGround(const Ground& ground, const DatasetTraits& traits, Regime regime,
                           WallTime now) {
  if (ground.by_document || (ground.by_safeguard && !WantsTia(regime))) {
    return Reason::kPermitted;
  }
  if (!ground.by_safeguard) {
    return Reason::kNoTransferMechanism;
  }
  if (!traits.tia) {
    return Reason::kDocumentMissing;
  }
  return now >= *traits.tia ? Reason::kDocumentExpired : Reason::kPermitted;
}

// Why the ground does not carry the border; kPermitted if it does.
Reason WhyNot(const Ground& ground, Reason documents, bool readable, const Party& party) {
  if (ground.by_fact || (!readable && documents != Reason::kNoTransferMechanism)) {
    return ground.by_fact ? Reason::kPermitted : documents;
  }
  if (ground.has_expired_fact) {
    return Reason::kFactExpired;
  }
  if (ground.is_unknown) {
    return Reason::kFactMissing;
  }
  if (ground.is_over_threshold) {
    return Reason::kSubjectsThreshold;
  }
  if (readable && !ground.has_adequacy) {
    return Readable(party);
  }
  if (ground.has_expired_document) {
    return Reason::kDocumentExpired;
  }
  if (readable && documents != Reason::kNoTransferMechanism) {
    return Readable(party);
  }
  return ground.has_derogation ? Reason::kDerogation : Reason::kNoTransferMechanism;
}

std::string RemedyFor(Reason reason, const std::string& border, const Ground& ground) {
  switch (reason) {
    case Reason::kEdpbUseCase6:
      return "use secure aggregation, so that no single contribution is readable there, or "
             "relocate the aggregator to a place that needs no mechanism or has an adequacy "
             "decision";
    case Reason::kEdpbUseCase7:
      return "show that person sums only (secure aggregation), or have them look from a place that "
             "needs no mechanism or has an adequacy decision";
    case Reason::kFactExpired:
    case Reason::kFactMissing:
      return "have counsel check the legal facts for " + border;
    case Reason::kDocumentMissing:
      return "name a transfer impact assessment in refs.tia of the " + policy::Print(ground.origin);
    case Reason::kSubjectsThreshold:
      return "state one of the mechanisms that the legal facts ask for from so many people on, in "
             "a [[rule.transfer]] for " +
             border;
    case Reason::kDerogation:
      return "state a mechanism that repeats for " + border +
             "; a derogation counts only where every policy says allow.derogations = true";
    default:  // of the closed list, the rest wants a mechanism
      return "state a mechanism for " + border + " in a [[rule.transfer]] of the " +
             policy::Print(ground.origin);
  }
}

// Use case 5 if nobody can take the sum apart, 6 or 7 if single contributions are in the clear; a
// model, and what moves freely or by an adequacy decision, is none.
int UseCaseOf(const Transfer& transfer, const Party& party, const Ground& ground, bool readable) {
  if (ground.by_fact) {
    return 0;
  }
  if (readable) {
    return IsPerson(party) ? 7 : 6;
  }
  const bool is_sum =
      party.role == PartyRole::kAggregator && transfer.view != View::kPlaintextIndividual;
  return is_sum ? 5 : 0;
}

}  // namespace

void Evaluation::Conclude(const Border& border, const Clause<DatasetTraits>& traits,
                          const Clause<std::set<TransferGround>>& stated, Regime regime) {
  const BorderView& view = border.view;
  const Ground ground = regime == Regime::kNone
                            ? FindDocumentGround(view, stated)
                            : FindGround(view, law_.at(regime), traits.value, stated);
  Bear(ground.origin);
  const Reason documents = CheckDocumentGround(ground, traits.value, regime, transfer_.now);
  const Reason reason = WhyNot(ground, documents, border.readable, border.party);
  if (detail_ == Detail::kReasons && view.LeavesCountry()) {
    crossings_.push_back(
        {.who = Who(border.party),
         .from = view.from.text(),
         .to = view.to.text(),
         .law = regime == Regime::kNone ? "" : std::string(Code(regime)),
         .ground = reason == Reason::kPermitted ? ground.text : "",
         .edpb_use_case = UseCaseOf(transfer_, border.party, ground, border.readable)});
  }
  if (reason != Reason::kPermitted) {
    Deny(
        reason, ground.origin,
        [&] {
          return Who(border.party) + ": no " + (border.readable ? "adequate " : "") +
                 "legal ground for " + border.Text() + " under " +
                 (regime == Regime::kNone ? "any law named for the dataset"
                                          : std::string(Code(regime)));
        },
        [&] { return RemedyFor(reason, border.Text(), ground); });
  }
}

// A list of the law forbids a destination, whatever is stated.
void Evaluation::CheckNegativeLists(const Border& border) {
  const BorderView& view = border.view;
  for (const auto& [regime, law] : law_) {
    for (const Fact* fact : law.negative_lists) {
      const bool holds =
          view.now() >= fact->from_date && !(fact->until_date && view.now() >= *fact->until_date);
      if (!holds || view.coverage.Any(fact->from, view.from, view.used) == Cover::kNo ||
          view.coverage.Any(fact->to, view.to, view.used) == Cover::kNo) {
        continue;
      }
      if (view.used != nullptr) {
        view.used->insert(fact->id);
      }
      Deny(
          Reason::kNegativeList, {},
          [&, regime = regime] {
            return Who(border.party) + ": " + border.Text() + " is forbidden under " +
                   std::string(Code(regime)) + " (fact " + fact->id + ")";
          },
          "choose a receiver elsewhere");
    }
  }
}

void Evaluation::CheckBorder(const Jurisdiction& from, const Party& to, bool readable) {
  const StatusOr<Jurisdiction> place = Jurisdiction::Parse(to.jurisdiction);
  if (!place.ok()) {
    return;  // noted elsewhere
  }
  const Border border{.view = {.coverage = coverage_,
                               .from = from,
                               .to = *place,
                               .importer = to.organisation,
                               .derogations_count = Least(terms_.derogations).value_or(false),
                               .used = Used()},
                      .party = to,
                      .readable = readable};
  CheckNegativeLists(border);
  // INVARIANT: each clause makes its own demands, so that one more policy can only add some. A
  // regime that a second policy names must not satisfy what the first one's regimes leave open.
  for (const auto& traits : terms_.traits) {
    bool is_export = false;
    for (const Regime regime : traits.value.regimes) {
      if (!border.view.IsExport(law_.at(regime))) {
        continue;
      }
      is_export = true;
      for (const auto& stated : terms_.grounds) {
        Conclude(border, traits, stated, regime);
      }
    }
    // None of the dataset's laws holds where the bytes are: then a document must carry the border.
    if (!is_export && border.view.LeavesCountry()) {
      for (const auto& stated : terms_.grounds) {
        Conclude(border, traits, stated, Regime::kNone);
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

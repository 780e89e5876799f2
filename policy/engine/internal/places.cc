// Who receives, where they are, and from where they are controlled.
#include <algorithm>

#include "base/ids.h"
#include "policy/engine/internal/evaluation.h"

namespace domicile::policy::internal {
namespace {

// Whether an area and a place share ground. Wider than "covers": something in `US` may be in the
// denied `US-CA`, and a deny rule must not miss it.
Cover Overlaps(const Area& area, const Jurisdiction& place, Coverage& coverage,
               std::set<std::string>* used) {
  if (!area.IsBloc() && place.Covers(area.Place())) {
    return Cover::kYes;
  }
  return coverage.Of(area, place, used);
}

}  // namespace

std::string Print(const std::set<Area>& areas) {
  std::string text;
  for (const Area& area : areas) {
    text += (text.empty() ? "`" : ", `") + area.text() + "`";
  }
  return "[" + text + "]";
}

std::string Print(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "`" : ", `") + name + "`";
  }
  return "[" + text + "]";
}

std::string Who(const Party& party) {
  std::string text(Code(party.role));
  if (SiteId::Parse(party.id).ok()) {
    text += " `" + party.id + "`";
  }
  return text;
}

std::string ShowPlace(const std::string& text) {
  if (text.empty()) {
    return "an unset place";
  }
  return Jurisdiction::Parse(text).ok() ? "`" + text + "`" : "an unreadable place";
}

bool Stands(const std::string& token, const Party& party) {
  switch (party.role) {
    case PartyRole::kSite:
      return token == "sites" || (token != "operator" && token == party.id);
    case PartyRole::kOperator:
      return token == "operator" || token == "operator/" + party.id;
    case PartyRole::kNone:
    case PartyRole::kAggregator:
    case PartyRole::kAuditor:
      return false;
  }
  return false;
}

Reason Evaluation::UnknownFact() const {
  return transfer_.now >= effective_.LegalFacts().expires ? Reason::kFactExpired
                                                          : Reason::kFactMissing;
}

std::optional<Place> Evaluation::ReadPlace(const Party& party) {
  Place place;
  StatusOr<Jurisdiction> at = Jurisdiction::Parse(party.jurisdiction);
  if (!at.ok()) {
    Deny(
        Reason::kLocation, {},
        [&] { return Who(party) + " is at " + ShowPlace(party.jurisdiction); },
        [&] { return "correct the place in the roster: " + JurisdictionHint(party.jurisdiction); });
    return std::nullopt;
  }
  place.at = *std::move(at);
  if (party.control.empty()) {
    Deny(
        Reason::kControl, {},
        [&] { return "nobody says from where " + Who(party) + " is controlled"; },
        "list its control jurisdictions in the roster");
    return std::nullopt;
  }
  for (const std::string& text : party.control) {
    StatusOr<Jurisdiction> from = Jurisdiction::Parse(text);
    if (!from.ok()) {
      Deny(
          Reason::kControl, {},
          [&] { return Who(party) + " is controlled from " + ShowPlace(text); },
          "correct the control jurisdictions in the roster");
      return std::nullopt;
    }
    place.control.push_back(*std::move(from));
  }
  return place;
}

void Evaluation::WantInside(const Clauses<std::set<Area>>& clauses, const Jurisdiction& place,
                            std::string_view key, const Party& party, std::string_view relation,
                            Reason reason) {
  for (const auto& clause : clauses) {
    Bear(clause);
    const Cover cover = coverage_.Any(clause.value, place, Used());
    if (cover == Cover::kYes) {
      continue;
    }
    Deny(
        cover == Cover::kUnknown ? UnknownFact() : reason, clause.origin,
        [&] {
          return Who(party) + std::string(relation) + "`" + place.text() + "` is not in " +
                 std::string(key) + " " + internal::Print(clause.value);
        },
        [&] {
          return "add `" + place.text() + "` to " + std::string(key) + " in " +
                 policy::Print(clause.origin) + ", or choose a receiver inside it";
        });
  }
}

void Evaluation::DenyOverlap(const Clauses<std::set<Area>>& clauses, const Jurisdiction& place,
                             std::string_view key, const Party& party, std::string_view relation) {
  for (const auto& clause : clauses) {
    for (const Area& area : clause.value) {
      const Cover cover = Overlaps(area, place, coverage_, Used());
      if (cover == Cover::kNo) {
        continue;
      }
      Deny(
          cover == Cover::kYes ? Reason::kForbidden : UnknownFact(), clause.origin,
          [&] {
            return Who(party) + std::string(relation) + "`" + place.text() + "` is denied by " +
                   std::string(key) + " `" + area.text() + "`";
          },
          [&] {
            return "only removing it from " + policy::Print(clause.origin) + " would allow it";
          });
    }
  }
}

void Evaluation::DenyParty(const Party& party, bool gets_model) {
  if (const StatusOr<Jurisdiction> at = Jurisdiction::Parse(party.jurisdiction); at.ok()) {
    DenyOverlap(terms_.deny_locations, *at, "deny.locations", party, " at ");
  }
  if (!terms_.deny_control.empty()) {
    for (const std::string& text : party.control) {
      if (const StatusOr<Jurisdiction> from = Jurisdiction::Parse(text); from.ok()) {
        DenyOverlap(terms_.deny_control, *from, "deny.control", party, " controlled from ");
      }
    }
  }
  CheckConcern(party);
  for (const auto& clause : terms_.deny_recipients) {
    for (const std::string& token : clause.value) {
      if (gets_model && Stands(token, party)) {
        Deny(
            Reason::kForbidden, clause.origin,
            [&] { return Who(party) + " is denied by deny.recipients `" + token + "`"; },
            [&] {
              return "only removing it from " + policy::Print(clause.origin) + " would allow it";
            });
      }
    }
  }
}

void Evaluation::CheckDenyRules() {
  DenyParty(transfer_.to, IsModel() || transfer_.point == DecisionPoint::kView);
  if (transfer_.via) {
    DenyParty(*transfer_.via, false);
  }
  for (const Party& relay : transfer_.transit) {
    DenyParty(relay, false);
  }
  if (IsContribution()) {
    for (const Party& party : transfer_.recipients) {
      DenyParty(party, true);
    }
  }
  for (const auto& clause : terms_.deny_update_kinds) {
    for (const UpdateKind kind : transfer_.kinds) {
      if (clause.value.contains(kind)) {
        Deny(
            Reason::kForbidden, clause.origin,
            [&] { return "`" + std::string(Code(kind)) + "` is denied by deny.update_kinds"; },
            [&] {
              return "only removing it from " + policy::Print(clause.origin) + " would allow it";
            });
      }
    }
  }
  for (const auto& clause : terms_.deny_purposes) {
    Bear(clause);
    if (clause.value.contains(transfer_.purpose)) {
      Deny(
          Reason::kPurposeProhibited, clause.origin,
          [&] {
            return "`" + std::string(Code(transfer_.purpose)) + "` is denied by deny.purposes";
          },
          [&] {
            return "only removing it from " + policy::Print(clause.origin) + " would allow it";
          });
    }
  }
}

// Whether the party is among those who may get models and metrics.
void Evaluation::CheckNamed(const Party& party) {
  for (const auto& clause : terms_.recipients) {
    Bear(clause);
    const bool stands =
        std::any_of(clause.value.begin(), clause.value.end(),
                    [&party](const std::string& token) { return Stands(token, party); });
    if (!stands) {
      Deny(
          Reason::kRecipient, clause.origin,
          [&] {
            return Who(party) + " is not in allow.recipients " + internal::Print(clause.value);
          },
          [&] {
            return "add it to allow.recipients in " + policy::Print(clause.origin) +
                   ", or take it out of the plan's recipients";
          });
    }
  }
}

void Evaluation::CheckModelReceiver(const Party& party) {
  const std::optional<Place> place = ReadPlace(party);
  if (!place) {
    return;
  }
  WantInside(terms_.model_recipients, place->at, "model.recipients", party, " at ",
             Reason::kLocation);
  // Whoever controls the receiver can have the model: a rule on places alone would be none.
  for (const Jurisdiction& from : place->control) {
    WantInside(terms_.model_recipients, from, "model.recipients", party, " controlled from ",
               Reason::kControl);
  }
  CheckNamed(party);
}

void Evaluation::CheckReceiver() {
  if (transfer_.via) {
    (void)ReadPlace(*transfer_.via);  // notes what cannot be read
  }
  if (IsModel()) {
    CheckModelReceiver(transfer_.to);
    return;
  }
  const std::optional<Place> place = ReadPlace(transfer_.to);
  if (!place) {
    return;
  }
  WantInside(terms_.aggregator_locations, place->at, "allow.aggregator_locations", transfer_.to,
             " at ", Reason::kLocation);
  for (const Jurisdiction& from : place->control) {
    WantInside(terms_.aggregator_control, from, "allow.aggregator_control", transfer_.to,
               " controlled from ", Reason::kControl);
  }
  if (transfer_.point == DecisionPoint::kView) {
    CheckNamed(transfer_.to);
  }
}

// Sealed bytes pass through them: they need no legal ground, but may stand only where a rule says.
void Evaluation::CheckTransit() {
  for (const Party& relay : transfer_.transit) {
    const std::optional<Place> place = ReadPlace(relay);
    if (!place) {
      continue;
    }
    WantInside(terms_.transit, place->at, "allow.transit", relay, " at ", Reason::kTransit);
    if (detail_ == Detail::kReasons &&
        place->at.Country() != std::string_view(transfer_.from.jurisdiction).substr(0, 2)) {
      crossings_.push_back({.who = Who(relay),
                            .from = ShowPlace(transfer_.from.jurisdiction),
                            .to = ShowPlace(relay.jurisdiction),
                            .law = "",
                            .ground = "sealed in transit",
                            .edpb_use_case = 3});
    }
  }
}

void Evaluation::WantEvidence(const Party& party, const Clauses<LocationEvidence>& clauses,
                              std::string_view key) {
  for (const auto& clause : clauses) {
    Bear(clause);
    if (party.evidence >= clause.value) {
      continue;
    }
    Deny(
        Reason::kLocationEvidence, clause.origin,
        [&] {
          return "the place of " + Who(party) + " is " +
                 (party.evidence == LocationEvidence::kUnset
                      ? "known from nothing"
                      : "only `" + std::string(Code(party.evidence)) + "`") +
                 ", less than " + std::string(key) + " = `" + std::string(Code(clause.value)) + "`";
        },
        [&] {
          return "have the place proved, or lower " + std::string(key) + " in " +
                 policy::Print(clause.origin);
        });
  }
}

void Evaluation::CheckEvidence() {
  WantEvidence(transfer_.from, terms_.site_evidence, "site.location_evidence");
  WantEvidence(transfer_.to, terms_.evidence, "require.evidence");
  if (transfer_.via) {
    WantEvidence(*transfer_.via, terms_.evidence, "require.evidence");
  }
  if (IsContribution()) {
    for (const Party& party : transfer_.recipients) {
      WantEvidence(party, terms_.evidence, "require.evidence");
    }
  }
}

void Evaluation::CheckRecipients() {
  if (!IsContribution()) {
    return;
  }
  const bool is_wanted =
      transfer_.point == DecisionPoint::kOffer || transfer_.point == DecisionPoint::kDataOpen;
  if (is_wanted && transfer_.recipients.empty()) {
    Deny(Reason::kRecipient, {}, "the request names nobody who will get the models",
         "list every party that the plan's recipients stand for");
  }
  for (const Party& party : transfer_.recipients) {
    CheckModelReceiver(party);
  }
}

}  // namespace domicile::policy::internal

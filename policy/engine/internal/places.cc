// Who receives, where they are, and from where they are controlled.
#include <algorithm>

#include "base/ids.h"
#include "policy/engine/internal/evaluation.h"

namespace domicile::policy::internal {
namespace {

// Whether an area and a place share ground. Wider than "covers": something in `US` may be in the
// denied `US-CA`, and a deny rule must not miss it.
Cover Overlaps(const Area& area, const Jurisdiction& place, const Facts& facts, WallTime now,
               std::set<std::string>& used) {
  if (!area.IsBloc() && place.Covers(area.Place())) {
    return Cover::kYes;
  }
  return Covers(area, place, facts, now, &used);
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
  const StatusOr<Jurisdiction> at = Jurisdiction::Parse(party.jurisdiction);
  if (!at.ok()) {
    Deny(Reason::kLocation, {}, Who(party) + " is at " + ShowPlace(party.jurisdiction),
         "correct the place in the roster: " + JurisdictionHint(party.jurisdiction));
    return std::nullopt;
  }
  place.at = *at;
  if (party.control.empty()) {
    Deny(Reason::kControl, {}, "nobody says from where " + Who(party) + " is controlled",
         "list its control jurisdictions in the roster");
    return std::nullopt;
  }
  for (const std::string& text : party.control) {
    const StatusOr<Jurisdiction> from = Jurisdiction::Parse(text);
    if (!from.ok()) {
      Deny(Reason::kControl, {}, Who(party) + " is controlled from " + ShowPlace(text),
           "correct the control jurisdictions in the roster");
      return std::nullopt;
    }
    place.control.push_back(*from);
  }
  return place;
}

void Evaluation::WantInside(const Clauses<std::set<Area>>& clauses, const Jurisdiction& place,
                            std::string_view key, const std::string& who, Reason reason) {
  for (const auto& clause : clauses) {
    Bear(clause.origin);
    const Cover cover =
        AnyCovers(clause.value, place, effective_.LegalFacts(), transfer_.now, &used_facts_);
    if (cover == Cover::kYes) {
      continue;
    }
    Deny(cover == Cover::kUnknown ? UnknownFact() : reason, clause.origin,
         who + " `" + place.text() + "` is not in " + std::string(key) + " " +
             internal::Print(clause.value),
         "add `" + place.text() + "` to " + std::string(key) + " in " +
             policy::Print(clause.origin) + ", or choose a receiver inside it");
  }
}

void Evaluation::DenyOverlap(const Clauses<std::set<Area>>& clauses, const Jurisdiction& place,
                             std::string_view key, const std::string& who) {
  for (const auto& clause : clauses) {
    for (const Area& area : clause.value) {
      const Cover cover =
          Overlaps(area, place, effective_.LegalFacts(), transfer_.now, used_facts_);
      if (cover == Cover::kNo) {
        continue;
      }
      Deny(cover == Cover::kYes ? Reason::kForbidden : UnknownFact(), clause.origin,
           who + " `" + place.text() + "` is denied by " + std::string(key) + " `" + area.text() +
               "`",
           "only removing it from " + policy::Print(clause.origin) + " would allow it");
    }
  }
}

void Evaluation::DenyParty(const Party& party, bool gets_model) {
  if (const StatusOr<Jurisdiction> at = Jurisdiction::Parse(party.jurisdiction); at.ok()) {
    DenyOverlap(terms_.deny_locations, *at, "deny.locations", Who(party) + " at");
  }
  for (const std::string& text : party.control) {
    if (const StatusOr<Jurisdiction> from = Jurisdiction::Parse(text); from.ok()) {
      DenyOverlap(terms_.deny_control, *from, "deny.control", Who(party) + " controlled from");
    }
  }
  CheckConcern(party);
  for (const auto& clause : terms_.deny_recipients) {
    for (const std::string& token : clause.value) {
      if (gets_model && Stands(token, party)) {
        Deny(Reason::kForbidden, clause.origin,
             Who(party) + " is denied by deny.recipients `" + token + "`",
             "only removing it from " + policy::Print(clause.origin) + " would allow it");
      }
    }
  }
}

void Evaluation::CheckDenyRules() {
  DenyParty(transfer_.to, IsModel());
  if (transfer_.via) {
    DenyParty(*transfer_.via, false);
  }
  if (IsContribution()) {
    for (const Party& party : transfer_.recipients) {
      DenyParty(party, true);
    }
  }
  for (const auto& clause : terms_.deny_update_kinds) {
    for (const UpdateKind kind : transfer_.kinds) {
      if (clause.value.contains(kind)) {
        Deny(Reason::kForbidden, clause.origin,
             "`" + std::string(Code(kind)) + "` is denied by deny.update_kinds",
             "only removing it from " + policy::Print(clause.origin) + " would allow it");
      }
    }
  }
}

void Evaluation::CheckModelReceiver(const Party& party) {
  const std::optional<Place> place = ReadPlace(party);
  if (!place) {
    return;
  }
  WantInside(terms_.model_recipients, place->at, "model.recipients", Who(party) + " at",
             Reason::kLocation);
  for (const auto& clause : terms_.recipients) {
    Bear(clause.origin);
    const bool stands =
        std::any_of(clause.value.begin(), clause.value.end(),
                    [&party](const std::string& token) { return Stands(token, party); });
    if (!stands) {
      Deny(Reason::kRecipient, clause.origin,
           Who(party) + " is not in allow.recipients " + internal::Print(clause.value),
           "add it to allow.recipients in " + policy::Print(clause.origin) +
               ", or take it out of the plan's recipients");
    }
  }
}

void Evaluation::CheckReceiver() {
  if (IsModel()) {
    CheckModelReceiver(transfer_.to);
    if (transfer_.via) {
      (void)ReadPlace(*transfer_.via);  // notes what cannot be read
    }
    return;
  }
  const std::optional<Place> place = ReadPlace(transfer_.to);
  if (!place) {
    return;
  }
  WantInside(terms_.aggregator_locations, place->at, "allow.aggregator_locations",
             Who(transfer_.to) + " at", Reason::kLocation);
  for (const Jurisdiction& from : place->control) {
    WantInside(terms_.aggregator_control, from, "allow.aggregator_control",
               Who(transfer_.to) + " controlled from", Reason::kControl);
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

#include "policy/engine/explain.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "policy/engine/internal/evaluation.h"
#include "policy/language/duration.h"

namespace domicile::policy {
namespace {

std::string PartyText(const Party& party) {
  return internal::Who(party) + " at " + internal::ShowPlace(party.jurisdiction);
}

std::string PlaceCode(const Party& party) {
  return Jurisdiction::Parse(party.jurisdiction).ok() ? party.jurisdiction : "";
}

Json OriginJson(const Origin& origin) {
  return JsonObject{{"source", std::string(Code(origin.source))},
                    {"policy", origin.policy},
                    {"rule", origin.rule},
                    {"file", origin.file},
                    {"line", origin.line}};
}

Json FindingJson(const Finding& finding) {
  JsonObject json = {{"code", std::string(Code(finding.reason))},
                     {"number", static_cast<std::uint32_t>(finding.reason)},
                     {"what", finding.what},
                     {"hand", std::string(Code(finding.hand))}};
  if (!finding.origin.policy.empty()) {
    json.emplace("rule", OriginJson(finding.origin));
  }
  if (!finding.remedy.empty()) {
    json.emplace("remedy", finding.remedy);
  }
  return json;
}

Json ObligationsJson(const Obligations& obligations) {
  JsonObject json = {{"clip_l2", PrintDouble(obligations.clip_l2)},
                     {"min_contributors", obligations.min_contributors},
                     {"min_cohort", obligations.min_cohort},
                     {"weights", std::string(Code(obligations.weights))},
                     {"round_to", obligations.round_to},
                     {"scale_bits", obligations.scale_bits}};
  const auto set_duration = [&json](std::string_view key, const std::optional<Duration>& value) {
    if (value) {
      json.emplace(key, PrintDuration(*value));
    }
  };
  set_duration("audit_min", obligations.audit_min);
  set_duration("update_max", obligations.update_max);
  set_duration("model_review", obligations.model_review);
  if (obligations.on_withdrawal != ErasureRule::kUnset) {
    json.emplace("on_withdrawal", std::string(Code(obligations.on_withdrawal)));
  }
  return json;
}

// One change of the set that would flip a decision.
struct Change {
  std::string text;
  Hand hand = Hand::kNobody;
};

// Every finding's, each once: together they are the nearest changes that would flip it.
std::vector<Change> ChangesOf(const Decision& decision) {
  std::vector<Change> changes;
  std::set<std::string> seen;
  for (const Finding& finding : decision.findings) {
    if (!finding.remedy.empty() && seen.insert(finding.remedy).second) {
      changes.push_back({.text = finding.remedy, .hand = finding.hand});
    }
  }
  return changes;
}

std::string ChangesText(const Decision& decision) {
  const std::vector<Change> changes = ChangesOf(decision);
  if (changes.empty()) {
    return "";
  }
  const auto own = std::count_if(changes.begin(), changes.end(),
                                 [](const Change& change) { return change.hand == Hand::kSite; });
  std::string text = "nearest changes that together would flip it, " + std::to_string(own) +
                     " of " + std::to_string(changes.size()) + " in the site's own hand\n";
  for (const Change& change : changes) {
    text += "  " + std::string(Code(change.hand)) + ": " + change.text + "\n";
  }
  return text;
}

std::string CrossingsText(const Decision& decision) {
  std::string text;
  std::set<std::string> seen;
  for (const Crossing& crossing : decision.crossings) {
    std::string line = "  " + crossing.from + " to " + crossing.to + ", " + crossing.who;
    line += crossing.law.empty() ? "" : ", under " + crossing.law;
    line += ": " + (crossing.ground.empty() ? "no ground" : crossing.ground);
    if (crossing.edpb_use_case != 0) {
      line += "; EDPB use case " + std::to_string(crossing.edpb_use_case);
    }
    line += "\n";
    if (seen.insert(line).second) {
      text += line;
    }
  }
  return text.empty() ? "borders of countries: none\n" : "borders of countries\n" + text;
}

std::string FactsText(const Decision& decision) {
  if (decision.facts.empty()) {
    return "legal facts: none\n";
  }
  std::string text = "legal facts, to be confirmed by counsel\n";
  for (const UsedFact& fact : decision.facts) {
    text += "  " + fact.id + ": " + fact.source + ", checked " +
            PrintTime(fact.checked_on).substr(0, 10) + "\n";
  }
  return text;
}

Json ChangesJson(const Decision& decision) {
  JsonArray changes;
  for (const Change& change : ChangesOf(decision)) {
    changes.push_back(
        JsonObject{{"change", change.text}, {"hand", std::string(Code(change.hand))}});
  }
  return changes;
}

Json CrossingsJson(const Decision& decision) {
  JsonArray crossings;
  for (const Crossing& crossing : decision.crossings) {
    crossings.push_back(JsonObject{{"who", crossing.who},
                                   {"from", crossing.from},
                                   {"to", crossing.to},
                                   {"law", crossing.law},
                                   {"ground", crossing.ground},
                                   {"edpb_use_case", crossing.edpb_use_case}});
  }
  return crossings;
}

Json FactsJson(const Decision& decision) {
  JsonArray facts;
  for (const UsedFact& fact : decision.facts) {
    facts.push_back(JsonObject{
        {"id", fact.id}, {"source", fact.source}, {"checked_on", PrintTime(fact.checked_on)}});
  }
  return facts;
}

Json KindsJson(const Transfer& transfer) {
  JsonArray kinds;
  for (const UpdateKind kind : transfer.kinds) {
    kinds.emplace_back(std::string(Code(kind)));
  }
  return kinds;
}

std::string KindsText(const Transfer& transfer) {
  std::vector<std::string> kinds;
  for (const UpdateKind kind : transfer.kinds) {
    kinds.emplace_back(Code(kind));
  }
  return kinds.empty() ? "nothing named" : Join(kinds, ", ");
}

std::string RequestText(const Transfer& transfer) {
  std::string text = "  " + std::string(Code(transfer.point)) + ": " + KindsText(transfer) +
                     " of dataset `" + transfer.dataset.text() + "`, from " +
                     PartyText(transfer.from);
  if (transfer.via) {
    text += ", by way of " + PartyText(*transfer.via);
  }
  text += ", to " + PartyText(transfer.to) + "\n";
  text += "  view " + std::string(Code(transfer.view)) + ", purpose " +
          std::string(Code(transfer.purpose)) + ", at " + PrintTime(transfer.now) + "\n";
  return text;
}

std::string FindingText(const Finding& finding) {
  std::string text = "  " + std::string(Code(finding.reason)) + ": " + finding.what + "\n";
  text += "    rule: " + Print(finding.origin) + "\n";
  text += "    " + std::string(Explain(finding.reason)) + "\n";
  if (!finding.remedy.empty()) {
    text += "    would flip: " + finding.remedy + "\n";
    text += "    in the hand of: " + std::string(Code(finding.hand)) + "\n";
  }
  return text;
}

std::string KeepingText(const Obligations& obligations) {
  std::string text;
  const auto add = [&text](std::string_view what, const std::optional<Duration>& value) {
    if (value) {
      text += "; " + std::string(what) + " " + PrintDuration(*value);
    }
  };
  add("keep the log at least", obligations.audit_min);
  add("keep an update at most", obligations.update_max);
  add("review a model after", obligations.model_review);
  if (obligations.on_withdrawal != ErasureRule::kUnset) {
    text += "; on withdrawal " + std::string(Code(obligations.on_withdrawal));
  }
  return text;
}

std::string ObligationsText(const Obligations& obligations) {
  return "obligations: clip to L2 norm " + PrintDouble(obligations.clip_l2) +
         "; release only sums of at least " + std::to_string(obligations.min_contributors) +
         " organisations; at least " + std::to_string(obligations.min_cohort) +
         " records behind any number; weights " + std::string(Code(obligations.weights)) +
         ", to multiples of " + std::to_string(obligations.round_to) + "; grid 2^-" +
         std::to_string(obligations.scale_bits) + KeepingText(obligations) + "\n";
}

}  // namespace

std::string ExplainText(const Decision& decision, const Transfer& transfer) {
  std::string text =
      decision.simulated ? "SIMULATED: a dry run; nothing was asked, opened or sent\n" : "";
  text += std::string(Code(decision.result)) + "\n" + RequestText(transfer);
  text += "because\n";
  for (const Finding& finding : decision.findings) {
    text += FindingText(finding);
  }
  text += ChangesText(decision) + CrossingsText(decision) + "rules\n";
  for (const Origin& origin : decision.rules) {
    text += "  " + Print(origin) + "\n";
  }
  text += FactsText(decision);
  if (decision.result == Result::kAllow) {
    text += ObligationsText(decision.obligations);
  }
  return text;
}

Json ExplainJson(const Decision& decision, const Transfer& transfer) {
  JsonArray findings;
  for (const Finding& finding : decision.findings) {
    findings.push_back(FindingJson(finding));
  }
  JsonArray rules;
  for (const Origin& origin : decision.rules) {
    rules.push_back(OriginJson(origin));
  }
  JsonObject request = {{"point", std::string(Code(transfer.point))},
                        {"dataset", transfer.dataset.text()},
                        {"from", PlaceCode(transfer.from)},
                        {"to", PlaceCode(transfer.to)},
                        {"kinds", KindsJson(transfer)},
                        {"view", std::string(Code(transfer.view))},
                        {"purpose", std::string(Code(transfer.purpose))},
                        {"now", PrintTime(transfer.now)}};
  if (transfer.via) {
    request.emplace("via", PlaceCode(*transfer.via));
  }
  JsonObject json = {{"event", decision.simulated ? "decision.simulated" : "decision"},
                     {"result", std::string(Code(decision.result))},
                     {"request", std::move(request)},
                     {"findings", std::move(findings)},
                     {"rules", std::move(rules)},
                     {"changes", ChangesJson(decision)},
                     {"crossings", CrossingsJson(decision)},
                     {"facts", FactsJson(decision)}};
  if (decision.result == Result::kAllow) {
    json.emplace("obligations", ObligationsJson(decision.obligations));
  }
  return json;
}

}  // namespace domicile::policy

#include "policy/engine/explain.h"

#include <utility>

#include "base/text.h"
#include "policy/engine/internal/evaluation.h"

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
                     {"what", finding.what}};
  if (!finding.origin.policy.empty()) {
    json.emplace("rule", OriginJson(finding.origin));
  }
  if (!finding.remedy.empty()) {
    json.emplace("remedy", finding.remedy);
  }
  return json;
}

Json ObligationsJson(const Obligations& obligations) {
  return JsonObject{{"clip_l2", PrintDouble(obligations.clip_l2)},
                    {"min_contributors", obligations.min_contributors},
                    {"min_cohort", obligations.min_cohort},
                    {"weights", std::string(Code(obligations.weights))},
                    {"round_to", obligations.round_to},
                    {"scale_bits", obligations.scale_bits}};
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
  }
  return text;
}

std::string ObligationsText(const Obligations& obligations) {
  return "obligations: clip to L2 norm " + PrintDouble(obligations.clip_l2) +
         "; release only sums of at least " + std::to_string(obligations.min_contributors) +
         " organisations; at least " + std::to_string(obligations.min_cohort) +
         " records behind any number; weights " + std::string(Code(obligations.weights)) +
         ", to multiples of " + std::to_string(obligations.round_to) + "; grid 2^-" +
         std::to_string(obligations.scale_bits) + "\n";
}

}  // namespace

std::string ExplainText(const Decision& decision, const Transfer& transfer) {
  std::string text = std::string(Code(decision.result)) + "\n" + RequestText(transfer);
  text += "because\n";
  for (const Finding& finding : decision.findings) {
    text += FindingText(finding);
  }
  text += "rules\n";
  for (const Origin& origin : decision.rules) {
    text += "  " + Print(origin) + "\n";
  }
  text += "legal facts: " + (decision.facts.empty() ? "none" : Join(decision.facts, ", ")) + "\n";
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
  JsonObject json = {{"result", std::string(Code(decision.result))},
                     {"request", std::move(request)},
                     {"findings", std::move(findings)},
                     {"rules", std::move(rules)},
                     {"facts", JsonArray(decision.facts.begin(), decision.facts.end())}};
  if (decision.result == Result::kAllow) {
    json.emplace("obligations", ObligationsJson(decision.obligations));
  }
  return json;
}

}  // namespace domicile::policy

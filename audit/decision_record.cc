#include "audit/decision_record.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "policy/reason.h"

namespace domicile::audit {

DecisionRecord RecordOf(const policy::Decision& decision, const PolicyDigests& policies) {
  DOMICILE_CHECK(!decision.simulated);  // a dry run never enters a log as a decision
  DecisionRecord record{.result = std::string(policy::Code(decision.result)),
                        .reasons = {},
                        .rules = {},
                        .policies = policies};
  const auto add = [](std::vector<std::string>& list, std::string_view text) {
    if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) {
      list.emplace_back(text);
    }
  };
  for (const policy::Finding& finding : decision.findings) {
    add(record.reasons, policy::Code(finding.reason));
  }
  for (const policy::Origin& origin : decision.rules) {
    add(record.rules, RuleId(policy::Code(origin.source), origin.policy, origin.rule));
  }
  return record;
}

Decided Decide(const policy::Effective& effective, const PolicyDigests& policies,
               const policy::Transfer& transfer) {
  Decided decided{.decision = policy::Decide(effective, transfer), .record = {}};
  decided.record = RecordOf(decided.decision, policies);
  return decided;
}

}  // namespace domicile::audit

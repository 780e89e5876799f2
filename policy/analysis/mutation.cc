#include "policy/analysis/mutation.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "policy/analysis/internal/rule_keys.h"

namespace domicile::policy::analysis {
namespace {

struct Change {
  Mutant mutant;
  Policy policy;
};

void AddRuleChanges(const Policy& policy, std::vector<Change>& changes) {
  for (std::size_t i = 0; i < policy.rules.size(); ++i) {
    const Rule& rule = policy.rules[i];
    const auto add = [&](std::string_view key, const auto& change) {
      Change made = {{policy.file, rule.line, rule.id, std::string(key), false}, policy};
      change(made.policy);
      changes.push_back(std::move(made));
    };
    add("the whole rule", [i](Policy& changed) {
      changed.rules.erase(changed.rules.begin() + static_cast<std::ptrdiff_t>(i));
    });
    for (const internal::RuleKey& key : internal::RuleKeys()) {
      Rule loose = rule;
      if (key.is_set(rule)) {
        key.loosen(loose);
      }
      if (!(loose == rule)) {
        add(key.name, [&](Policy& changed) { changed.rules[i] = loose; });
      }
    }
    // An entry that nobody misses is a ground that nobody has asked for.
    for (std::size_t j = 0; j < rule.transfers.size(); ++j) {
      const TransferGround& ground = rule.transfers[j];
      add("rule.transfer to " + ground.to.text() + " by " + std::string(Code(ground.mechanism)) +
              " taken out",
          [i, j](Policy& changed) {
            auto& transfers = changed.rules[i].transfers;
            transfers.erase(transfers.begin() + static_cast<std::ptrdiff_t>(j));
          });
      changes.back().mutant.line = ground.line;
    }
  }
}

void AddSectionChanges(const Policy& policy, std::vector<Change>& changes) {
  for (const internal::SectionKey& key : internal::SectionKeys()) {
    if (!key.is_set(policy)) {
      continue;
    }
    Change made = {{policy.file, key.line(policy), "", std::string(key.name), false}, policy};
    key.loosen(made.policy);
    if (!(made.policy == policy)) {
      changes.push_back(std::move(made));
    }
  }
}

// Whether any case that uses the policy comes out otherwise.
bool IsKilled(const CaseBook& book, std::size_t index, const Policy& changed) {
  return std::any_of(book.cases().begin(), book.cases().end(), [&](const Case& each) {
    const bool uses = each.federation == index || each.aggregator == index || each.site == index;
    return uses && !WhyFailed(each, book.AnswerWith(each, index, changed)).empty();
  });
}

using RuleId = std::tuple<std::string, std::uint32_t, std::string>;

std::map<RuleId, RuleCoverage> CountBearing(const CaseBook& book) {
  std::map<RuleId, RuleCoverage> rules;
  for (const CasePolicy& policy : book.policies()) {
    if (policy.is_file) {
      for (const Rule& rule : policy.policy.rules) {
        rules[{policy.policy.file, rule.line, rule.id}] = {
            policy.policy.file, rule.line, rule.id, 0, 0, 0};
      }
    }
  }
  for (const Case& each : book.cases()) {
    for (const Origin& origin : book.Answer(each).rules) {
      constexpr std::string_view kRule = "rule ";
      if (origin.rule.starts_with(kRule)) {
        const auto found = rules.find({origin.file, origin.line, origin.rule.substr(kRule.size())});
        if (found != rules.end()) {
          ++found->second.bearing;
        }
      }
    }
  }
  return rules;
}

}  // namespace

std::uint64_t MutationReport::Killed() const {
  return static_cast<std::uint64_t>(std::count_if(
      mutants.begin(), mutants.end(), [](const Mutant& mutant) { return mutant.is_killed; }));
}

double MutationReport::Score() const {
  return mutants.empty()
             ? 100.0
             : 100.0 * static_cast<double>(Killed()) / static_cast<double>(mutants.size());
}

MutationReport Mutate(const CaseBook& book,
                      const std::function<void(std::size_t done, std::size_t all)>& progress) {
  std::vector<std::pair<std::size_t, Change>> changes;
  for (std::size_t index = 0; index < book.policies().size(); ++index) {
    if (!book.policies()[index].is_file) {
      continue;
    }
    std::vector<Change> of_policy;
    AddRuleChanges(book.policies()[index].policy, of_policy);
    AddSectionChanges(book.policies()[index].policy, of_policy);
    for (Change& change : of_policy) {
      changes.emplace_back(index, std::move(change));
    }
  }
  std::map<RuleId, RuleCoverage> rules = CountBearing(book);
  MutationReport report;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    auto& [index, change] = changes[i];
    if (progress) {
      progress(i, changes.size());
    }
    Mutant& mutant = change.mutant;
    mutant.is_killed = IsKilled(book, index, change.policy);
    for (auto& [id, rule] : rules) {
      if (rule.file == mutant.file && rule.rule == mutant.rule) {
        ++rule.mutants;
        rule.killed += mutant.is_killed ? 1 : 0;
      }
    }
    report.mutants.push_back(std::move(mutant));
  }
  for (auto& [id, rule] : rules) {
    report.rules.push_back(std::move(rule));
  }
  return report;
}

}  // namespace domicile::policy::analysis

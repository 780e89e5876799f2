// How much of the policies the cases really hold in place: each key is loosened, one at a time, and
// at least one case must then come out otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "policy/analysis/cases.h"

namespace domicile::policy::analysis {

// One key of one policy file, made as loose as the language goes; or a rule taken out.
struct Mutant {
  std::string file;
  std::uint32_t line = 0;  // of the rule or section
  std::string rule;        // id; empty for a section
  std::string key;         // `allow.update_kinds`; "the whole rule"
  bool is_killed = false;  // a case comes out otherwise
};

struct RuleCoverage {
  std::string file;
  std::uint32_t line = 0;
  std::string rule;
  std::uint64_t bearing = 0;  // cases whose answer names the rule among those that bore on it
  std::uint64_t mutants = 0;
  std::uint64_t killed = 0;  // 0: no case depends on the rule
};

struct MutationReport {
  std::vector<RuleCoverage> rules;  // in order of file and line
  std::vector<Mutant> mutants;      // likewise

  std::uint64_t Killed() const;
  // Killed in a hundred; 100 without mutants.
  double Score() const;
};

// Only policies that are files of their own are changed: a policy written out in a case file is
// itself a probe. Cases must come out as written before. `progress` is called with each mutant and
// the number of all; may be empty.
MutationReport Mutate(const CaseBook& book,
                      const std::function<void(std::size_t done, std::size_t all)>& progress);

}  // namespace domicile::policy::analysis

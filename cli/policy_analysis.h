// The commands of `domicile policy` that ask about everything a policy allows, added to the group
// of policy.cc: diff, reach, who-can, conflicts, shadowed, expiring, simulate.
#pragma once

#include "cli/command.h"

namespace domicile::cli {

void AddPolicyReach(CLI::App& group, Context& context);     // policy_reach.cc: reach, who-can
void AddPolicyAnalysis(CLI::App& group, Context& context);  // policy_analysis.cc: the others
void AddPolicyTest(CLI::App& group, Context& context);      // policy_cases.cc: test

}  // namespace domicile::cli

// `domicile policy export` and `domicile policy schema`, added to the group of policy.cc.
#pragma once

#include "cli/command.h"

namespace domicile::cli {

void AddPolicyExport(CLI::App& group, Context& context);

}  // namespace domicile::cli

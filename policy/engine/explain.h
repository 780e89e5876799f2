// A decision for people and for logs: result, reasons, rules with file and line, facts,
// obligations, and what would have to change for another answer.
#pragma once

#include <string>

#include "base/json.h"
#include "policy/engine/decide.h"

namespace domicile::policy {

// Several lines, each ending in a newline. Of a simulated decision the first line says so.
std::string ExplainText(const Decision& decision, const Transfer& transfer);

// Canonical when printed; the same content. Its text is what a log keeps by digest. `event` is
// `decision`, or `decision.simulated`: a dry run cannot be taken for the other.
Json ExplainJson(const Decision& decision, const Transfer& transfer);

}  // namespace domicile::policy

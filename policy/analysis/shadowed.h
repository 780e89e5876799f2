// Rules and keys that change no answer: what could be taken out, or was meant otherwise.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policy/analysis/world.h"

namespace domicile::policy::analysis {

struct Shadow {
  std::string policy;  // id
  std::string file;
  std::uint32_t line = 0;
  std::string rule;  // id; empty for a section
  std::string key;   // empty: the whole rule
};

// Each is told alone: of two rules that say the same, both are. A key of a site policy that says
// what the strict default says is told too. Keys that no request depends on are told by their
// bounds. `progress` may be empty.
std::vector<Shadow> Shadowed(
    const World& world, const Window& window,
    const std::function<void(std::size_t done, std::size_t all)>& progress);

// Pairs of lines that leave nothing to allow, with the site and dataset they are met for.
std::vector<std::string> Conflicts(const World& world);

}  // namespace domicile::policy::analysis

// Shadowed against the plain way: each removal compared by asking everything anew.
#include "policy/analysis/shadowed.h"

#include <set>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "policy/analysis/diff.h"
#include "policy/analysis/internal/removals.h"
#include "policy/analysis/random_world.h"

namespace domicile::policy::analysis {
namespace {

// What Shadowed tells, without saying of keys what is said of their whole rule.
std::set<std::string> PlainShadows(const World& world, const Window& window) {
  std::set<std::string> told;
  std::set<std::string> whole;
  for (const internal::Removal& removal : internal::Removals(world)) {
    const std::string rule = removal.shadow.policy + " " + removal.shadow.rule;
    if (whole.contains(rule) || !IsSameFor(world, internal::Without(world, removal), window)) {
      continue;
    }
    told.insert(rule + " " + removal.shadow.key);
    if (removal.shadow.key.empty()) {
      whole.insert(rule);
    }
  }
  return told;
}

std::set<std::string> QuickShadows(const World& world, const Window& window) {
  std::set<std::string> told;
  for (const Shadow& shadow : Shadowed(world, window, {})) {
    told.insert(shadow.policy + " " + shadow.rule + " " + shadow.key);
  }
  return told;
}

}  // namespace

// The plain way takes minutes under a sanitizer, which looks at the quick one alone.
TEST_CASE("Shadowed: tells what the plain way tells, on random worlds") {
  std::size_t told = 0;
  std::size_t kept = 0;
  for (std::uint64_t seed = 2; seed <= (kIsSanitized ? 2U : 3U); ++seed) {
    CAPTURE(seed);
    World world = RandomWorld(seed);
    // The rules of another world in a policy that all are met with: of two that say nearly the
    // same, the wider is shadowed.
    const World other = RandomWorld(seed + 1000);
    for (Rule rule : other.policies.back().rules) {
      rule.id += "-other";
      rule.dataset.reset();
      rule.transfers.clear();
      world.policies.front().rules.push_back(std::move(rule));
    }
    const std::set<std::string> quick = QuickShadows(world, RandomWorldWindow());

    const std::set<std::string> plain =
        kIsSanitized ? quick : PlainShadows(world, RandomWorldWindow());
    CHECK(quick == plain);
    told += plain.size();
    kept += internal::Removals(world).size() - plain.size();
  }
  CHECK(told > 10);
  CHECK(kept > 10);
}

TEST_CASE("Shadowed: what every site is met with is held against each of them") {
  World world = RandomWorld(2);
  // It says nothing by itself, so bounds that the first undercuts are the strictest here.
  Policy second = world.policies.back();
  second.identity.id += "-second";
  second.rules.clear();
  world.policies.insert(world.policies.begin() + 1, std::move(second));
  const Window window = RandomWorldWindow();
  const std::set<std::string> alone = QuickShadows(RandomWorld(2), window);

  const std::set<std::string> both = QuickShadows(world, window);

  if (!kIsSanitized) {
    CHECK(both == PlainShadows(world, window));
  }
  CHECK(both != alone);
}

}  // namespace domicile::policy::analysis

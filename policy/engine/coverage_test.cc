#include "policy/engine/internal/coverage.h"

#include <doctest/doctest.h>

#include "policy/engine/small_world.h"

namespace domicile::policy::internal {
namespace {

// The world knows who is in the EEA, and nothing of the EU.
Cover AnyCovers(const std::set<Area>& areas, const char* place) {
  const auto facts = World();
  Coverage coverage(*facts, kNow);
  return coverage.Any(areas, *Jurisdiction::Parse(place), nullptr);
}

TEST_CASE("Coverage: any covers beats unknown, unknown beats no") {
  const std::set<Area> areas = Areas({"EU", "FR"});

  CHECK(AnyCovers(areas, "FR") == Cover::kYes);
  CHECK(AnyCovers(areas, "DE") == Cover::kUnknown);
  CHECK(AnyCovers({}, "DE") == Cover::kNo);
}

TEST_CASE("Coverage: what is remembered of a bloc is what the facts say, with the facts read") {
  const auto facts = World();
  Coverage coverage(*facts, kNow);
  const Area eea = *Area::Parse("EEA");
  const Jurisdiction place = *Jurisdiction::Parse("DE");
  for (int time = 0; time < 2; ++time) {
    std::set<std::string> used;
    CHECK(coverage.Of(eea, place, &used) == Cover::kYes);
    CHECK(used == std::set<std::string>{"eea"});
  }
}

}  // namespace
}  // namespace domicile::policy::internal

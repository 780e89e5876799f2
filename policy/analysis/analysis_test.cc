// Who-can, shadowed, expiring, simulate and the mutation score on small worlds.
#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "policy/analysis/expiring.h"
#include "policy/analysis/internal/space.h"
#include "policy/analysis/mutation.h"
#include "policy/analysis/random_world.h"
#include "policy/analysis/shadowed.h"
#include "policy/analysis/simulate.h"
#include "policy/analysis/who_can.h"
#include "policy/language/parse.h"

namespace domicile::policy::analysis {
namespace {

const DatasetAlias kHeart = *DatasetAlias::Parse("heart");
const WallTime kNow = *ParseTime("2026-12-01T00:00:00Z");

// A site whose rule has some keys that say what another already says.
constexpr std::string_view kSite = R"(
[policy]
schema = 1
id = "site/s"
version = 1
not_before = 2026-11-01
expires = 2027-10-31
issuer = "i"
signers = ["s"]
threshold = 1
[site]
jurisdiction = "DE"
control_jurisdictions = ["DE"]
[[dataset]]
alias = "heart"
name = "n"
categories = ["none"]
subject_jurisdictions = ["DE"]
regimes = ["eu-gdpr"]
lawful_basis = "A6-1-e"
purpose = ["scientific_research"]
[[rule]]
id = "S-1"
allow.aggregator_locations = ["DE", "FR"]
allow.aggregator_control = ["DE"]
allow.recipients = ["sites"]
allow.update_kinds = ["delta.masked", "model.final"]
limit.rounds = 10
limit.runs_per_day = 1
limit.update_bytes = 1000
[[rule]]
id = "S-2"
deny.locations = ["CN"]
limit.rounds = 20
)";
constexpr std::string_view kFacts = R"(
[facts]
id = "facts/f"
version = 1
expires = 2027-06-30
[[fact]]
id = "eu"
kind = "bloc"
bloc = "EU"
members = ["DE", "FR"]
from_date = 2020-01-01
source = "s"
checked_by = "c"
checked_on = 2026-11-30
[[fact]]
id = "free-eu"
kind = "free_flow"
regime = "eu-gdpr"
from = ["EU"]
to = ["EU"]
from_date = 2020-01-01
until_date = 2027-03-01
source = "s"
checked_by = "c"
checked_on = 2026-11-30
)";

World SmallWorld() {
  auto site = ParsePolicy(kSite, "site.toml", PolicySource::kSite);
  REQUIRE_MESSAGE(site.ok(), ToString(site.status()));
  auto facts = ParseFacts(kFacts, "facts.toml");
  REQUIRE_MESSAGE(facts.ok(), ToString(facts.status()));
  return {{*std::move(site)}, *std::move(facts)};
}

}  // namespace

TEST_CASE("Shadowed: rules and keys without which every answer is the same, and no others") {
  std::set<std::string> told;
  for (const Shadow& shadow : Shadowed(SmallWorld(), {kNow, {}}, {})) {
    told.insert(shadow.rule + " " + shadow.key);
  }

  CHECK(told.contains("S-2 "));  // denies what nothing allows, and a limit that S-1 undercuts
  CHECK(told.contains("S-1 allow.aggregator_control"));  // as the strict default
  CHECK(!told.contains("S-1 "));
  CHECK(!told.contains("S-1 allow.aggregator_locations"));
  CHECK(!told.contains("S-1 allow.update_kinds"));
  CHECK(!told.contains("S-1 limit.rounds"));
}

TEST_CASE("Shadowed: taking out what is told changes no answer of brute force" *
          doctest::skip(kIsSanitized)) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    const World world = RandomWorld(seed);
    for (const Shadow& shadow : Shadowed(world, RandomWorldWindow(), {})) {
      CAPTURE(shadow.policy);
      CAPTURE(shadow.rule);
      CAPTURE(shadow.key);
      if (!shadow.key.empty()) {
        continue;
      }
      World without = world;
      for (Policy& policy : without.policies) {
        std::erase_if(policy.rules, [&](const Rule& rule) {
          return policy.identity.id == shadow.policy && rule.id == shadow.rule;
        });
      }
      const Effective before = EffectiveOf(world, world.policies.back());
      const Effective after = EffectiveOf(without, without.policies.back());
      const Transfer base =
          internal::PermissiveTransfer(world.policies.back(), kHeart, before.Find(kHeart).get());
      EachRequest(SmallSpaceOf(world, RandomWorldWindow()), DecisionPoint::kAggregateRelease, base,
                  [&](const Transfer& transfer) {
                    CHECK(Answer(before, transfer) == Answer(after, transfer));
                    return true;
                  });
    }
  }
}

TEST_CASE("WhoCan: everybody who may get something, in blocs and with dates") {
  const World world = SmallWorld();
  const Window window = {kNow, kNow + std::chrono::nanoseconds(1)};
  const WhoCanResult result = WhoCan(world, "", kHeart, window);

  REQUIRE(!result.allowed.empty());
  CHECK(result.allowed.front().point == DecisionPoint::kEgress);
  CHECK(result.allowed.front().to.places == std::vector<std::string>{"EU"});
  CHECK(result.allowed.front().to.control == std::vector<std::string>{"DE"});
  const auto download =
      std::find_if(result.allowed.begin(), result.allowed.end(),
                   [](const Crossing& each) { return each.point == DecisionPoint::kModelToSite; });
  REQUIRE(download != result.allowed.end());
  CHECK(download->to.places == std::vector<std::string>{"DE"});
  CHECK(!WhoCan(world, "", *DatasetAlias::Parse("lungs"), window).is_known);
}

TEST_CASE("Simulate: without the free flow the other country is lost, and nothing is gained") {
  const World world = SmallWorld();
  const auto ids = FactsNamed(world.facts, "free_flow:eu:EU");
  REQUIRE(ids.ok());
  CHECK(*ids == std::vector<std::string>{"free-eu"});

  const DiffResult result = SimulateRevoked(world, *ids, {kNow, {}});

  CHECK(result.gained.empty());
  REQUIRE(!result.lost.empty());
  CHECK(result.lost.front().to.places == std::vector<std::string>{"FR"});
  // It would have ended by itself.
  CHECK(result.lost.front().periods.back().until == *ParseTime("2027-03-01T00:00:00Z"));
  CHECK(!FactsNamed(world.facts, "adequacy:eu:US").ok());
}

TEST_CASE("Expiring: policies, facts and documents by date, up to the day that is asked") {
  const World world = SmallWorld();
  CHECK(Expiring(world, kNow, *ParseTime("2027-02-01T00:00:00Z")).empty());

  const std::vector<Ending> endings = Expiring(world, kNow, *ParseTime("2028-01-01T00:00:00Z"));

  REQUIRE(endings.size() == 3);
  CHECK(endings[0].what == "legal fact `free-eu`");
  CHECK(endings[1].what == "the legal facts `facts/f`, all of them");
  CHECK(endings[2].what == "site policy `site/s`");
  CHECK(!endings[2].is_over);
}

TEST_CASE("Diff: answers change exactly where brute force says, on random worlds") {
  std::size_t gains = 0;
  for (std::uint64_t seed = 1; seed <= (kIsSanitized ? 2U : 6U); ++seed) {
    CAPTURE(seed);
    const World before = RandomWorld(seed);
    World after = before;
    const World other = RandomWorld(seed + 100);
    after.policies.back().rules = other.policies.back().rules;
    const DiffResult result = Diff(before, after, RandomWorldWindow());
    const Effective old_policy = EffectiveOf(before, before.policies.back());
    const Effective new_policy = EffectiveOf(after, after.policies.back());
    const Transfer base =
        internal::PermissiveTransfer(after.policies.back(), kHeart, new_policy.Find(kHeart).get());
    bool has_gain = false;
    SmallSpace space = SmallSpaceOf(before, RandomWorldWindow());
    EachRequest(space, DecisionPoint::kAggregateRelease, base, [&](const Transfer& transfer) {
      has_gain = has_gain || (Answer(new_policy, transfer) == Result::kAllow &&
                              Answer(old_policy, transfer) != Result::kAllow);
      return !has_gain;
    });
    gains += has_gain ? 1 : 0;
    const bool told = std::any_of(
        result.gained.begin(), result.gained.end(),
        [](const Crossing& each) { return each.point == DecisionPoint::kAggregateRelease; });
    CHECK(!(has_gain && !told));  // a place outside the small space may be gained too
    CHECK(!(has_gain && result.IsTightening()));
  }
  CHECK((kIsSanitized || gains > 0));  // the first worlds gain nothing
}

}  // namespace domicile::policy::analysis

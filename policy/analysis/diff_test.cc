#include "policy/analysis/diff.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "policy/language/parse.h"

namespace domicile::policy::analysis {
namespace {

const std::string kFolder = std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/heart/";
const Window kWindow = {*ParseTime("2026-12-01T00:00:00Z"), {}};

std::string Text(const std::string& name) {
  const auto text = ReadFile(kFolder + name, 1U << 20U);
  REQUIRE_MESSAGE(text.ok(), ToString(text.status()));
  return *text;
}

Policy Parse(const std::string& text, const std::string& name, PolicySource source) {
  auto policy = ParsePolicy(text, name, source);
  REQUIRE_MESSAGE(policy.ok(), ToString(policy.status()));
  return *std::move(policy);
}

Policy Site() {
  return Parse(Text("site.budapest.policy.toml"), "site.policy.toml", PolicySource::kSite);
}

// The site policy with one text put in place of another.
Policy SiteWith(const std::string& old_text, const std::string& new_text) {
  std::string text = Text("site.budapest.policy.toml");
  const std::size_t at = text.find(old_text);
  REQUIRE_MESSAGE(at != std::string::npos, old_text);
  text.replace(at, old_text.size(), new_text);
  return Parse(text, "site.policy.toml", PolicySource::kSite);
}

std::vector<Policy> Others() {
  return {
      Parse(Text("federation.policy.toml"), "federation.policy.toml", PolicySource::kFederation),
      Parse(Text("aggregator.policy.toml"), "aggregator.policy.toml", PolicySource::kAggregator)};
}

Facts LegalFacts() { return *ParseFacts(Text("legal-facts.toml"), "legal-facts.toml"); }

DiffResult DiffOf(const Policy& before, const Policy& after) {
  return Diff(before, after, {}, LegalFacts(), kWindow);
}

}  // namespace

TEST_CASE("Diff: a policy does not differ from itself") {
  const DiffResult result = DiffOf(Site(), Site());

  CHECK(result.IsSame());
  CHECK(result.IsTightening());
  CHECK(result.covered.decisions > 0);
  CHECK(result.covered.requests > 1'000'000);
}

TEST_CASE("Diff: a loosened key is a gain, and the way back is none") {
  struct Case {
    std::string name;
    const char* old_text;
    const char* new_text;
  };
  const Case cases[] = {
      {"place", "allow.aggregator_locations = [\"IE\"]",
       "allow.aggregator_locations = [\"IE\", \"AT\"]"},
      {"control", "allow.aggregator_control = [\"IE\"]",
       "allow.aggregator_control = [\"IE\", \"US\"]"},
      {"recipient", "recipients = [\"IE\", \"HU\", \"CH\", \"US\"]",
       "recipients = [\"IE\", \"HU\", \"CH\", \"US\", \"DE\"]"},
      {"rounds", "limit.rounds = 40", "limit.rounds = 41"},
      {"runs", "limit.runs_per_day = 2", "limit.runs_per_day = 3"},
      {"clip", "clip_l2 = 4.0", "clip_l2 = 4.5"},
      {"steps", "min_local_steps = 10", "min_local_steps = 9"},
      {"metrics", "limit.metrics = 4", "limit.metrics = 5"},
      {"approval", "[{ role = \"operator\", count = 1 }]", "[]"},
      {"threshold", "threshold = 2", "threshold = 1"},
      {"expiry", "expires = 2027-10-31", "expires = 2027-11-01"},
      {"purpose", "\"education\", ", "\"education\", \"public_health\", "},
      {"key", "keys = [\"operator-budapest\"]", "keys = [\"operator-budapest\", \"another\"]"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Policy loose = SiteWith(c.old_text, c.new_text);

    CHECK(!DiffOf(Site(), loose).IsTightening());
    CHECK(DiffOf(loose, Site()).IsTightening());
    CHECK(!DiffOf(loose, Site()).IsSame());
  }
}

TEST_CASE("Diff: a bloc of which the facts say nothing is shown, though nobody is in it today") {
  const std::string list = "allow.aggregator_locations = [\"IE\"]";
  Facts facts = LegalFacts();
  std::erase_if(facts.facts, [](const Fact& fact) { return fact.bloc == "EU"; });
  const Policy with_bloc = SiteWith(list, "allow.aggregator_locations = [\"IE\", \"EU\"]");

  const DiffResult named = Diff(Site(), with_bloc, {}, facts, kWindow);
  CHECK(named.gained.empty());
  const auto shown = std::find_if(
      named.settings.begin(), named.settings.end(),
      [](const SettingChange& change) { return change.key == "allow.aggregator_locations"; });
  REQUIRE(shown != named.settings.end());
  CHECK(shown->after == "EU (the legal facts do not say who is in it)");
  CHECK(shown->loosens);
  CHECK_FALSE(named.IsTightening());
  const DiffResult left_out = Diff(with_bloc, Site(), {}, facts, kWindow);
  CHECK(left_out.IsTightening());
  CHECK_FALSE(left_out.IsSame());
  // Of a list that denies it is the other way round.
  const Policy denied = SiteWith(list, list + "\ndeny.locations = [\"EU\"]");
  CHECK_FALSE(Diff(denied, Site(), {}, facts, kWindow).IsTightening());
}

TEST_CASE("Diff: what is gained is said with kinds, places and dates") {
  const DiffResult result =
      DiffOf(Site(), SiteWith("allow.aggregator_locations = [\"IE\"]",
                              "allow.aggregator_locations = [\"IE\", \"AT\"]"));

  REQUIRE(!result.gained.empty());
  const Crossing& first = result.gained.front();
  CHECK(first.site == "site/budapest");
  CHECK(first.dataset == "heart");
  CHECK(first.point == DecisionPoint::kEgress);
  CHECK(first.to.places == std::vector<std::string>{"AT"});
  CHECK(first.to.control == std::vector<std::string>{"IE"});
  CHECK(first.periods.front().from == kWindow.from);
  CHECK(result.lost.empty());
}

TEST_CASE("Diff: what another policy denies is no gain, but alone it is") {
  const Policy loose = SiteWith("allow.aggregator_locations = [\"IE\"]",
                                "allow.aggregator_locations = [\"IE\", \"AT\"]");

  CHECK(Diff(Site(), loose, Others(), LegalFacts(), kWindow).gained.empty());
  CHECK(!DiffOf(Site(), loose).IsTightening());
}

TEST_CASE("Diff: expired facts, under which all is denied, hide no loosening") {
  Facts facts = LegalFacts();
  facts.expires = kWindow.from - std::chrono::hours(1);
  const Policy loose = SiteWith("allow.aggregator_locations = [\"IE\"]",
                                "allow.aggregator_locations = [\"IE\", \"AT\"]");

  const DiffResult result = Diff(Site(), loose, {}, facts, kWindow);

  CHECK(!result.gained.empty());
  CHECK(Diff(loose, Site(), {}, facts, kWindow).IsTightening());
}

TEST_CASE("Diff: without a site nothing can be told, and that is no tightening") {
  const std::vector<Policy> others = Others();
  const DiffResult result = Diff(others[0], others[0], {others[1]}, LegalFacts(), kWindow);

  CHECK(!result.has_site);
  CHECK(!result.IsTightening());
}

TEST_CASE("Diff: a new policy for a site that had none is all gain") {
  World without = {Others(), LegalFacts()};
  World with = without;
  with.policies.push_back(Site());

  CHECK(!Diff(without, with, kWindow).IsTightening());
  CHECK(Diff(with, without, kWindow).IsTightening());
}

}  // namespace domicile::policy::analysis

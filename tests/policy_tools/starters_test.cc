// What deploy/ ships for people to start from.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "policy/engine/meet.h"
#include "policy/language/facts.h"
#include "policy/language/keys.h"
#include "policy/language/parse.h"

namespace domicile::policy {
namespace {

const std::string kDeploy = std::string(DOMICILE_SOURCE_DIR) + "/deploy";

std::string Read(const std::string& path) {
  auto text = ReadFile(path, 1U << 20U);
  REQUIRE_MESSAGE(text.ok(), ToString(text.status()));
  return *std::move(text);
}

Facts ReadFacts(const std::string& path) {
  auto facts = ParseFacts(Read(path), path);
  REQUIRE_MESSAGE(facts.ok(), ToString(facts.status()));
  return *std::move(facts);
}

Policy ReadPolicy(const std::string& path, PolicySource source) {
  auto policy = ParsePolicy(Read(path), path, source);
  REQUIRE_MESSAGE(policy.ok(), ToString(policy.status()));
  return *std::move(policy);
}

std::set<std::string> Starters() {
  std::set<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(kDeploy + "/policies")) {
    if (entry.is_directory()) {
      folders.insert(entry.path().string());
    }
  }
  return folders;
}

}  // namespace

TEST_CASE("Legal facts: what the example states, the shipped file states in the same words") {
  const Facts example = ReadFacts(kDeploy + "/examples/heart/legal-facts.toml");
  const Facts shipped = ReadFacts(kDeploy + "/legal-facts.toml");
  REQUIRE(example.facts.size() >= 10);

  for (Fact fact : example.facts) {
    CAPTURE(fact.id);
    const auto same = std::find_if(shipped.facts.begin(), shipped.facts.end(),
                                   [&fact](const Fact& other) { return other.id == fact.id; });
    REQUIRE(same != shipped.facts.end());
    fact.line = same->line;
    CHECK(fact == *same);
  }
}

TEST_CASE("Legal facts: every regime has a fact, a source and someone to confirm it") {
  const Facts facts = ReadFacts(kDeploy + "/legal-facts.toml");
  std::set<Regime> regimes;
  for (const Fact& fact : facts.facts) {
    CAPTURE(fact.id);
    regimes.insert(fact.regime);
    CHECK(!fact.source.empty());
    // Data for counsel: no entry claims to have been confirmed.
    CHECK(fact.checked_by == "to be confirmed by counsel");
    CHECK(fact.checked_on >= *ParseTime("2026-11-30T00:00:00Z"));
  }
  for (const Regime regime : AllOf<Regime>()) {
    CAPTURE(Code(regime));
    CHECK(regimes.contains(regime));
  }
}

TEST_CASE("Starter policies: each folder is complete, and its policies leave something to allow") {
  CHECK(Starters().size() >= 6);
  const Facts facts = ReadFacts(kDeploy + "/legal-facts.toml");
  for (const std::string& folder : Starters()) {
    CAPTURE(folder);
    const auto files = ListFiles(folder);
    REQUIRE(files.ok());
    CHECK(std::find(files->begin(), files->end(), "README.md") != files->end());
    const Policy federation =
        ReadPolicy(folder + "/federation.policy.toml", PolicySource::kFederation);
    const Policy aggregator =
        ReadPolicy(folder + "/aggregator.policy.toml", PolicySource::kAggregator);
    std::size_t sites = 0;
    for (const std::string& file : *files) {
      if (!file.starts_with("site.")) {
        continue;
      }
      ++sites;
      const Policy site = ReadPolicy(folder + "/" + file, PolicySource::kSite);
      const Status satisfiable = Meet(federation, aggregator, site, facts).CheckSatisfiable();
      CHECK_MESSAGE(satisfiable.ok(), ToString(satisfiable));
      // `site.lyon.policy.toml` has its cases in `lyon.case`.
      const std::string name = file.substr(5, file.find('.', 5) - 5);
      CHECK(std::find(files->begin(), files->end(), name + ".case") != files->end());
    }
    CHECK(sites >= 1);
  }
}

TEST_CASE("Guide: docs/policy.md has every key of rules and sections in its table") {
  const std::string guide = Read(std::string(DOMICILE_SOURCE_DIR) + "/docs/policy.md");
  std::string table;
  for (std::size_t at = 0; at < guide.size();) {
    const std::size_t end = std::min(guide.find('\n', at), guide.size());
    if (guide[at] == '|') {
      table += guide.substr(at, end - at) + "\n";
    }
    at = end + 1;
  }
  const std::set<std::string> elsewhere = {"id",        "dataset", "keys",        "to",
                                           "mechanism", "ref",     "valid_until", "importer",
                                           "role",      "count",   "distinct_org"};
  std::size_t checked = 0;
  for (const std::string_view key : kPolicyKeys) {
    const std::string name(key.substr(key.rfind('.') + 1));
    if (key.starts_with("policy.") || key.starts_with("site.") || key.starts_with("dataset.") ||
        elsewhere.contains(name)) {
      continue;
    }
    CAPTURE(key);
    ++checked;
    // As `.name`, or as `name` of a section.
    const bool is_there = table.find("." + name + "`") != std::string::npos ||
                          table.find("`" + name + "`") != std::string::npos ||
                          table.find("] " + name + "`") != std::string::npos;
    CHECK(is_there);
  }
  CHECK(checked > 40);
}

}  // namespace domicile::policy

#include "policy/exporting/export.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "policy/exporting/internal/conditions.h"
#include "policy/language/parse.h"

namespace domicile::policy {
namespace {

const std::string kRoot = DOMICILE_SOURCE_DIR;

std::string Read(const std::string& path) {
  auto text = ReadFile(kRoot + path, 1U << 20U);
  REQUIRE_MESSAGE(text.ok(), ToString(text.status()));
  return *std::move(text);
}

Policy Site(const std::string& path) {
  auto policy = ParsePolicy(Read(path), path, PolicySource::kSite);
  REQUIRE_MESSAGE(policy.ok(), ToString(policy.status()));
  return *std::move(policy);
}

Facts LegalFacts() {
  auto facts = ParseFacts(Read("/deploy/legal-facts.toml"), "legal-facts.toml");
  REQUIRE_MESSAGE(facts.ok(), ToString(facts.status()));
  return *std::move(facts);
}

const std::string kUs = "/deploy/policies/eu-us-secure-aggregation/site.clinic-de.policy.toml";
const std::string kEhds = "/deploy/policies/ehds-permit/site.tampere.policy.toml";
const WallTime kNow = *ParseTime("2026-12-15T00:00:00Z");

}  // namespace

TEST_CASE("Exports: the starter policies come out as in tests/golden/policy_export") {
  struct Case {
    std::string name;
    std::string site;
    StatusOr<std::string> (*make)(const ExportSource&);
  };
  const auto cedar = [](const ExportSource& source) { return ExportCedar(source, kNow); };
  const Case cases[] = {{"clinic-de.dpv.jsonld", kUs, ExportDpv},
                        {"clinic-de.odrl.jsonld", kUs, ExportOdrl},
                        {"clinic-de.cedar", kUs, cedar},
                        {"tampere.dpv.jsonld", kEhds, ExportDpv},
                        {"tampere.odrl.jsonld", kEhds, ExportOdrl},
                        {"tampere.cedar", kEhds, cedar}};
  const Facts facts = LegalFacts();
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Policy site = Site(c.site);
    const Effective effective = FromPolicy(site, facts);

    const auto text = c.make({.site = site, .effective = effective});

    REQUIRE_MESSAGE(text.ok(), ToString(text.status()));
    CHECK(*text == Read("/tests/golden/policy_export/" + c.name));
  }
  CHECK(ExportCedarSchema() == Read("/tests/golden/policy_export/domicile.cedarschema"));
}

TEST_CASE("Exports: every key of the effective policy is known, and one more is an error") {
  const Policy site = Site(kUs);
  const Effective effective = FromPolicy(site, LegalFacts());
  auto datasets = internal::FoldedDatasets(effective);
  REQUIRE(datasets.ok());
  JsonObject folded = *datasets->at("stroke").TryObject();
  const auto conditions = internal::ConditionsOf(folded);
  REQUIRE_MESSAGE(conditions.ok(), ToString(conditions.status()));
  // A table that lost its rows must not pass.
  CHECK(conditions->size() > 30);

  folded.emplace("a_key_of_tomorrow", 1);

  CHECK(internal::ConditionsOf(folded).status().code() == StatusCode::kInternal);
}

TEST_CASE("Exports: what a target cannot say stands in its output") {
  const Policy site = Site(kUs);
  const Effective effective = FromPolicy(site, LegalFacts());
  const ExportSource source = {.site = site, .effective = effective};
  const auto holds = [](const std::string& text, const std::vector<std::string_view>& sentences) {
    CHECK(!sentences.empty());
    return std::all_of(sentences.begin(), sentences.end(), [&text](std::string_view sentence) {
      return text.find(sentence) != std::string::npos;
    });
  };

  CHECK(holds(*ExportDpv(source), DpvCannotSay()));
  CHECK(holds(*ExportOdrl(source), OdrlCannotSay()));
  CHECK(holds(*ExportCedar(source, kNow), CedarCannotSay()));
}

TEST_CASE("Exports: private names leave only when asked for") {
  const Policy site = Site(kUs);
  const Effective effective = FromPolicy(site, LegalFacts());
  const std::string assessment = site.datasets.front().dpia->id;

  const auto open = ExportDpv({.site = site, .effective = effective, .with_private = true});
  const auto closed = ExportDpv({.site = site, .effective = effective});

  CHECK(open->find(assessment) != std::string::npos);
  CHECK(closed->find(assessment) == std::string::npos);
  CHECK(closed->find(site.datasets.front().name) == std::string::npos);
  CHECK(
      ExportOdrl({.site = site, .effective = effective, .with_private = true})->find(assessment) ==
      std::string::npos);
}

TEST_CASE("Exports: a list that allows nothing is a prohibition in ODRL and false in Cedar") {
  Policy site = Site(kUs);
  site.rules.front().recipients = std::set<std::string>{};
  const Effective effective = FromPolicy(site, LegalFacts());
  const ExportSource source = {.site = site, .effective = effective};

  const auto odrl = nlohmann::json::parse(*ExportOdrl(source));

  CHECK(odrl.at("permission").size() == 1);  // to send; none to release
  const auto& prohibitions = odrl.at("prohibition");
  CHECK(std::any_of(prohibitions.begin(), prohibitions.end(), [](const auto& rule) {
    return !rule.contains("constraint") &&
           rule.at("target") == "urn:domicile:site/clinic-de#dataset-stroke-models";
  }));
  CHECK(ExportCedar(source, kNow)->find("&&\n  false &&") != std::string::npos);
}

TEST_CASE("Exports: a bloc of controlling places without facts is refused by name") {
  const Policy site = Site("/deploy/policies/eu-hospitals/site.lyon.policy.toml");
  const Effective effective = FromPolicy(site, Facts{});

  const auto cedar = ExportCedar({.site = site, .effective = effective}, kNow);

  CHECK(cedar.status().code() == StatusCode::kFailedPrecondition);
  CHECK(Message(cedar.status()).find("`EEA` in aggregator_control") != std::string_view::npos);
}

TEST_CASE("Exports: a policy without datasets is refused") {
  const auto federation = ParsePolicy(Read("/deploy/policies/eu-hospitals/federation.policy.toml"),
                                      "federation", PolicySource::kFederation);
  REQUIRE(federation.ok());
  const Effective effective = FromPolicy(*federation, LegalFacts());

  CHECK(ExportDpv({.site = *federation, .effective = effective}).status().code() ==
        StatusCode::kInvalidArgument);
}

TEST_CASE("Exports: the places of Cedar are in their countries and, on the day, in their blocs") {
  const Policy site = Site(kUs);
  const Effective effective = FromPolicy(site, LegalFacts());
  const ExportSource source = {.site = site, .effective = effective};
  const auto parents = [&source](std::string_view place, std::string_view day) {
    const auto entities = nlohmann::json::parse(*ExportCedarEntities(source, *ParseTime(day)));
    std::vector<std::string> ids;
    for (const auto& entity : entities) {
      if (entity.at("uid").at("id") == place) {
        for (const auto& parent : entity.at("parents")) {
          ids.push_back(parent.at("id"));
        }
      }
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  };

  CHECK(parents("RE", "2026-12-15T00:00:00Z") == std::vector<std::string>{"EEA", "EU"});
  CHECK(parents("NO", "2026-12-15T00:00:00Z") == std::vector<std::string>{"EEA"});
  CHECK(parents("GB", "2020-01-31T00:00:00Z") == std::vector<std::string>{"EEA", "EU"});
  CHECK(parents("GB", "2020-02-01T00:00:00Z").empty());
  CHECK(parents("GL", "2026-12-15T00:00:00Z").empty());
  CHECK(parents("CA-QC", "2026-12-15T00:00:00Z") == std::vector<std::string>{"CA"});
}

}  // namespace domicile::policy

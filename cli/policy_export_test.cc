#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "cli/testing_outcome.h"

namespace domicile::cli {
namespace {

const std::string kDeploy = std::string(DOMICILE_SOURCE_DIR) + "/deploy/";
const std::string kStarter = kDeploy + "policies/eu-us-secure-aggregation/";
const std::string kSite = kStarter + "site.clinic-de.policy.toml";
const std::string kGolden = std::string(DOMICILE_SOURCE_DIR) + "/tests/golden/policy_export/";

// On the day of the golden files.
Outcome RunThen(const std::vector<std::string>& args) {
  return RunWith(args, "2026-12-15T00:00:00Z");
}

std::string Read(const std::string& path) {
  auto text = ReadFile(path, 1U << 20U);
  REQUIRE_MESSAGE(text.ok(), ToString(text.status()));
  return *std::move(text);
}

}  // namespace

TEST_CASE("policy export: each format is printed, and is what the golden files hold") {
  struct Case {
    std::string format;
    std::string golden;
  };
  const Case cases[] = {{"dpv", "clinic-de.dpv.jsonld"},
                        {"odrl", "clinic-de.odrl.jsonld"},
                        {"cedar", "clinic-de.cedar"},
                        {"cedar-schema", "domicile.cedarschema"}};
  for (const Case& c : cases) {
    CAPTURE(c.format);

    const Outcome outcome = RunThen(
        {"policy", "export", kSite, "--format", c.format, "--facts", kDeploy + "legal-facts.toml"});

    CHECK(outcome.exit == 0);
    CHECK(outcome.err.empty());
    CHECK(outcome.out == Read(kGolden + c.golden));
  }
}

TEST_CASE("policy export: met with the other policies, it only gets narrower") {
  const std::vector<std::string> alone = {
      "policy", "export", kSite, "--format", "cedar", "--facts", kDeploy + "legal-facts.toml"};
  std::vector<std::string> together = alone;
  together.insert(together.end(), {"--federation", kStarter + "federation.policy.toml",
                                   "--aggregator", kStarter + "aggregator.policy.toml"});

  const Outcome site = RunThen(alone);
  const Outcome all = RunThen(together);

  REQUIRE(all.exit == 0);
  // The federation closes the countries of concern; the site alone does not.
  CHECK(site.out.find("deny_locations-stroke") == std::string::npos);
  CHECK(all.out.find("deny_locations-stroke") != std::string::npos);
}

TEST_CASE("policy export: a file is written where -o says, and private names only if asked for") {
  const std::string path =
      (std::filesystem::temp_directory_path() / "domicile_policy_export_test.jsonld").string();

  const Outcome outcome =
      RunThen({"policy", "export", kSite, "--format", "dpv", "--private", "-o", path});

  CHECK(outcome.exit == 0);
  CHECK(outcome.out.empty());
  const std::string text = Read(path);
  CHECK(text.find("TO BE FILLED IN: data protection impact assessment") != std::string::npos);
  std::filesystem::remove(path);
}

TEST_CASE("policy export: wrong use is told, and nothing is printed") {
  struct Case {
    std::string name;
    std::vector<std::string> args;
    int exit;
    std::string says;
  };
  const Case cases[] = {
      {"an unknown format", {kSite, "--format", "rdf"}, 2, "`--format` must be dpv, odrl, cedar"},
      {"no site policy",
       {kStarter + "federation.policy.toml", "--format", "dpv"},
       2,
       "federation.policy.toml"},
      {"no such file", {kStarter + "nobody.toml", "--format", "dpv"}, 3, "nobody.toml"},
      {"blocs without facts",
       {kDeploy + "policies/eu-hospitals/site.lyon.policy.toml", "--format", "cedar"},
       3,
       "give --facts"}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    std::vector<std::string> args = {"policy", "export"};
    args.insert(args.end(), c.args.begin(), c.args.end());

    const Outcome outcome = RunThen(args);

    CAPTURE(outcome.err);
    CHECK(outcome.exit == c.exit);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find(c.says) != std::string::npos);
  }
}

TEST_CASE("policy schema: what is printed is the file in docs/formats") {
  const Outcome outcome = RunThen({"policy", "schema"});

  CHECK(outcome.exit == 0);
  CHECK(outcome.out == Read(std::string(DOMICILE_SOURCE_DIR) + "/docs/formats/policy.schema.json"));
}

}  // namespace domicile::cli

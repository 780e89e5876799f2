#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/testing_outcome.h"

namespace domicile::cli {
namespace {

const std::string kSource = DOMICILE_SOURCE_DIR;
const std::string kHeart = kSource + "/deploy/examples/heart";
constexpr std::string_view kNow = "2026-12-01T00:00:00Z";

// The outcome with the folder of the sources left out, so that it is the same everywhere.
Outcome RunHere(const std::vector<std::string>& args, std::string_view now = kNow) {
  Outcome outcome = RunWith(args, now);
  std::string& text = outcome.out;
  for (std::size_t at = text.find(kSource + "/"); at != std::string::npos;
       at = text.find(kSource + "/")) {
    text.erase(at, kSource.size() + 1);
  }
  return outcome;
}

// What does not depend on how many decisions a search needed, nor on the bytes of the sources.
std::string Stable(const std::string& text) {
  std::string stable;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool varies = line.ends_with(" decisions") || line.find("inputs sha256") == 2;
    stable += varies ? "" : line + "\n";
  }
  return stable;
}

void CheckGolden(const std::string& name, const Outcome& outcome) {
  CAPTURE(name);
  CAPTURE(outcome.err);
  const auto golden = ReadFile(kSource + "/tests/golden/policy/" + name + ".txt", 1U << 20U);
  REQUIRE(golden.ok());
  CHECK(Stable(outcome.out) == *golden);
}

}  // namespace

TEST_CASE("policy: the printed answers about the example are those of the golden files") {
  CheckGolden("reach_never",
              RunHere({"policy", "reach", kHeart, "--subjects", "HU", "--to", "BR"}));
  CheckGolden("reach_way", RunHere({"policy", "reach", kHeart, "--subjects", "HU", "--to", "CH"}));
  CheckGolden("who_can", RunHere({"policy", "who-can", kHeart, "--dataset", "heart", "--site",
                                  "site/budapest"}));
  CheckGolden("conflicts", RunHere({"policy", "conflicts", kHeart}));
  CheckGolden("expiring", RunHere({"policy", "expiring", kHeart, "--within", "2028-01-01"}));
  CheckGolden("simulate",
              RunHere({"policy", "simulate", kHeart, "--fact-revoked", "adequacy:eu:CH"}));
}

TEST_CASE("policy reach: never is done, a way is not so, and JSON says the same") {
  const Outcome never = RunHere({"policy", "reach", kHeart, "--to", "BR"});
  CAPTURE(never.err);
  CHECK(never.exit == 0);
  CHECK(
      never.out.starts_with("never: 4 datasets, none can reach BR, as the place of a receiver or "
                            "the one that controls it\n"));

  const std::vector<std::string> to_us = {"policy", "reach", kHeart, "--subjects",
                                          "HU",     "--to",  "US"};
  CHECK(RunHere(to_us).exit == 1);
  std::vector<std::string> with_json = to_us;
  with_json.emplace_back("--json");
  const auto json = ParseJson(RunHere(with_json).out);
  REQUIRE(json.ok());
  CHECK(*json->Find("reaches")->TryBool());
  CHECK(json->Find("datasets")->TryArray()->size() == 1);
}

TEST_CASE("policy reach: after everything has expired nothing reaches anywhere") {
  CHECK(RunHere({"policy", "reach", kHeart, "--subjects", "HU", "--to", "CH", "--at", "2027-11-30"})
            .exit == 0);
}

TEST_CASE("policy reach: what cannot be asked is bad input") {
  CHECK(RunHere({"policy", "reach", kHeart, "--to", "UK"}).exit == 2);
  CHECK(RunHere({"policy", "reach", kHeart, "--to", "BR", "--kind", "delta"}).exit == 2);
  CHECK(RunHere({"policy", "reach", kHeart, "--to", "BR", "--subjects", "NZ"}).exit == 2);
  CHECK(RunHere({"policy", "reach", kHeart + "/site.budapest.policy.toml", "--to", "BR"}).exit ==
        2);  // no legal facts
  CHECK(RunHere({"policy", "reach", kHeart + "/job.toml", "--to", "BR"}).exit == 2);
  CHECK(RunHere({"policy", "reach", kHeart + "/missing.toml", "--to", "BR"}).exit == 3);
}

TEST_CASE("policy diff: a policy tightens itself, and a site is not another") {
  const std::string facts = kHeart + "/legal-facts.toml";
  const std::string budapest = kHeart + "/site.budapest.policy.toml";
  const Outcome same = RunHere({"policy", "diff", budapest, budapest, "--facts", facts});
  CAPTURE(same.err);
  CHECK(same.exit == 0);
  CHECK(same.out.starts_with("the same answers"));

  const Outcome other = RunHere(
      {"policy", "diff", budapest, kHeart + "/site.zurich-basel.policy.toml", "--facts", facts});
  CHECK(other.exit == 1);
  CHECK(other.out.find("gained") != std::string::npos);
}

TEST_CASE("policy who-can: an unknown dataset is bad input") {
  CHECK(RunHere({"policy", "who-can", kHeart, "--dataset", "lungs"}).exit == 2);
}

TEST_CASE("policy expiring: what ends in time is not so") {
  CHECK(RunHere({"policy", "expiring", kHeart, "--within", "30d"}).exit == 0);
  const Outcome soon =
      RunHere({"policy", "expiring", kHeart, "--within", "30d", "--at", "2027-10-15"});
  CHECK(soon.exit == 1);
  CHECK(soon.out.starts_with("2027-10-31"));
}

TEST_CASE("policy simulate: a fact that does not exist is bad input, with the nearest id") {
  const Outcome outcome =
      RunHere({"policy", "simulate", kHeart, "--fact-revoked", "adequacy-eu-cx"});
  CHECK(outcome.exit == 2);
  CHECK(outcome.err.find("adequacy-eu-ch") != std::string::npos);
}

TEST_CASE("policy test: the corpus comes out as written, and a wrong case is not so") {
  const std::string corpus = kSource + "/tests/policy_corpus";
  const Outcome outcome =
      RunHere({"policy", "test", corpus, "--root", kSource, "--no-mutation", "--json"});
  CAPTURE(outcome.out);
  CHECK(outcome.exit == 0);
  const auto json = ParseJson(outcome.out);
  REQUIRE(json.ok());
  CHECK(*json->Find("failed")->TryInt() == 0);
  CHECK(*json->Find("cases")->TryInt() >= 300);

  CHECK(RunHere({"policy", "test", corpus + "/README.md", "--root", kSource}).exit == 2);
}

TEST_CASE("policy test: survivors are named by file and line, and a low score is not so") {
  const std::string folder = kSource + "/tests/golden/policy_cases";
  const Outcome outcome = RunHere({"policy", "test", folder});
  CAPTURE(outcome.err);
  CAPTURE(outcome.out);
  CHECK(outcome.exit == 0);
  CHECK(outcome.out.find("2 of 2 cases come out as written") != std::string::npos);
  CHECK(outcome.out.find("site.policy.toml:") != std::string::npos);
  CHECK(outcome.out.find("limit.rounds") != std::string::npos);  // no case asks for more rounds
  CHECK(outcome.out.find(", allow.aggregator_locations\n") == std::string::npos);  // one does
  CHECK(RunHere({"policy", "test", folder, "--min-score", "99"}).exit == 1);
  CHECK(RunHere({"policy", "test", folder, "--min-score", "1"}).exit == 0);
}

}  // namespace domicile::cli

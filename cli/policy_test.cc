#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/json.h"
#include "cli/testing_outcome.h"

namespace domicile::cli {
namespace {

const std::string kHeart = std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/heart/";

constexpr std::string_view kNow = "2026-12-01T00:00:00Z";

}  // namespace

TEST_CASE("policy check: each source of the example is well formed and told by its tables") {
  struct Case {
    std::string file;
    std::string source;
    std::string says;
  };
  const Case cases[] = {
      {"site.budapest.policy.toml", "", "site policy `site/budapest` version 1"},
      {"site.cleveland.policy.toml", "", "1 datasets, 1 rules"},
      {"site.zurich-basel.policy.toml", "site", "site policy"},
      {"site.long-beach.policy.toml", "", "site policy"},
      {"federation.policy.toml", "", "federation policy"},
      {"aggregator.policy.toml", "aggregator", "aggregator policy `aggregator/main`"},
      {"legal-facts.toml", "", "legal facts `facts/heart-example`"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.file);
    std::vector<std::string> args = {"policy", "check", kHeart + c.file};
    if (!c.source.empty()) {
      args.insert(args.end(), {"--as", c.source});
    }
    const Outcome outcome = RunWith(args, kNow);
    CAPTURE(outcome.err);
    CHECK(outcome.exit == 0);
    CHECK(outcome.out.find(c.says) != std::string::npos);
    args.emplace_back("--json");
    const auto json = ParseJson(RunWith(args, kNow).out);
    REQUIRE(json.ok());
    CHECK(json->Find("expired") != nullptr);
  }
}

TEST_CASE("policy check: what is out of date is not so, what is malformed is bad input") {
  const std::string site = kHeart + "site.budapest.policy.toml";
  CHECK(RunWith({"policy", "check", site}, "2027-10-31T00:00:00Z").exit == 1);
  CHECK(RunWith({"policy", "check", kHeart + "legal-facts.toml"}, "2027-10-31T00:00:00Z").exit ==
        1);

  const Outcome job = RunWith({"policy", "check", kHeart + "job.toml"}, kNow);
  CHECK(job.exit == 2);
  CHECK(job.err.find("job.toml:") != std::string::npos);
  CHECK(RunWith({"policy", "check", site, "--as", "federation"}, kNow).exit == 2);
  CHECK(RunWith({"policy", "check", site, "--as", "hospital"}, kNow).exit == 2);
  CHECK(RunWith({"policy", "check", site + ".missing"}, kNow).exit == 3);
}

TEST_CASE("policy explain: allow is done, deny is not so, and both say why") {
  const std::string request = kHeart + "update.request.toml";

  const Outcome allowed = RunWith(
      {"policy", "explain", kHeart + "site.budapest.policy.toml", "--request", request}, kNow);
  CAPTURE(allowed.err);
  CHECK(allowed.exit == 0);
  // A dry run cannot be taken for a decision.
  CHECK(allowed.out.starts_with("SIMULATED: "));
  CHECK(allowed.out.find("\nallow\n") != std::string::npos);
  CHECK(allowed.out.find("site.budapest.policy.toml:") != std::string::npos);
  CHECK(allowed.out.find("obligations: clip to L2 norm 4") != std::string::npos);

  const std::string other = kHeart + "site.zurich-basel.policy.toml";
  const Outcome denied = RunWith({"policy", "explain", other, "--request", request}, kNow);
  CHECK(denied.exit == 1);
  CHECK(denied.out.find("JURISDICTION-MISMATCH") != std::string::npos);

  const Outcome json = RunWith({"policy", "explain", other, "--request", request, "--json"}, kNow);
  CHECK(json.exit == 1);
  const auto facts = ParseJson(json.out);
  REQUIRE(facts.ok());
  CHECK(*facts->Find("result")->TryString() == "deny");
  CHECK(*facts->Find("event")->TryString() == "decision.simulated");
}

TEST_CASE("policy explain: a request that cannot be read is bad input, not a denial") {
  const std::string site = kHeart + "site.budapest.policy.toml";
  const Outcome outcome =
      RunWith({"policy", "explain", site, "--request", kHeart + "job.toml"}, kNow);
  CHECK(outcome.exit == 2);
  CHECK(outcome.err.find("job.toml:") != std::string::npos);
  CHECK(RunWith({"policy", "explain", site}, kNow).exit == 2);
}

}  // namespace domicile::cli

#include "policy/language/statement.h"

#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "base/json.h"
#include "policy/language/parse.h"

namespace domicile::policy {
namespace {

const std::string kFolder = std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/heart/";

Policy SitePolicy(const std::string& name) {
  const std::string path = kFolder + "site." + name + ".policy.toml";
  const auto text = ReadFile(path, 1U << 20U);
  REQUIRE(text.ok());
  auto policy = ParsePolicy(*text, "a-private-path.toml", PolicySource::kSite);
  REQUIRE_MESSAGE(policy.ok(), ToString(policy.status()));
  return *std::move(policy);
}

}  // namespace

TEST_CASE("Statement: what is written is read back, and written the same") {
  for (const std::string name : {"cleveland", "budapest", "zurich-basel", "long-beach"}) {
    CAPTURE(name);
    const std::string text = StatementText(SitePolicy(name));

    const auto read = ParseStatement(text);

    REQUIRE_MESSAGE(read.ok(), ToString(read.status()));
    CHECK(StatementText(*read) == text);
    CHECK(read->file == "site statement");
    CHECK(read->source == PolicySource::kSite);
  }
}

TEST_CASE("Statement: no private name is in it") {
  Policy policy = SitePolicy("budapest");
  policy.datasets[0].name = "PRIVATE dataset";
  policy.datasets[0].dpia->id = "PRIVATE document";
  policy.identity.issuer = "PRIVATE issuer";
  policy.identity.signers = {"PRIVATE signer"};
  policy.approvals->keys = {"PRIVATE key"};
  for (TransferGround& ground : policy.rules[0].transfers) {
    ground.ref = "PRIVATE contract";
  }

  const std::string text = StatementText(policy);

  CHECK(text.find("PRIVATE") == std::string::npos);
  CHECK(text.find("a-private-path") == std::string::npos);
  CHECK(text.find(policy.datasets[0].dpia->sha256) == std::string::npos);
  CHECK(text.find("\"alias\":\"heart\"") != std::string::npos);
}

TEST_CASE("Statement: the newer keys travel, and any other spelling of them is refused") {
  Policy policy = SitePolicy("budapest");
  policy.identity.legal_facts = std::string(64, 'a');
  policy.identity.cooldown = Duration(86'400);
  policy.datasets[0].subjects_count = SubjectsCount::kBelow1000;
  policy.datasets[0].tia = DocumentRef{"PRIVATE", std::string(64, 'b'), policy.identity.expires};
  policy.rules[0].deny_outputs = std::set<Output>{};
  policy.rules[0].deny_purposes = {Purpose::kMarketing};
  policy.rules[0].evidence = LocationEvidence::kAttested;
  policy.rules[0].budget_window = kLifeOfDataset;
  policy.rules[0].epsilon_total = 4;
  policy.retention.audit_min = Duration(6LL * 366 * 86'400);
  policy.audit = {2, Duration(3600), 7};
  policy.on_withdrawal = ErasureRule::kStopUse;
  policy.max_skew = Duration(30);
  policy.approvals->required = {{ApprovalRole::kDpo, 2, true}};
  const std::string text = StatementText(policy);
  CAPTURE(text);
  REQUIRE(ParseStatement(text).ok());
  CHECK(text.find("PRIVATE") == std::string::npos);
  CHECK(text.find(std::string(64, 'b')) == std::string::npos);

  struct Case {
    std::string name;
    std::string from;
    std::string to;
  };
  const Case cases[] = {
      {"a day in hours", "\"cooldown\":\"1d\"", "\"cooldown\":\"24h\""},
      {"no duration", "\"cooldown\":\"1d\"", "\"cooldown\":\"0d\""},
      {"life elsewhere", "\"cooldown\":\"1d\"", "\"cooldown\":\"life\""},
      {"a short digest", std::string(64, 'a'), std::string(63, 'a')},
      {"a digest in capitals", std::string(64, 'a'), std::string(64, 'A')},
      {"a bucket of its own", "\"100-1000\"", "\"100-2000\""},
      {"an unknown output", "\"outputs\":[]", "\"outputs\":[\"all\"]"},
      {"an unknown purpose", "[\"marketing\"]", "[\"sales\"]"},
      {"a purpose twice", "[\"marketing\"]", "[\"marketing\",\"marketing\"]"},
      {"an unknown evidence", "\"attested\"", "\"gps\""},
      {"a decimal with a zero", "\"epsilon_total\":\"4\"", "\"epsilon_total\":\"4.0\""},
      {"an epsilon below zero", "\"epsilon_total\":\"4\"", "\"epsilon_total\":\"-4\""},
      {"a window that is no duration", "\"life\"", "\"forever\""},
      {"no truth value", "\"distinct_org\":true", "\"distinct_org\":1"},
      {"a section without its line", "\"line\":7,", ""},
      {"too many witnesses", "\"witnesses_min\":2", "\"witnesses_min\":1001"},
      {"another rule for erasure", "\"stop_use\"", "\"stop\""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    std::string changed = text;
    const std::size_t at = changed.find(c.from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, c.from.size(), c.to);
    CHECK(ParseStatement(changed).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("Statement: any other spelling of the same policy is refused") {
  const std::string text = StatementText(SitePolicy("budapest"));
  struct Case {
    std::string name;
    std::string from;
    std::string to;
  };
  const Case cases[] = {
      {"white space", "{", "{ "},
      {"another decimal", "\"clip_l2\":\"4\"", "\"clip_l2\":\"4.0\""},
      {"unsorted codes", "\"delta.plain\",\"metrics.aggregate\"",
       "\"metrics.aggregate\",\"delta.plain\""},
      {"a code twice", "\"eu-gdpr\"]", "\"eu-gdpr\",\"eu-gdpr\"]"},
      {"an unknown key", "\"alias\":", "\"aliaz\":1,\"alias\":"},
      {"an unknown code", "\"eu-gdpr\"", "\"eu-gdqr\""},
      {"a bloc as a place", "\"jurisdiction\":\"HU\"", "\"jurisdiction\":\"EU\""},
      {"two contributors", "\"min_contributors\":3", "\"min_contributors\":2"},
      {"another version", "\"v\":1", "\"v\":2"},
      {"another kind", "site-policy-statement", "federation-policy"},
      {"an unknown language", "\"schema\":1", "\"schema\":2"},
      {"an empty deny", "\"dataset\":\"heart\"", "\"dataset\":\"heart\",\"deny\":{}"},
      {"ten years", "\"expires\":\"2027", "\"expires\":\"2037"},
      {"a rule for nothing", "\"dataset\":\"heart\"", "\"dataset\":\"hearts\""},
      {"cut short", "}", ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    std::string changed = text;
    const std::size_t at = changed.find(c.from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, c.from.size(), c.to);
    CHECK(ParseStatement(changed).status().code() == StatusCode::kInvalidArgument);
  }
  CHECK(!ParseStatement("").ok());
  CHECK(!ParseStatement("[]").ok());
  CHECK(!ParseStatement(std::string((1U << 20U) + 1, ' ')).ok());
}

}  // namespace domicile::policy

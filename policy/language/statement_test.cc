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

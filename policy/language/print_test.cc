#include "policy/language/print.h"

#include <map>
#include <random>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "base/text.h"
#include "policy/language/keys.h"
#include "policy/language/parse.h"
#include "policy/language/random_policy.h"
#include "policy/language/statement.h"

namespace domicile::policy {
namespace {

constexpr PolicySource kSources[] = {PolicySource::kSite, PolicySource::kFederation,
                                     PolicySource::kAggregator};

// The keys that a printed policy writes, with dots: `rule.allow.models`.
std::set<std::string> KeysOf(const std::string& text) {
  std::set<std::string> keys;
  std::string table;
  for (const std::string_view line : Split(text, '\n')) {
    if (line.starts_with("[")) {
      table = line.substr(line.find_first_not_of('['));
      table = table.substr(0, table.find(']'));
      continue;
    }
    const std::size_t end = line.find(" = ");
    if (end == std::string_view::npos) {
      continue;
    }
    const std::string key = table + "." + std::string(line.substr(0, end));
    keys.insert(key);
    for (const std::string_view inner :
         {"id", "sha256", "valid_until", "role", "count", "distinct_org"}) {
      if (line.find("{ " + std::string(inner) + " = ") != std::string_view::npos ||
          line.find(", " + std::string(inner) + " = ") != std::string_view::npos) {
        keys.insert(key + "." + std::string(inner));
      }
    }
  }
  return keys;
}

// What of a policy is not in its statement.
Policy WithoutPrivate(Policy policy) {
  policy.file = "site statement";
  policy.identity.issuer.clear();
  policy.identity.signers.clear();
  for (PolicyDataset& dataset : policy.datasets) {
    dataset.name.clear();
    for (auto* document : {&dataset.dpia, &dataset.tia, &dataset.permit, &dataset.baa}) {
      if (*document) {
        *document = DocumentRef{"", "", (*document)->valid_until};
      }
    }
  }
  for (Rule& rule : policy.rules) {
    for (TransferGround& ground : rule.transfers) {
      ground.ref.clear();
    }
  }
  if (policy.approvals) {
    policy.approvals->keys.clear();
  }
  return policy;
}

}  // namespace

TEST_CASE("PrintPolicy: what is printed is read back as the same policy, whatever keys it has") {
  std::mt19937_64 engine(20261130);
  for (int i = 0; i < 1500; ++i) {
    const PolicySource source = kSources[i % 3];
    const Policy policy = RandomPolicy(engine, source);
    const std::string text = PrintPolicy(policy);
    CAPTURE(text);

    const auto read = ParsePolicy(text, "printed.toml", source);

    REQUIRE_MESSAGE(read.ok(), ToString(read.status()));
    REQUIRE(WithoutLines(*read) == policy);
    REQUIRE(PrintPolicy(*read) == text);
  }
}

TEST_CASE("PrintPolicy: over many policies every key of the language is written, and no other") {
  std::mt19937_64 engine(20261130);
  std::set<std::string> seen;
  for (int i = 0; i < 300; ++i) {
    seen.merge(KeysOf(PrintPolicy(RandomPolicy(engine, kSources[i % 3]))));
  }

  for (const std::string_view key : kPolicyKeys) {
    CAPTURE(key);
    CHECK(seen.contains(std::string(key)));
    seen.erase(std::string(key));
  }
  const std::set<std::string> tables = {"dataset.refs.dpia", "dataset.refs.tia",
                                        "dataset.refs.permit", "dataset.refs.baa",
                                        "approvals.required"};
  CHECK(seen == tables);
}

TEST_CASE("PrintPolicy: the file of every key, written by hand, has every key") {
  const auto text =
      ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/tests/fuzz/corpus/policy_file/every_key.toml",
               1U << 16U);
  REQUIRE(text.ok());

  const auto policy = ParsePolicy(*text, "every_key.toml", PolicySource::kSite);

  REQUIRE_MESSAGE(policy.ok(), ToString(policy.status()));
  const std::set<std::string> keys = KeysOf(PrintPolicy(*policy));
  for (const std::string_view key : kPolicyKeys) {
    CAPTURE(key);
    CHECK(keys.contains(std::string(key)));
  }
}

TEST_CASE("PrintPolicy: times finer than a millisecond are kept") {
  std::mt19937_64 engine(1);
  Policy policy = RandomPolicy(engine, PolicySource::kFederation);
  policy.identity.not_before = *ParseTime("2026-12-01T00:00:00.000000001Z");
  policy.identity.expires = *ParseTime("2026-12-02T00:00:00.5Z");

  const auto read = ParsePolicy(PrintPolicy(policy), "f.toml", PolicySource::kFederation);

  REQUIRE(read.ok());
  CHECK(WithoutLines(*read) == policy);
}

TEST_CASE("Statement: any policy's statement is read back as all of it that is not private") {
  std::mt19937_64 engine(4);
  for (int i = 0; i < 1000; ++i) {
    const auto policy = ParsePolicy(PrintPolicy(RandomPolicy(engine, PolicySource::kSite)),
                                    "site.toml", PolicySource::kSite);
    REQUIRE(policy.ok());
    const std::string text = StatementText(*policy);
    CAPTURE(text);

    const auto read = ParseStatement(text);

    REQUIRE_MESSAGE(read.ok(), ToString(read.status()));
    REQUIRE(WithoutLines(*read) == WithoutLines(WithoutPrivate(*policy)));
    REQUIRE(StatementText(*read) == text);
  }
}

TEST_CASE("Statement: a text with a slip is refused, or is the statement of another policy") {
  std::mt19937_64 engine(6);
  constexpr std::string_view kBytes = "0123456789\"{}[],:.- aeEtzZ\\\x01\xff";
  int refused = 0;
  int other = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = StatementText(RandomPolicy(engine, PolicySource::kSite));
    std::string changed = text;
    const std::size_t at = engine() % changed.size();
    switch (engine() % 3) {
      case 0:
        changed[at] = kBytes[engine() % kBytes.size()];
        break;
      case 1:
        changed.erase(at, 1);
        break;
      default:
        changed.insert(at, 1, kBytes[engine() % kBytes.size()]);
        break;
    }
    const auto read = ParseStatement(changed);
    if (!read.ok()) {
      ++refused;
      CHECK(read.status().code() == StatusCode::kInvalidArgument);
      continue;
    }
    CAPTURE(changed);
    CHECK(StatementText(*read) == changed);
    other += changed == text ? 0 : 1;
  }
  CHECK(refused > 1500);
  CHECK(other > 50);  // a digit of a number, a letter of a name
}

TEST_CASE("Statement: two policies have one statement only if they differ in what is private") {
  std::mt19937_64 engine(5);
  std::map<std::string, Policy> seen;
  for (int i = 0; i < 300; ++i) {
    const Policy policy = RandomPolicy(engine, PolicySource::kSite);
    const auto [at, is_new] = seen.emplace(StatementText(policy), policy);
    CHECK((is_new || WithoutPrivate(at->second) == WithoutPrivate(policy)));
  }
  CHECK(seen.size() == 300);
}

}  // namespace domicile::policy

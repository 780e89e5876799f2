#include "policy/exporting/schema.h"

#include <set>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "policy/language/facts.h"
#include "policy/language/keys.h"
#include "policy/language/vocabulary.h"

namespace domicile::policy {
namespace {

using nlohmann::json;

// What stands behind references, lists and texts around them.
const json& Resolve(const json& schema, const json& node) {
  if (node.contains("$ref")) {
    const std::string ref = node.at("$ref");
    return Resolve(schema, schema.at("definitions").at(ref.substr(ref.rfind('/') + 1)));
  }
  if (node.contains("allOf") && !node.contains("properties")) {
    return Resolve(schema, node.at("allOf").at(0));
  }
  return node.value("type", "") == "array" ? Resolve(schema, node.at("items")) : node;
}

void Collect(const json& schema, const json& node, const std::string& path,
             std::set<std::string>& keys) {
  const json& table = Resolve(schema, node);
  if (!table.contains("properties")) {
    keys.insert(path);
    return;
  }
  CHECK(table.at("additionalProperties") == false);
  for (const auto& [key, child] : table.at("properties").items()) {
    Collect(schema, child, path.empty() ? key : path + "." + key, keys);
  }
}

std::set<std::string> KeysOf(const json& schema, const std::string& file) {
  std::set<std::string> keys;
  Collect(schema, schema.at("definitions").at(file), "", keys);
  return keys;
}

}  // namespace

TEST_CASE("Schema: the committed file is what the program prints") {
  const auto committed =
      ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/docs/formats/policy.schema.json", 1U << 20U);

  REQUIRE(committed.ok());
  CHECK(*committed == PolicySchema());
}

TEST_CASE("Schema: it has every key of the language and no other") {
  const json schema = json::parse(PolicySchema());

  CHECK(KeysOf(schema, "policy_file") ==
        std::set<std::string>(std::begin(kPolicyKeys), std::end(kPolicyKeys)));
  CHECK(KeysOf(schema, "facts_file") ==
        std::set<std::string>(std::begin(kFactsKeys), std::end(kFactsKeys)));
}

TEST_CASE("Schema: codes are those of the vocabulary") {
  const json schema = json::parse(PolicySchema());
  const json& rule =
      Resolve(schema, schema.at("definitions").at("policy_file").at("properties").at("rule"));

  const json& kinds =
      Resolve(schema, rule.at("properties").at("allow").at("properties").at("update_kinds"));

  CHECK(kinds.at("enum").size() == AllOf<UpdateKind>().size());
  const json& fact =
      Resolve(schema, schema.at("definitions").at("facts_file").at("properties").at("fact"));
  CHECK(fact.at("properties").at("kind").at("enum").size() ==
        static_cast<std::size_t>(FactKind::kNegativeList));
}

}  // namespace domicile::policy

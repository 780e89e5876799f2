#include "policy/language/statement.h"

#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "policy/language/parse.h"
#include "policy/language/statement_rule.h"
#include "policy/language/validate.h"

namespace domicile::policy {
namespace {

constexpr std::string_view kKind = "domicile.site-policy-statement";
constexpr std::int64_t kStatementVersion = 1;
constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;

Json IdentityJson(const PolicyIdentity& identity) {
  return JsonObject{{"id", identity.id},
                    {"version", identity.version},
                    {"schema", identity.schema},
                    {"not_before", PrintTime(identity.not_before)},
                    {"expires", PrintTime(identity.expires)},
                    {"threshold", identity.threshold}};
}

Json SiteJson(const SiteSection& site) {
  return JsonObject{{"jurisdiction", site.jurisdiction.text()},
                    {"control_jurisdictions", TextsJson(site.control_jurisdictions)},
                    {"location_evidence", std::string(Code(site.location_evidence))}};
}

Json DatasetJson(const PolicyDataset& dataset) {
  JsonObject json = {{"alias", dataset.alias.text()},
                     {"categories", CodesJson(dataset.categories)},
                     {"subject_jurisdictions", TextsJson(dataset.subject_jurisdictions)},
                     {"regimes", CodesJson(dataset.regimes)},
                     {"lawful_basis", dataset.lawful_basis},
                     {"purposes", CodesJson(dataset.purposes)},
                     {"line", dataset.line}};
  if (!dataset.special_category_basis.empty()) {
    json.emplace("special_category_basis", dataset.special_category_basis);
  }
  if (dataset.dpia) {
    json.emplace("dpia_valid_until", PrintTime(dataset.dpia->valid_until));
  }
  return json;
}

void AddSettings(const Policy& policy, JsonObject& json) {
  if (policy.model_recipients) {
    json.emplace("model", JsonObject{{"recipients", TextsJson(*policy.model_recipients)},
                                     {"line", policy.model_line}});
  }
  if (policy.approvals) {
    JsonArray required;
    for (const RequiredApproval& approval : policy.approvals->required) {
      required.emplace_back(
          JsonObject{{"role", std::string(Code(approval.role))}, {"count", approval.count}});
    }
    json.emplace("approvals",
                 JsonObject{{"required", std::move(required)}, {"line", policy.approvals->line}});
  }
  if (policy.sandbox_network) {
    json.emplace("sandbox", JsonObject{{"network", std::string(Code(*policy.sandbox_network))},
                                       {"line", policy.sandbox_line}});
  }
  if (policy.weights) {
    json.emplace("update", JsonObject{{"weights", std::string(Code(*policy.weights))},
                                      {"line", policy.weights_line}});
  }
}

PolicyIdentity ReadIdentity(JsonReader& statement) {
  JsonReader reader(statement.Object("policy"), "statement.policy");
  PolicyIdentity identity;
  identity.id = reader.String("id");
  identity.version = static_cast<std::uint64_t>(reader.Int("version", 1, kLargestJsonInteger));
  identity.schema = static_cast<std::uint32_t>(reader.Int("schema", 1, kPolicySchema));
  identity.not_before = ReadTime(reader, "not_before");
  identity.expires = ReadTime(reader, "expires");
  identity.threshold = static_cast<std::uint32_t>(reader.Int("threshold", 1, 1000));
  statement.Merge(reader.Finish());
  return identity;
}

SiteSection ReadSite(JsonReader& statement) {
  JsonReader reader(statement.Object("site"), "statement.site");
  SiteSection site;
  StatusOr<Jurisdiction> place = Jurisdiction::Parse(reader.String("jurisdiction"));
  reader.Merge(place.status());
  if (place.ok()) {
    site.jurisdiction = *std::move(place);
  }
  site.control_jurisdictions = ReadTexts<Jurisdiction>(reader, "control_jurisdictions");
  site.location_evidence = ReadCode<LocationEvidence>(reader, "location_evidence");
  statement.Merge(reader.Finish());
  return site;
}

PolicyDataset ReadDataset(const Json& json, JsonReader& statement) {
  JsonReader reader(json, "statement.datasets[]");
  PolicyDataset dataset;
  StatusOr<DatasetAlias> alias = DatasetAlias::Parse(reader.String("alias"));
  reader.Merge(alias.status());
  if (alias.ok()) {
    dataset.alias = *std::move(alias);
  }
  dataset.categories = ReadCodes<Category>(reader, "categories");
  dataset.subject_jurisdictions = ReadTexts<Jurisdiction>(reader, "subject_jurisdictions");
  dataset.regimes = ReadCodes<Regime>(reader, "regimes");
  dataset.lawful_basis = reader.String("lawful_basis");
  dataset.special_category_basis = reader.TryString("special_category_basis").value_or("");
  dataset.purposes = ReadCodes<Purpose>(reader, "purposes");
  if (reader.Has("dpia_valid_until")) {
    dataset.dpia = DocumentRef{"", "", ReadTime(reader, "dpia_valid_until")};
  }
  dataset.line = ReadLine(reader);
  statement.Merge(reader.Finish());
  return dataset;
}

ApprovalSection ReadApprovals(const Json& json, JsonReader& statement) {
  JsonReader reader(json, "statement.approvals");
  ApprovalSection approvals;
  for (const Json& item : reader.Array("required")) {
    JsonReader each(item, "statement.approvals.required[]");
    RequiredApproval approval;
    approval.role = ReadCode<ApprovalRole>(each, "role");
    approval.count = static_cast<std::uint32_t>(each.Int("count", 1, 100));
    approvals.required.push_back(approval);
    reader.Merge(each.Finish());
  }
  approvals.line = ReadLine(reader);
  statement.Merge(reader.Finish());
  return approvals;
}

void ReadSettings(JsonReader& statement, Policy& policy) {
  if (const Json* json = statement.TryObject("model")) {
    JsonReader reader(*json, "statement.model");
    policy.model_recipients = ReadTexts<Area>(reader, "recipients");
    policy.model_line = ReadLine(reader);
    statement.Merge(reader.Finish());
  }
  if (const Json* json = statement.TryObject("approvals")) {
    policy.approvals = ReadApprovals(*json, statement);
  }
  if (const Json* json = statement.TryObject("sandbox")) {
    JsonReader reader(*json, "statement.sandbox");
    policy.sandbox_network = ReadCode<SandboxNetwork>(reader, "network");
    policy.sandbox_line = ReadLine(reader);
    statement.Merge(reader.Finish());
  }
  if (const Json* json = statement.TryObject("update")) {
    JsonReader reader(*json, "statement.update");
    policy.weights = ReadCode<WeightRule>(reader, "weights");
    policy.weights_line = ReadLine(reader);
    statement.Merge(reader.Finish());
  }
}

StatusOr<Policy> Read(const Json& json) {
  JsonReader reader(json, "statement");
  reader.Int("v", kStatementVersion, kStatementVersion);
  if (reader.String("kind") != kKind) {
    reader.Fail("kind", "must be `" + std::string(kKind) + "`");
  }
  Policy policy;
  policy.source = PolicySource::kSite;
  policy.file = "site statement";
  policy.identity = ReadIdentity(reader);
  policy.site = ReadSite(reader);
  for (const Json& item : reader.Array("datasets")) {
    policy.datasets.push_back(ReadDataset(item, reader));
  }
  for (const Json& item : reader.Array("rules")) {
    StatusOr<Rule> rule = RuleFromJson(item);
    reader.Merge(rule.status());
    if (rule.ok()) {
      policy.rules.push_back(*std::move(rule));
    }
  }
  ReadSettings(reader, policy);
  RETURN_IF_ERROR(reader.Finish());
  return policy;
}

}  // namespace

std::string StatementText(const Policy& site) {
  DOMICILE_CHECK(site.source == PolicySource::kSite && site.site.has_value());
  JsonArray datasets;
  for (const PolicyDataset& dataset : site.datasets) {
    datasets.push_back(DatasetJson(dataset));
  }
  JsonArray rules;
  for (const Rule& rule : site.rules) {
    rules.push_back(RuleJson(rule));
  }
  JsonObject json = {{"v", kStatementVersion},
                     {"kind", std::string(kKind)},
                     {"policy", IdentityJson(site.identity)},
                     {"site", SiteJson(*site.site)},
                     {"datasets", std::move(datasets)},
                     {"rules", std::move(rules)}};
  AddSettings(site, json);
  return PrintJson(std::move(json));
}

StatusOr<Policy> ParseStatement(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return Error(StatusCode::kInvalidArgument, "policy statement is larger than 1 MiB");
  }
  ASSIGN_OR_RETURN(const Json json, ParseCanonicalJson(text));
  ASSIGN_OR_RETURN(Policy policy, Read(json));
  if (const std::optional<Problem> problem = FindProblem(policy, true)) {
    return Error(StatusCode::kInvalidArgument,
                 "policy statement: `" + problem->key + "` " + problem->message);
  }
  // One spelling each: unsorted or repeated codes, `4.0` for `4` and the like are refused, so that
  // the digest of the bytes is the digest of the policy.
  if (StatementText(policy) != text) {
    return Error(StatusCode::kInvalidArgument, "policy statement is not in its one canonical form");
  }
  return policy;
}

}  // namespace domicile::policy

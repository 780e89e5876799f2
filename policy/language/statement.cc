#include "policy/language/statement.h"

#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "policy/language/duration.h"
#include "policy/language/parse.h"
#include "policy/language/ranges.h"
#include "policy/language/statement_rule.h"
#include "policy/language/validate.h"

namespace domicile::policy {
namespace {

constexpr std::string_view kKind = "domicile.site-policy-statement";
constexpr std::int64_t kStatementVersion = 1;
constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;

void AddDuration(std::string_view key, const std::optional<Duration>& value, JsonObject& json) {
  if (value) {
    json.emplace(key, PrintDuration(*value));
  }
}

// Which documents there are, and until when: `dpia_valid_until` and so on.
struct DocumentKey {
  std::string_view key;
  std::optional<DocumentRef> PolicyDataset::*document;
};
constexpr DocumentKey kDocuments[] = {{"dpia_valid_until", &PolicyDataset::dpia},
                                      {"tia_valid_until", &PolicyDataset::tia},
                                      {"permit_valid_until", &PolicyDataset::permit},
                                      {"baa_valid_until", &PolicyDataset::baa}};

Json IdentityJson(const PolicyIdentity& identity) {
  JsonObject json = {{"id", identity.id},
                     {"version", identity.version},
                     {"schema", identity.schema},
                     {"not_before", PrintTime(identity.not_before)},
                     {"expires", PrintTime(identity.expires)},
                     {"threshold", identity.threshold}};
  if (!identity.legal_facts.empty()) {
    json.emplace("legal_facts", identity.legal_facts);
  }
  AddDuration("cooldown", identity.cooldown, json);
  return json;
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
  if (dataset.subjects_count != SubjectsCount::kUnset) {
    json.emplace("subjects_count", std::string(Code(dataset.subjects_count)));
  }
  for (const DocumentKey& each : kDocuments) {
    if (const std::optional<DocumentRef>& document = dataset.*each.document) {
      json.emplace(each.key, PrintTime(document->valid_until));
    }
  }
  return json;
}

// Leaves out a section that says nothing.
void AddSection(std::string_view name, JsonObject section, std::uint32_t line, JsonObject& json) {
  if (!section.empty()) {
    section.emplace("line", line);
    json.emplace(name, std::move(section));
  }
}

void AddDuties(const Policy& policy, JsonObject& json) {
  JsonObject retention;
  AddDuration("audit_min", policy.retention.audit_min, retention);
  AddDuration("update_max", policy.retention.update_max, retention);
  AddDuration("model_review", policy.retention.model_review, retention);
  AddSection("retention", std::move(retention), policy.retention.line, json);
  JsonObject erasure;
  if (policy.on_withdrawal) {
    erasure.emplace("on_withdrawal", std::string(Code(*policy.on_withdrawal)));
  }
  AddSection("erasure", std::move(erasure), policy.erasure_line, json);
  JsonObject audit;
  if (policy.audit.witnesses_min) {
    audit.emplace("witnesses_min", *policy.audit.witnesses_min);
  }
  AddDuration("max_unwitnessed_age", policy.audit.max_unwitnessed_age, audit);
  AddSection("audit", std::move(audit), policy.audit.line, json);
  JsonObject time;
  AddDuration("max_skew", policy.max_skew, time);
  AddSection("time", std::move(time), policy.time_line, json);
}

void AddSettings(const Policy& policy, JsonObject& json) {
  if (policy.model_recipients) {
    json.emplace("model", JsonObject{{"recipients", TextsJson(*policy.model_recipients)},
                                     {"line", policy.model_line}});
  }
  if (policy.approvals) {
    JsonArray required;
    for (const RequiredApproval& approval : policy.approvals->required) {
      required.emplace_back(JsonObject{{"role", std::string(Code(approval.role))},
                                       {"count", approval.count},
                                       {"distinct_org", approval.distinct_org}});
    }
    JsonObject approvals = {{"required", std::move(required)}, {"line", policy.approvals->line}};
    AddDuration("max_age", policy.approvals->max_age, approvals);
    json.emplace("approvals", std::move(approvals));
  }
  JsonObject sandbox;
  if (policy.sandbox_network) {
    sandbox.emplace("network", std::string(Code(*policy.sandbox_network)));
  }
  if (policy.sandbox_profile) {
    sandbox.emplace("profile_min", std::string(Code(*policy.sandbox_profile)));
  }
  AddSection("sandbox", std::move(sandbox), policy.sandbox_line, json);
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
  identity.legal_facts = reader.TryString("legal_facts").value_or("");
  identity.cooldown = TryDuration(reader, "cooldown");
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
  dataset.subjects_count =
      TryCode<SubjectsCount>(reader, "subjects_count").value_or(SubjectsCount::kUnset);
  for (const DocumentKey& each : kDocuments) {
    if (reader.Has(each.key)) {
      dataset.*each.document = DocumentRef{"", "", ReadTime(reader, each.key)};
    }
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
    approval.distinct_org = each.Bool("distinct_org");
    approvals.required.push_back(approval);
    reader.Merge(each.Finish());
  }
  approvals.max_age = TryDuration(reader, "max_age");
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
    policy.sandbox_network = TryCode<SandboxNetwork>(reader, "network");
    policy.sandbox_profile = TryCode<SandboxProfile>(reader, "profile_min");
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

void ReadDuties(JsonReader& statement, Policy& policy) {
  if (const Json* json = statement.TryObject("retention")) {
    JsonReader reader(*json, "statement.retention");
    policy.retention.audit_min = TryDuration(reader, "audit_min");
    policy.retention.update_max = TryDuration(reader, "update_max");
    policy.retention.model_review = TryDuration(reader, "model_review");
    policy.retention.line = ReadLine(reader);
    statement.Merge(reader.Finish());
  }
  if (const Json* json = statement.TryObject("erasure")) {
    JsonReader reader(*json, "statement.erasure");
    policy.on_withdrawal = TryCode<ErasureRule>(reader, "on_withdrawal");
    policy.erasure_line = ReadLine(reader);
    statement.Merge(reader.Finish());
  }
  if (const Json* json = statement.TryObject("audit")) {
    JsonReader reader(*json, "statement.audit");
    const std::optional<std::int64_t> witnesses = reader.TryInt("witnesses_min", 0, kMostWitnesses);
    if (witnesses) {
      policy.audit.witnesses_min = static_cast<std::uint32_t>(*witnesses);
    }
    policy.audit.max_unwitnessed_age = TryDuration(reader, "max_unwitnessed_age");
    policy.audit.line = ReadLine(reader);
    statement.Merge(reader.Finish());
  }
  if (const Json* json = statement.TryObject("time")) {
    JsonReader reader(*json, "statement.time");
    policy.max_skew = TryDuration(reader, "max_skew");
    policy.time_line = ReadLine(reader);
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
    if (!rule.ok()) {
      reader.Merge(rule.status());
      break;
    }
    policy.rules.push_back(*std::move(rule));
  }
  ReadSettings(reader, policy);
  ReadDuties(reader, policy);
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
  AddDuties(site, json);
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

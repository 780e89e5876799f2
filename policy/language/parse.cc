#include "policy/language/parse.h"

#include <utility>

#include "base/json.h"
#include "base/toml.h"
#include "policy/language/toml_codes.h"
#include "policy/language/validate.h"

namespace domicile::policy {
namespace {

constexpr std::int64_t kMostCount = kLargestJsonInteger;

std::optional<std::uint64_t> TryCount(TomlTable& table, std::string_view key, std::int64_t low = 0,
                                      std::int64_t high = kMostCount) {
  const std::optional<std::int64_t> value = table.TryInt(key, low, high);
  return value ? std::optional<std::uint64_t>(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

std::optional<std::uint32_t> TrySmall(TomlTable& table, std::string_view key, std::int64_t low) {
  const std::optional<std::int64_t> value = table.TryInt(key, low, 1'000'000'000);
  return value ? std::optional<std::uint32_t>(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

std::set<std::string> ToSet(std::vector<std::string> texts) {
  return {std::make_move_iterator(texts.begin()), std::make_move_iterator(texts.end())};
}

PolicyIdentity ReadIdentity(TomlTable table) {
  PolicyIdentity identity;
  identity.id = table.String("id");
  identity.version = static_cast<std::uint64_t>(table.Int("version", 1, kMostCount));
  identity.schema = static_cast<std::uint32_t>(table.Int("schema", 1, 1'000'000));
  if (table.Has("schema") && identity.schema != kPolicySchema) {
    table.Fail("schema", "is " + std::to_string(identity.schema) + "; this program reads " +
                             std::to_string(kPolicySchema));
  }
  identity.not_before = table.Time("not_before");
  identity.expires = table.Time("expires");
  identity.issuer = table.String("issuer");
  identity.signers = table.Strings("signers");
  identity.threshold = static_cast<std::uint32_t>(table.Int("threshold", 1, 1000));
  return identity;
}

SiteSection ReadSite(TomlTable table) {
  SiteSection site;
  site.jurisdiction = ReadPlace(table, "jurisdiction");
  site.control_jurisdictions =
      TryPlaces(table, "control_jurisdictions", true).value_or(std::set<Jurisdiction>{});
  site.location_evidence = TryCode<LocationEvidence>(table, "location_evidence")
                               .value_or(LocationEvidence::kCertificate);
  return site;
}

DocumentRef ReadDocument(TomlTable table) {
  DocumentRef document;
  document.id = table.String("id");
  document.sha256 = table.String("sha256");
  document.valid_until = table.Time("valid_until");
  return document;
}

PolicyDataset ReadDataset(TomlTable table) {
  PolicyDataset dataset;
  dataset.line = table.Line();
  StatusOr<DatasetAlias> alias = DatasetAlias::Parse(table.String("alias"));
  if (alias.ok()) {
    dataset.alias = *std::move(alias);
  } else if (table.Has("alias")) {
    table.Merge("alias", alias.status());
  }
  dataset.name = table.String("name");
  dataset.categories = ReadCodes<Category>(table, "categories");
  dataset.subject_jurisdictions =
      TryPlaces(table, "subject_jurisdictions", true).value_or(std::set<Jurisdiction>{});
  dataset.regimes = ReadCodes<Regime>(table, "regimes");
  dataset.lawful_basis = table.String("lawful_basis");
  dataset.special_category_basis = table.TryString("special_category_basis").value_or("");
  dataset.purposes = ReadCodes<Purpose>(table, "purpose");
  if (std::optional<TomlTable> refs = table.TryTable("refs")) {
    if (std::optional<TomlTable> dpia = refs->TryTable("dpia")) {
      dataset.dpia = ReadDocument(*dpia);
    }
  }
  return dataset;
}

TransferGround ReadGround(TomlTable table) {
  TransferGround ground;
  ground.line = table.Line();
  StatusOr<Area> to = Area::Parse(table.String("to"));
  if (to.ok()) {
    ground.to = *std::move(to);
  } else if (table.Has("to")) {
    table.Merge("to", to.status());
  }
  ground.mechanism = ReadCode<Mechanism>(table, "mechanism");
  ground.ref = table.String("ref");
  ground.valid_until = table.TryTime("valid_until");
  ground.importer = table.TryString("importer").value_or("");
  return ground;
}

void ReadAllow(TomlTable table, Rule& rule) {
  rule.aggregator_locations = TryAreas(table, "aggregator_locations");
  rule.aggregator_control = TryAreas(table, "aggregator_control");
  if (auto recipients = table.TryStrings("recipients")) {
    rule.recipients = ToSet(*std::move(recipients));
  }
  rule.update_kinds = TryCodes<UpdateKind>(table, "update_kinds");
  rule.purposes = TryCodes<Purpose>(table, "purposes");
  rule.aggregator_view = TryCode<View>(table, "aggregator_view");
}

void ReadDeny(TomlTable table, Rule& rule) {
  rule.deny_locations = TryAreas(table, "locations").value_or(std::set<Area>{});
  rule.deny_control = TryAreas(table, "control").value_or(std::set<Area>{});
  rule.deny_recipients = ToSet(table.TryStrings("recipients").value_or(std::vector<std::string>{}));
  rule.deny_update_kinds =
      TryCodes<UpdateKind>(table, "update_kinds").value_or(std::set<UpdateKind>{});
}

void ReadPrivacy(TomlTable table, Rule& rule) {
  rule.min_contributors = TrySmall(table, "min_contributors", 3);
  rule.min_cohort = TryCount(table, "min_cohort", 1);
  rule.min_batch = TrySmall(table, "min_batch", 1);
  rule.min_local_steps = TrySmall(table, "min_local_steps", 1);
  rule.clip_l2 = table.TryDouble("clip_l2", 1e-9, 1e9);
  rule.dp_mode = TryCode<DpMode>(table, "dp_mode");
  rule.require_secagg = table.TryBool("require_secagg");
}

void ReadLimit(TomlTable table, Rule& rule) {
  rule.rounds = TryCount(table, "rounds");
  rule.runs_per_day = TryCount(table, "runs_per_day");
  rule.update_bytes = TryCount(table, "update_bytes");
  rule.released_numbers_per_record = table.TryDouble("released_numbers_per_record", 0, 1e12);
  rule.metrics = TryCount(table, "metrics");
  rule.params_per_record = table.TryDouble("params_per_record", 0, 1e12);
}

Rule ReadRule(TomlTable table) {
  Rule rule;
  rule.line = table.Line();
  rule.id = table.String("id");
  if (const auto name = table.TryString("dataset")) {
    StatusOr<DatasetAlias> alias = DatasetAlias::Parse(*name);
    if (alias.ok()) {
      rule.dataset = *std::move(alias);
    } else {
      table.Merge("dataset", alias.status());
    }
  }
  if (auto allow = table.TryTable("allow")) {
    ReadAllow(*allow, rule);
  }
  if (auto deny = table.TryTable("deny")) {
    ReadDeny(*deny, rule);
  }
  if (auto require = table.TryTable("require")) {
    if (auto privacy = require->TryTable("privacy")) {
      ReadPrivacy(*privacy, rule);
    }
  }
  if (auto limit = table.TryTable("limit")) {
    ReadLimit(*limit, rule);
  }
  for (const TomlTable& ground : table.Tables("transfer")) {
    rule.transfers.push_back(ReadGround(ground));
  }
  return rule;
}

ApprovalSection ReadApprovals(TomlTable table) {
  ApprovalSection approvals;
  approvals.line = table.Line();
  if (!table.Has("required")) {
    table.Fail("", "`required` is missing; write required = [] if nobody need approve");
  }
  for (TomlTable item : table.Tables("required")) {
    RequiredApproval approval;
    approval.role = ReadCode<ApprovalRole>(item, "role");
    approval.count = static_cast<std::uint32_t>(item.Int("count", 1, 100));
    approvals.required.push_back(approval);
  }
  approvals.keys = table.TryStrings("keys").value_or(std::vector<std::string>{});
  return approvals;
}

void ReadSettings(TomlTable& root, Policy& policy) {
  if (auto model = root.TryTable("model")) {
    policy.model_line = model->Line();
    policy.model_recipients = TryAreas(*model, "recipients");
  }
  if (auto approvals = root.TryTable("approvals")) {
    policy.approvals = ReadApprovals(*approvals);
  }
  if (auto sandbox = root.TryTable("sandbox")) {
    policy.sandbox_line = sandbox->Line();
    policy.sandbox_network = TryCode<SandboxNetwork>(*sandbox, "network");
  }
  if (auto update = root.TryTable("update")) {
    policy.weights_line = update->Line();
    policy.weights = TryCode<WeightRule>(*update, "weights");
  }
}

// Puts a problem where the author can see it.
void Report(const Problem& problem, TomlTable& root) {
  const auto fail = [&problem](TomlTable table) { table.Fail(problem.key, problem.message); };
  switch (problem.section) {
    case Problem::Section::kPolicy:
      return fail(root.Table("policy"));
    case Problem::Section::kSite:
      return root.Has("site") ? fail(root.Table("site")) : root.Fail("site", problem.message);
    case Problem::Section::kDataset:
      return fail(root.Tables("dataset")[problem.index]);
    case Problem::Section::kRule:
      return fail(root.Tables("rule")[problem.index]);
    case Problem::Section::kApprovals:
      return fail(root.Table("approvals"));
  }
}

}  // namespace

StatusOr<Policy> ParsePolicy(std::string_view text, std::string_view file, PolicySource source) {
  if (source == PolicySource::kNone || source == PolicySource::kGrant) {
    return Error(StatusCode::kInvalidArgument, "a policy file is of a federation, an aggregator or a site");
  }
  ASSIGN_OR_RETURN(TomlDocument document, TomlDocument::Parse(text, file));
  TomlTable root = document.Root();
  Policy policy;
  policy.source = source;
  policy.file = file;
  policy.identity = ReadIdentity(root.Table("policy"));
  if (auto site = root.TryTable("site")) {
    policy.site = ReadSite(*site);
  }
  for (const TomlTable& table : root.Tables("dataset")) {
    policy.datasets.push_back(ReadDataset(table));
  }
  for (const TomlTable& table : root.Tables("rule")) {
    policy.rules.push_back(ReadRule(table));
  }
  ReadSettings(root, policy);
  RETURN_IF_ERROR(document.Finish());
  if (const std::optional<Problem> problem = FindProblem(policy, false)) {
    Report(*problem, root);
    RETURN_IF_ERROR(document.Finish());
    return Error(StatusCode::kInvalidArgument, std::string(file) + ": " + problem->message);
  }
  return policy;
}

}  // namespace domicile::policy

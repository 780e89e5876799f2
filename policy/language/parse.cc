#include "policy/language/parse.h"

#include <algorithm>
#include <span>

#include "base/json.h"
#include "base/toml.h"
#include "policy/language/duration.h"
#include "policy/language/keys.h"
#include "policy/language/ranges.h"
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

std::optional<std::uint32_t> TrySmall(TomlTable& table, std::string_view key, std::int64_t low,
                                      std::int64_t high = 1'000'000'000) {
  const std::optional<std::int64_t> value = table.TryInt(key, low, high);
  return value ? std::optional<std::uint32_t>(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

// Each of its form, and none twice: a key that stands twice would make two of a threshold.
std::set<std::string> CheckNames(TomlTable& table, std::string_view key,
                                 const std::vector<std::string>& names, const NameForm& form) {
  std::set<std::string> different;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!form.fits(names[i])) {
      table.FailItem(key, i, form.wants);
    } else if (!different.insert(names[i]).second) {
      FailRepeated(table, key, i);
    }
  }
  return different;
}

std::optional<std::set<std::string>> TryNames(TomlTable& table, std::string_view key,
                                              const NameForm& form) {
  const std::optional<std::vector<std::string>> names = table.TryStrings(key);
  return names ? std::optional(CheckNames(table, key, *names, form)) : std::nullopt;
}

// One of a closed list that is no enumeration; empty where it is absent.
std::string ReadListed(TomlTable& table, std::string_view key,
                       std::span<const std::string_view> list) {
  const std::optional<std::string> text = table.TryString(key);
  if (text && std::find(list.begin(), list.end(), *text) == list.end()) {
    FailUnknownCode(table, key, *text, {list.begin(), list.end()});
  }
  return text.value_or("");
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
  CheckNames(table, "signers", identity.signers, kKeyForm);
  identity.threshold = static_cast<std::uint32_t>(table.Int("threshold", 1, 1000));
  identity.legal_facts = table.TryString("legal_facts").value_or("");
  if (table.Has("legal_facts") && identity.legal_facts.empty()) {
    table.Fail("legal_facts", "is empty; leave it out if any facts will do");
  }
  identity.cooldown = TryDuration(table, "cooldown");
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

std::optional<DocumentRef> TryDocument(TomlTable& refs, std::string_view key) {
  std::optional<TomlTable> found = refs.TryTable(key);
  if (!found) {
    return std::nullopt;
  }
  TomlTable& table = *found;
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
  dataset.subjects_count =
      TryCode<SubjectsCount>(table, "subjects_count").value_or(SubjectsCount::kUnset);
  dataset.regimes = ReadCodes<Regime>(table, "regimes");
  table.String("lawful_basis");  // wanted
  dataset.lawful_basis = ReadListed(table, "lawful_basis", LawfulBases());
  dataset.special_category_basis =
      ReadListed(table, "special_category_basis", SpecialCategoryBases());
  dataset.purposes = ReadCodes<Purpose>(table, "purpose");
  if (std::optional<TomlTable> refs = table.TryTable("refs")) {
    dataset.dpia = TryDocument(*refs, "dpia");
    dataset.tia = TryDocument(*refs, "tia");
    dataset.permit = TryDocument(*refs, "permit");
    dataset.baa = TryDocument(*refs, "baa");
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
  rule.recipients = TryNames(table, "recipients", kRecipientForm);
  rule.update_kinds = TryCodes<UpdateKind>(table, "update_kinds");
  rule.purposes = TryCodes<Purpose>(table, "purposes");
  rule.aggregator_view = TryCode<View>(table, "aggregator_view");
  rule.transit = TryAreas(table, "transit");
  rule.models = TryNames(table, "models", kDigestForm);
  rule.trainers = TryNames(table, "trainers", kDigestForm);
  rule.contributors = TryNames(table, "contributors", kSiteForm);
  rule.derogations = table.TryBool("derogations");
}

void ReadDeny(TomlTable table, Rule& rule) {
  rule.deny_locations = TryAreas(table, "locations").value_or(std::set<Area>{});
  rule.deny_control = TryAreas(table, "control").value_or(std::set<Area>{});
  rule.deny_recipients =
      TryNames(table, "recipients", kRecipientForm).value_or(std::set<std::string>{});
  rule.deny_update_kinds =
      TryCodes<UpdateKind>(table, "update_kinds").value_or(std::set<UpdateKind>{});
  rule.deny_outputs = TryCodes<Output>(table, "outputs");
  rule.deny_purposes = TryCodes<Purpose>(table, "purposes");
}

void ReadPrivacy(TomlTable table, Rule& rule) {
  rule.min_contributors = TrySmall(table, "min_contributors", 3);
  rule.min_cohort = TryCount(table, "min_cohort", 1);
  rule.min_batch = TrySmall(table, "min_batch", 1);
  rule.min_local_steps = TrySmall(table, "min_local_steps", 1);
  rule.clip_l2 = table.TryDouble("clip_l2", 1e-9, 1e9);
  rule.dp_mode = TryCode<DpMode>(table, "dp_mode");
  rule.require_secagg = table.TryBool("require_secagg");
  rule.secagg_threshold = table.TryDouble("secagg_threshold", kLeastShare, kMostShare);
  rule.dp_unit = TryCode<DpUnit>(table, "dp_unit");
  rule.sampling = TryCode<Sampling>(table, "sampling");
}

// A duration, or `life`.
std::optional<Duration> TryWindow(TomlTable& table) {
  constexpr std::string_view kKey = "budget_window";
  return table.TryString(kKey) == std::string(kLife) ? kLifeOfDataset : TryDuration(table, kKey);
}

void ReadLimit(TomlTable table, Rule& rule) {
  rule.rounds = TryCount(table, "rounds");
  rule.runs_per_day = TryCount(table, "runs_per_day");
  rule.update_bytes = TryCount(table, "update_bytes");
  rule.released_numbers_per_record = table.TryDouble("released_numbers_per_record", 0, 1e12);
  rule.metrics = TryCount(table, "metrics");
  rule.params_per_record = table.TryDouble("params_per_record", 0, 1e12);
  rule.epsilon_total = table.TryDouble("epsilon_total", 0, kMostEpsilon);
  rule.epsilon_per_run = table.TryDouble("epsilon_per_run", 0, kMostEpsilon);
  rule.delta = table.TryDouble("delta", 0, kMostDelta);
  rule.budget_window = TryWindow(table);
  rule.export_subjects_per_year = TryCount(table, "export_subjects_per_year");
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
    rule.evidence = TryCode<LocationEvidence>(*require, "evidence");
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
    table.Fail("required", "is missing; write required = [] if nobody need approve");
  }
  for (TomlTable item : table.Tables("required")) {
    RequiredApproval approval;
    approval.role = ReadCode<ApprovalRole>(item, "role");
    approval.count = static_cast<std::uint32_t>(item.Int("count", 1, 100));
    approval.distinct_org = item.TryBool("distinct_org").value_or(false);
    approvals.required.push_back(approval);
  }
  approvals.keys = table.TryStrings("keys").value_or(std::vector<std::string>{});
  CheckNames(table, "keys", approvals.keys, kKeyForm);
  approvals.max_age = TryDuration(table, "max_age");
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
    policy.sandbox_profile = TryCode<SandboxProfile>(*sandbox, "profile_min");
  }
  if (auto update = root.TryTable("update")) {
    policy.weights_line = update->Line();
    policy.weights = TryCode<WeightRule>(*update, "weights");
  }
}

void ReadDuties(TomlTable& root, Policy& policy) {
  if (auto retention = root.TryTable("retention")) {
    policy.retention.line = retention->Line();
    policy.retention.audit_min = TryDuration(*retention, "audit_min");
    policy.retention.update_max = TryDuration(*retention, "update_max");
    policy.retention.model_review = TryDuration(*retention, "model_review");
  }
  if (auto erasure = root.TryTable("erasure")) {
    policy.erasure_line = erasure->Line();
    policy.on_withdrawal = TryCode<ErasureRule>(*erasure, "on_withdrawal");
  }
  if (auto audit = root.TryTable("audit")) {
    policy.audit.line = audit->Line();
    policy.audit.witnesses_min = TrySmall(*audit, "witnesses_min", 0, kMostWitnesses);
    policy.audit.max_unwitnessed_age = TryDuration(*audit, "max_unwitnessed_age");
  }
  if (auto time = root.TryTable("time")) {
    policy.time_line = time->Line();
    policy.max_skew = TryDuration(*time, "max_skew");
  }
}

// Puts a problem where the author can see it.
void Report(const Problem& problem, TomlTable& root) {
  const auto fail = [&problem](TomlTable table) {
    std::string_view key = problem.key;
    for (std::size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
      table = table.Table(key.substr(0, dot));
      key.remove_prefix(dot + 1);
    }
    table.Fail(key, problem.message);
  };
  switch (problem.section) {
    case Problem::Section::kPolicy:
      return fail(root.Table("policy"));
    case Problem::Section::kSite:
      return root.Has("site") ? fail(root.Table("site")) : root.Fail("site", problem.message);
    case Problem::Section::kDataset:
      return fail(root.Tables("dataset")[problem.index]);
    case Problem::Section::kRule:
      return fail(root.Tables("rule")[problem.index]);
    case Problem::Section::kTransfer:
      return fail(root.Tables("rule")[problem.index].Tables("transfer")[problem.item]);
    case Problem::Section::kApprovals:
      return fail(root.Table("approvals"));
  }
}

}  // namespace

StatusOr<Policy> ParsePolicy(std::string_view text, std::string_view file, PolicySource source) {
  if (source == PolicySource::kNone || source == PolicySource::kGrant) {
    return Error(StatusCode::kInvalidArgument,
                 "a policy file is of a federation, an aggregator or a site");
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
  ReadDuties(root, policy);
  RETURN_IF_ERROR(document.Finish(kPolicyKeys));
  if (const std::optional<Problem> problem = FindProblem(policy, false)) {
    Report(*problem, root);
    RETURN_IF_ERROR(document.Finish(kPolicyKeys));
    return Error(StatusCode::kInvalidArgument, std::string(file) + ": " + problem->message);
  }
  return policy;
}

}  // namespace domicile::policy

#include "policy/language/validate.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/bytes.h"

namespace domicile::policy {
namespace {

using Section = Problem::Section;

constexpr std::string_view kWantsDigest = "must be 64 lower-case hexadecimal digits";
constexpr auto kLongestLife = std::chrono::hours(24 * 366);

bool AllOfAlphabet(std::string_view text, std::size_t longest, std::string_view extra, bool upper) {
  return !text.empty() && text.size() <= longest &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  (upper && c >= 'A' && c <= 'Z') || extra.find(c) != std::string_view::npos;
         });
}

std::optional<Problem> FindInIdentity(const PolicyIdentity& identity, bool is_statement) {
  const auto problem = [](std::string key, std::string message) {
    return Problem{Section::kPolicy, 0, std::move(key), std::move(message)};
  };
  if (!IsPolicyId(identity.id)) {
    return problem("id", "must be 1 to 80 lower-case letters, digits and `/ . _ -`");
  }
  if (identity.expires <= identity.not_before) {
    return problem("expires", "must be after not_before");
  }
  if (identity.expires - identity.not_before > kLongestLife) {
    return problem("expires", "must be at most 366 days after not_before");
  }
  if (!is_statement && identity.threshold > identity.signers.size()) {
    return problem("threshold", "must not be more than the number of signers");
  }
  if (!identity.legal_facts.empty() && !ParseDigest(identity.legal_facts).ok()) {
    return problem("legal_facts", std::string(kWantsDigest));
  }
  return std::nullopt;
}

std::optional<Problem> FindInDataset(const PolicyDataset& dataset, std::size_t index,
                                     bool is_statement) {
  const auto problem = [index](std::string key, std::string message) {
    return Problem{Section::kDataset, index, std::move(key), std::move(message)};
  };
  if (!is_statement && dataset.name.empty()) {
    return problem("name", "must not be empty");
  }
  if (dataset.categories.empty()) {
    return problem("categories", "must not be empty; write [\"none\"] for ordinary data");
  }
  if (dataset.categories.contains(Category::kOrdinary) && dataset.categories.size() > 1) {
    return problem("categories", "has `none` beside other categories");
  }
  if (dataset.subject_jurisdictions.empty()) {
    return problem("subject_jurisdictions", "must not be empty");
  }
  if (dataset.regimes.empty()) {
    return problem("regimes", "must not be empty; name the law that holds for these data");
  }
  if (!IsLawfulBasis(dataset.lawful_basis)) {
    return problem("lawful_basis", "is not in the list of docs/formats/policy.md");
  }
  if (dataset.IsSpecialCategory() != !dataset.special_category_basis.empty()) {
    return problem("special_category_basis", dataset.IsSpecialCategory()
                                                 ? "is missing: a category is special"
                                                 : "is set, but no category is special");
  }
  if (!dataset.special_category_basis.empty() &&
      !IsSpecialCategoryBasis(dataset.special_category_basis)) {
    return problem("special_category_basis", "is not in the list of docs/formats/policy.md");
  }
  const std::pair<std::string_view, const std::optional<DocumentRef>&> documents[] = {
      {"dpia", dataset.dpia},
      {"tia", dataset.tia},
      {"permit", dataset.permit},
      {"baa", dataset.baa}};
  for (const auto& [name, document] : documents) {
    const std::string key = "refs." + std::string(name);
    if (document && !is_statement && document->id.empty()) {
      return problem(key + ".id", "must not be empty");
    }
    if (document && !is_statement && !ParseDigest(document->sha256).ok()) {
      return problem(key + ".sha256", std::string(kWantsDigest));
    }
  }
  return std::nullopt;
}

std::optional<Problem> FindInGround(const TransferGround& ground, std::size_t rule,
                                    std::size_t item, bool is_statement) {
  const auto problem = [rule, item](std::string key, std::string message) {
    return Problem{Section::kTransfer, rule, std::move(key), std::move(message), item};
  };
  if (ground.mechanism != Mechanism::kAdequacy && !ground.valid_until) {
    return problem("valid_until", "is missing: a mechanism other than adequacy needs valid_until");
  }
  if (!is_statement && ground.ref.empty()) {
    return problem("ref", "is empty: it needs a ref, the document or the decision relied on");
  }
  if (!ground.importer.empty() && !OrganisationId::Parse(ground.importer).ok()) {
    return problem("importer", "must be an organisation's name as in the roster");
  }
  return std::nullopt;
}

bool IsDigest(std::string_view text) { return ParseDigest(text).ok(); }
bool IsSite(std::string_view text) { return SiteId::Parse(text).ok(); }

// The first key of names in a rule that holds a name not of its form.
std::optional<std::pair<std::string, std::string_view>> FindBadName(const Rule& rule) {
  const std::optional<std::set<std::string>> denied = rule.deny_recipients;
  struct Names {
    std::string_view key;
    const std::optional<std::set<std::string>>& names;
    const NameForm& form;
  };
  const Names lists[] = {{"allow.recipients", rule.recipients, kRecipientForm},
                         {"allow.models", rule.models, kDigestForm},
                         {"allow.trainers", rule.trainers, kDigestForm},
                         {"allow.contributors", rule.contributors, kSiteForm},
                         {"deny.recipients", denied, kRecipientForm}};
  for (const Names& list : lists) {
    if (list.names && !std::all_of(list.names->begin(), list.names->end(), list.form.fits)) {
      return std::pair(std::string(list.key), list.form.wants);
    }
  }
  return std::nullopt;
}

std::optional<Problem> FindInRule(const Policy& policy, std::size_t index, bool is_statement) {
  const Rule& rule = policy.rules[index];
  const auto problem = [index](std::string key, std::string message) {
    return Problem{Section::kRule, index, std::move(key), std::move(message)};
  };
  if (!IsRuleId(rule.id)) {
    return problem("id", "must be 1 to 40 letters, digits and `. _ -`");
  }
  if (policy.source == PolicySource::kSite && rule.dataset &&
      policy.Find(*rule.dataset) == nullptr) {
    return problem("dataset", "names no [[dataset]] of this file");
  }
  if (policy.source != PolicySource::kSite && !rule.transfers.empty()) {
    return problem("transfer", "belongs in a site policy: the exporter must have the ground");
  }
  if (const auto bad = FindBadName(rule)) {
    return problem(bad->first, std::string(bad->second));
  }
  for (std::size_t i = 0; i < rule.transfers.size(); ++i) {
    if (auto found = FindInGround(rule.transfers[i], index, i, is_statement)) {
      return found;
    }
  }
  return std::nullopt;
}

// `is_own`: of a site policy as a file, whose keys are those that can approve there.
std::optional<Problem> FindInApprovals(const ApprovalSection& approvals, bool is_statement,
                                       bool is_own) {
  std::set<ApprovalRole> seen;
  std::uint64_t wanted = 0;
  for (const RequiredApproval& approval : approvals.required) {
    if (!seen.insert(approval.role).second) {
      return Problem{Section::kApprovals, 0, "required",
                     "names the role `" + std::string(Code(approval.role)) + "` twice"};
    }
    wanted += approval.count;
  }
  if (!is_statement && wanted > 0 && approvals.keys.empty()) {
    return Problem{Section::kApprovals, 0, "keys", "must name the keys that may approve"};
  }
  if (is_own && wanted > approvals.keys.size()) {
    return Problem{Section::kApprovals, 0, "keys",
                   "names fewer keys than there must be approvals (" + std::to_string(wanted) +
                       "), so that no job could ever be approved"};
  }
  return std::nullopt;
}

}  // namespace

const NameForm kRecipientForm = {
    IsRecipient, "must have only `sites`, `operator`, a site's name or `operator/NAME`"};
const NameForm kSiteForm = {IsSite, "must have only names of sites, as in the roster"};
const NameForm kDigestForm = {IsDigest,
                              "must have only digests of 64 lower-case hexadecimal digits"};

const NameForm kKeyForm = {
    [](std::string_view name) {
      return !name.empty() && std::all_of(name.begin(), name.end(),
                                          [](char c) { return c > ' ' && c < '\x7f' && c != '+'; });
    },
    "must have only names of keys: printable ASCII without space and `+`"};

bool IsRecipient(std::string_view text) {
  constexpr std::string_view kOperatorPrefix = "operator/";
  if (text.starts_with(kOperatorPrefix)) {
    text.remove_prefix(kOperatorPrefix.size());
  }
  return SiteId::Parse(text).ok();
}

bool IsPolicyId(std::string_view text) { return AllOfAlphabet(text, 80, "/._-", false); }
bool IsRuleId(std::string_view text) { return AllOfAlphabet(text, 40, "._-", true); }

std::optional<Problem> FindProblem(const Policy& policy, bool is_statement) {
  if (auto found = FindInIdentity(policy.identity, is_statement)) {
    return found;
  }
  const bool is_site = policy.source == PolicySource::kSite;
  if (is_site != policy.site.has_value()) {
    return Problem{Section::kSite, 0, "", is_site ? "is missing" : "belongs in a site policy"};
  }
  if (is_site && policy.site->control_jurisdictions.empty()) {
    return Problem{Section::kSite, 0, "control_jurisdictions", "must not be empty"};
  }
  if (!is_site && !policy.datasets.empty()) {
    return Problem{Section::kDataset, 0, "", "belongs in a site policy"};
  }
  std::set<DatasetAlias> aliases;
  for (std::size_t i = 0; i < policy.datasets.size(); ++i) {
    if (auto found = FindInDataset(policy.datasets[i], i, is_statement)) {
      return found;
    }
    if (!aliases.insert(policy.datasets[i].alias).second) {
      return Problem{Section::kDataset, i, "alias", "is used twice"};
    }
  }
  std::set<std::string> rule_ids;
  for (std::size_t i = 0; i < policy.rules.size(); ++i) {
    if (auto found = FindInRule(policy, i, is_statement)) {
      return found;
    }
    if (!rule_ids.insert(policy.rules[i].id).second) {
      return Problem{Section::kRule, i, "id", "is used twice"};
    }
  }
  return policy.approvals
             ? FindInApprovals(*policy.approvals, is_statement, is_site && !is_statement)
             : std::nullopt;
}

}  // namespace domicile::policy

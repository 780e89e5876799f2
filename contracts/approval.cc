#include "contracts/approval.h"

#include <algorithm>
#include <set>
#include <utility>

#include "policy/language/duration.h"

namespace domicile::contracts {

namespace {

constexpr std::int64_t kMostPersons = 100;
constexpr std::size_t kLongestName = 80;
constexpr std::string_view kRoles = "must be dpo, operator, ciso, ethics_board or data_owner";

policy::ApprovalRole ReadRole(TomlTable& table) {
  const auto role = policy::FromCode<policy::ApprovalRole>(table.String("role"));
  if (!role || *role == policy::ApprovalRole::kNone) {
    table.Fail("role", kRoles);
    return policy::ApprovalRole::kNone;
  }
  return *role;
}

bool IsOrganisation(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                  c == '_';
         });
}

Approver ReadApprover(TomlTable table, const std::vector<Approver>& others) {
  Approver approver;
  approver.role = ReadRole(table);
  approver.organisation = table.String("organisation");
  if (!IsOrganisation(approver.organisation)) {
    table.Fail("organisation", "must be a name of a-z, 0-9, `.`, `_` and `-`");
  }
  StatusOr<crypto::NoteVerifier> key = crypto::NoteVerifier::Parse(table.String("key"));
  if (!key.ok()) {
    table.Merge("key", key.status());
    return approver;
  }
  approver.key = *std::move(key);
  if (approver.key.Kind() != crypto::NoteKeyKind::kCosigner) {
    table.Fail("key",
               "is of a kind that does not say when it signed; make a key for approving "
               "with `domicile ca approver`");
  }
  for (const Approver& other : others) {
    if (other.key.name() == approver.key.name()) {
      table.Fail("key", "names one person twice: each approver signs with one key");
    }
  }
  return approver;
}

}  // namespace

std::vector<crypto::NoteVerifier> ApprovalRules::Keys() const {
  std::vector<crypto::NoteVerifier> keys;
  keys.reserve(approvers.size());
  for (const Approver& approver : approvers) {
    keys.push_back(approver.key);
  }
  return keys;
}

ApprovalRules ApprovalRules::OnlyNamed(std::span<const std::string> names) const {
  ApprovalRules rules = *this;
  if (!names.empty()) {
    std::erase_if(rules.approvers, [&](const Approver& approver) {
      return std::find(names.begin(), names.end(), approver.key.name()) == names.end();
    });
  }
  return rules;
}

ApprovalRules ReadApprovalRules(TomlTable& root, TomlTable& main) {
  ApprovalRules rules;
  for (TomlTable table : root.Tables("approver")) {
    rules.approvers.push_back(ReadApprover(std::move(table), rules.approvers));
  }
  rules.persons = static_cast<std::uint32_t>(main.Int("approvals", 1, kMostPersons));
  if (rules.approvers.size() < rules.persons) {
    main.Fail("approvals", "asks for " + std::to_string(rules.persons) + " persons, but only " +
                               std::to_string(rules.approvers.size()) + " [[approver]] are named");
  }
  for (TomlTable table : root.Tables("approval")) {
    ApprovalNeed need;
    need.role = ReadRole(table);
    need.count = static_cast<std::uint32_t>(table.TryInt("count", 1, kMostPersons).value_or(1));
    need.distinct_org = table.TryBool("distinct_org").value_or(false);
    // What nobody could ever give would hold every job, and look like an approval that is late.
    std::vector<GivenApproval> all;
    for (const Approver& approver : rules.approvers) {
      all.push_back({approver.key.name(), approver.role, approver.organisation, {}});
    }
    if (!MeetNeeds(all, std::span(&need, 1))) {
      table.Fail("role", "is asked for more often than [[approver]] names persons of it");
    }
    rules.needs.push_back(need);
  }
  if (const auto text = main.TryString("approval_max_age")) {
    const StatusOr<std::chrono::seconds> age = policy::ParseDuration(*text);
    if (age.ok()) {
      rules.max_age = *age;
    } else {
      main.Merge("approval_max_age", age.status());
    }
  }
  return rules;
}

bool MeetNeeds(std::span<const GivenApproval> given, std::span<const ApprovalNeed> needs) {
  return std::all_of(needs.begin(), needs.end(), [&](const ApprovalNeed& need) {
    std::set<std::string> distinct;
    for (const GivenApproval& approval : given) {
      if (approval.role == need.role) {
        distinct.insert(need.distinct_org ? approval.organisation : approval.key);
      }
    }
    return distinct.size() >= need.count;
  });
}

}  // namespace domicile::contracts

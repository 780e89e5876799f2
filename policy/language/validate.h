// What must hold within a policy beyond the form of each key; shared by files and statements.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "policy/language/policy.h"

namespace domicile::policy {

// Where a policy contradicts itself: a key of `section`, the index-th of its kind.
struct Problem {
  enum class Section : unsigned char { kPolicy, kSite, kDataset, kRule, kTransfer, kApprovals };
  Section section = Section::kPolicy;
  std::size_t index = 0;
  std::string key;  // `allow.models`; empty: the section itself
  std::string message;
  std::size_t item = 0;  // of a kTransfer: the item-th transfer of the index-th rule
};

// The first problem. `is_statement`: private fields are absent and not asked for. Pure.
std::optional<Problem> FindProblem(const Policy& policy, bool is_statement);

// `sites`, `operator`, the name of a site, or `operator/NAME`.
bool IsRecipient(std::string_view text);
// What the names of a list must look like.
struct NameForm {
  bool (*fits)(std::string_view);
  std::string_view wants;
};
extern const NameForm kRecipientForm;  // see IsRecipient
extern const NameForm kSiteForm;       // as in the roster
extern const NameForm kDigestForm;     // 64 hexadecimal digits
extern const NameForm kKeyForm;        // names of keys, as in signed notes

// 1 to 80 lower-case letters, digits and `/ . _ -`.
bool IsPolicyId(std::string_view text);
// 1 to 40 letters, digits and `. _ -`.
bool IsRuleId(std::string_view text);

}  // namespace domicile::policy

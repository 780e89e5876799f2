// Who may approve at a site, and how much approval a grant needs: what an agent and a trainer each
// read from their own configuration, in the same words (docs/formats/daemon-config.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/toml.h"
#include "crypto/note.h"
#include "policy/language/vocabulary.h"

namespace domicile::contracts {

// A person who may approve. The key is a cosigner's: when it signed is part of what it signs.
struct Approver {
  policy::ApprovalRole role = policy::ApprovalRole::kNone;
  std::string organisation;
  crypto::NoteVerifier key;
  friend bool operator==(const Approver&, const Approver&) = default;
};

// So many persons of a role; `distinct_org`: of so many organisations.
struct ApprovalNeed {
  policy::ApprovalRole role = policy::ApprovalRole::kNone;
  std::uint32_t count = 1;
  bool distinct_org = false;
  friend bool operator==(const ApprovalNeed&, const ApprovalNeed&) = default;
};

struct ApprovalRules {
  std::vector<Approver> approvers;
  std::uint32_t persons = 1;                    // 1 .. approvers.size()
  std::vector<ApprovalNeed> needs;              // beyond that
  std::optional<std::chrono::seconds> max_age;  // an older signature counts for nothing

  std::vector<crypto::NoteVerifier> Keys() const;
  // The same rules for the approvers of these names only; for all of them if `names` is empty.
  ApprovalRules OnlyNamed(std::span<const std::string> names) const;
  friend bool operator==(const ApprovalRules&, const ApprovalRules&) = default;
};

// Reads `approvals` and `approval_max_age` of `main`, and the tables [[approver]] and [[approval]]
// of `root`. Errors are noted in the document.
ApprovalRules ReadApprovalRules(TomlTable& root, TomlTable& main);

// One person's signature under a grant.
struct GivenApproval {
  std::string key;  // its name
  policy::ApprovalRole role = policy::ApprovalRole::kNone;
  std::string organisation;
  WallTime signed_at;
  friend bool operator==(const GivenApproval&, const GivenApproval&) = default;
};

// Whether each need is met: so many persons of its role, or so many organisations.
bool MeetNeeds(std::span<const GivenApproval> given, std::span<const ApprovalNeed> needs);

}  // namespace domicile::contracts

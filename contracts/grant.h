// A grant: a site's signed permission to run one plan on one dataset version, under given policies,
// until a date (docs/formats/grant.md). A note that persons at the site have cosigned; the agent
// and, by keys of its own configuration, the trainer verify it independently.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "contracts/approval.h"
#include "policy/reason.h"

namespace domicile::contracts {

struct GrantBody {
  std::string federation;
  SiteId site;
  JobId job;
  Digest plan;
  Digest trainer;     // SHA-256 of the trainer's program file
  Digest base_model;  // tree digest of the first model
  DatasetAlias dataset;
  Digest dataset_commitment;  // HMAC-SHA-256 of the dataset's content under a salt kept at the site
  Digest effective_policy;    // digest of the effective policy
  WallTime not_after;
  friend bool operator==(const GrantBody&, const GrantBody&) = default;
};

// One line of canonical JSON with a newline: the text of the note, and of a request to approve.
std::string GrantText(const GrantBody& body);
StatusOr<GrantBody> GrantBodyFromText(std::string_view text);

// Names what was approved, whoever approved it: SHA-256 of the text without its signatures.
Digest GrantDigest(const GrantBody& body);
// Of what is the same at every site of a job (federation, job, plan, first model): sites that were
// shown the same digest were asked for the same thing.
Digest SharedDigest(const GrantBody& body);

// A signature may be this far ahead of the reader's clock.
inline constexpr std::chrono::minutes kApprovalSkew{5};

// Why a verified grant does not cover a task; kNone if it does.
struct GrantCheck {
  policy::Reason reason = policy::Reason::kGrantSignature;
  GrantBody body;                        // meaningful if reason is kNone
  std::vector<GivenApproval> approvals;  // that count, each person once; likewise
};

// Checks the signatures by `rules` (at least so many persons, none too old), expiry, every field of
// `wanted` but not_after, and the roles. Pure.
GrantCheck VerifyGrant(std::string_view note, const ApprovalRules& rules, const GrantBody& wanted,
                       WallTime now);

}  // namespace domicile::contracts

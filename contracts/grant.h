// A grant: a site's signed permission to run one plan on one dataset version, under given policies,
// until a date (docs/formats/grant.md). Signed notes by keys of persons at the site; the agent and,
// by keys of its own configuration, the trainer verify it independently.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "crypto/note.h"
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

// Why a verified grant does not cover a task; kNone if it does.
struct GrantCheck {
  policy::Reason reason = policy::Reason::kGrantSignature;
  GrantBody body;  // meaningful if reason is kNone
};

// Checks signature (by at least `threshold` of the given keys), expiry and every field of `wanted`
// but not_after. Pure.
GrantCheck VerifyGrant(std::string_view note, std::span<const crypto::NoteVerifier> approvers,
                       std::size_t threshold, const GrantBody& wanted, WallTime now);

}  // namespace domicile::contracts

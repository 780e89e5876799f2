// The folders through which people at a site speak with its agent: requests and plans in one,
// grants and denials in the other (docs/formats/grant.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "contracts/grant.h"
#include "contracts/plan.h"

namespace domicile::cli {

struct GrantFolder {
  std::string requests;
  std::string grants;

  std::string RequestOf(const JobId& job) const;  // JOB.request
  std::string PlanOf(const JobId& job) const;     // JOB.plan.json
  std::string GrantOf(const JobId& job) const;    // JOB.grant
  std::string DenialOf(const JobId& job) const;   // JOB.deny
};

// A request, or a grant that somebody has signed already: the text is the same. Nothing is
// verified. Errors: those of ReadFile; kInvalidArgument.
StatusOr<contracts::GrantBody> ReadRequest(const std::string& path);

// Whether both ask for the same but for the end of its life.
bool AreAlike(const contracts::GrantBody& a, const contracts::GrantBody& b);

// Puts a note into `path`, together with the signatures that are there; what is there for something
// else than is asked now is replaced. Errors: kInvalidArgument if those are until another time,
// naming both; those of files.
Status KeepGrant(const std::string& path, const std::string& note);

// What was approved last of the jobs of this one's family: of the same plan name and dataset.
struct LastApproved {
  contracts::GrantBody body;
  contracts::Plan plan;
};
// By the time the grant's file was written; empty if there is none whose plan is still there.
std::optional<LastApproved> FindLastApproved(const GrantFolder& folder, const JobId& job,
                                             const contracts::Plan& plan);

}  // namespace domicile::cli

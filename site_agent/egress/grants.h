// The grants folder and the requests folder: how people approve jobs at this site.
//
// The agent writes what a job asks for into `requests`; a person signs it, on any machine
// (`domicile job approve`), and puts the grant into `grants`. Files are read afresh at each look: a
// grant that is taken away is gone. `JOB.deny` there refuses a job, or takes an approval back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/status.h"
#include "contracts/grant.h"
#include "policy/engine/transfer.h"
#include "site_agent/egress/config.h"

namespace domicile::site_agent {

// A grant that covers what was wanted.
struct FoundGrant {
  std::string note;
  Digest digest;  // SHA-256 of the note
  contracts::GrantBody body;
  std::vector<policy::PresentApproval> approvals;  // by role: distinct persons who signed
};

// Looks through the `*.grant` files of a folder. Empty if none covers `wanted`; `why` then says
// what was wrong with the nearest one (kApprovalMissing if there is none at all).
StatusOr<std::optional<FoundGrant>> FindGrant(const std::string& folder,
                                              const contracts::ApprovalRules& rules,
                                              const contracts::GrantBody& wanted, WallTime now,
                                              policy::Reason& why);

// The jobs for which there is a `JOB.deny` in the folder. Anybody who may write there may refuse;
// what the file says does not matter.
StatusOr<std::vector<JobId>> FindDenials(const std::string& folder);

// Writes `JOB.request` (the text to sign) and `JOB.plan.json` (what it means) for a person.
Status WriteRequest(const AgentConfig& config, const contracts::GrantBody& body,
                    std::string_view plan_text);

// Calls a function when files appear in a folder, on a thread of its own.
class FolderWatch {
 public:
  // Errors: kNotFound, kPermissionDenied, kResourceExhausted.
  static StatusOr<std::unique_ptr<FolderWatch>> Start(const std::string& folder,
                                                      std::function<void()> changed);
  ~FolderWatch();

 private:
  FolderWatch(FileHandle watch, FileHandle wake, std::function<void()> changed);
  void Loop();

  FileHandle watch_;
  FileHandle wake_;
  std::function<void()> changed_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace domicile::site_agent

// Which versions of its policies an agent works under: what lies in the files is weighed against
// what is in force by signatures, version and what it allows (contracts/policy_life.h), and kept in
// the books with the leaf that says so.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/event.h"
#include "base/clock.h"
#include "base/status.h"
#include "contracts/policy_life.h"
#include "contracts/policy_signature.h"
#include "site_agent/egress/books.h"
#include "site_agent/egress/config.h"
#include "site_agent/egress/gate.h"

namespace domicile::site_agent {

// One thread at a time.
class PolicyKeeper {
 public:
  // Borrows all three. `jurisdiction`: where the agent's certificate places it.
  PolicyKeeper(const AgentConfig& config, std::string jurisdiction, Books& books,
               const Clock& clock)
      : config_(config), jurisdiction_(std::move(jurisdiction)), books_(books), clock_(clock) {}

  // Looks at the three files and returns what is in force after that. A file that is refused
  // changes nothing, and is logged; it is an error only where no version of it was ever in force.
  // Errors: those of ReadFile and of the parsers, kInvalidArgument (the site policy is for another
  // place), kUnauthenticated (not signed by enough), kFailedPrecondition (older than the one in
  // force); those of the books.
  StatusOr<OwnPolicies> Look();

  // The first instant at which a version that waits may come into force; empty: none waits.
  std::optional<WallTime> NextLook() const { return next_look_; }

 private:
  struct Source;
  struct Read;
  struct Weighed;
  StatusOr<Read> ReadFiles(const Source& source) const;
  StatusOr<bool> Loosens(const Source& source, const std::string& before, const std::string& after,
                         const OwnPolicies& own) const;
  StatusOr<Weighed> Weigh(const Source& source, contracts::PolicyLife life,
                          const OwnPolicies& own) const;
  Status Keep(const Source& source, const Weighed& weighed, const StatusOr<audit::Event>& loaded);
  Status Record(const Source& source, const contracts::PolicyLife& life,
                const StatusOr<audit::Event>& leaf);
  // One file: weighed, kept, and what is in force after that put into `own`.
  Status LookAt(const Source& source, OwnPolicies& own);

  const AgentConfig& config_;
  const std::string jurisdiction_;
  Books& books_;
  const Clock& clock_;
  std::optional<WallTime> next_look_;
  std::set<std::string> told_;  // sources whose version in force this start has logged
};

// The folders of these files, if they hold nothing but policies, facts and their signatures: only
// then may the agent go on reading in them, since what else lies there could be data. Empty: files
// are read once, at the start.
std::vector<std::string> PolicyFolders(const AgentConfig& config);

}  // namespace domicile::site_agent

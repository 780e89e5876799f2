// The agent's books as its policy keeper wants them, and what it keeps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "contracts/in_force/policy_keeper.h"
#include "site_agent/egress/books.h"
#include "site_agent/egress/config.h"

namespace domicile::site_agent {

// The legal facts, the federation's and the site's policy. `jurisdiction`: where the agent's
// certificate places it.
contracts::PolicyKeeperOptions PolicyFilesOf(const AgentConfig& config, std::string jurisdiction);

// Thread-safe. Borrows the books.
class SitePolicyBooks final : public contracts::PolicyBooks {
 public:
  explicit SitePolicyBooks(Books& books) : books_(books) {}
  StatusOr<contracts::PolicyLife> Find(std::string_view source) override;
  Status Record(std::string_view source, const contracts::PolicyLife& life,
                const StatusOr<audit::Event>& leaf) override;
  // The site's own policy in force.
  StatusOr<std::vector<policy::Policy>> Sites() override;

 private:
  Books& books_;
};

}  // namespace domicile::site_agent

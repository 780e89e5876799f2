#include "site_agent/egress/policy_books.h"

#include <utility>

#include "contracts/in_force/policy_store.h"
#include "policy/language/parse.h"

namespace domicile::site_agent {

namespace {

constexpr std::string_view kSite = "site";

}  // namespace

contracts::PolicyKeeperOptions PolicyFilesOf(const AgentConfig& config, std::string jurisdiction) {
  const contracts::PolicySigners& signers = config.policy_signers;
  return {.files = {{"facts", policy::PolicySource::kNone, config.legal_facts, signers.facts},
                    {"federation", policy::PolicySource::kFederation, config.federation_policy,
                     signers.federation},
                    {std::string(kSite), policy::PolicySource::kSite, config.policy, signers.site}},
          .are_unsigned = signers.none,
          .jurisdiction = std::move(jurisdiction)};
}

StatusOr<contracts::PolicyLife> SitePolicyBooks::Find(std::string_view source) {
  return books_.With(
      [source](SiteStore& store) { return contracts::FindPolicyLife(store.Db(), source); });
}

Status SitePolicyBooks::Record(std::string_view source, const contracts::PolicyLife& life,
                               const StatusOr<audit::Event>& leaf) {
  return books_
      .Record([&](SiteStore& store, std::uint64_t) -> StatusOr<audit::Event> {
        RETURN_IF_ERROR(contracts::PutPolicyLife(store.Db(), source, life));
        return leaf;
      })
      .status();
}

StatusOr<std::vector<policy::Policy>> SitePolicyBooks::Sites() {
  ASSIGN_OR_RETURN(const contracts::PolicyLife life, Find(kSite));
  std::vector<policy::Policy> sites;
  if (life.in_force) {
    ASSIGN_OR_RETURN(policy::Policy site,
                     policy::ParsePolicy(life.in_force->text, kSite, policy::PolicySource::kSite));
    sites.push_back(std::move(site));
  }
  return sites;
}

}  // namespace domicile::site_agent

#include "aggregator/coordinator/policy_books.h"

#include <map>
#include <utility>

#include "contracts/in_force/policy_store.h"
#include "policy/language/statement.h"

namespace domicile::aggregator {

StatusOr<contracts::PolicyLife> StorePolicyBooks::Find(std::string_view source) {
  const MutexLock lock(mutex_);
  return contracts::FindPolicyLife(store_.Db(), source);
}

Status StorePolicyBooks::Record(std::string_view source, const contracts::PolicyLife& life,
                                const StatusOr<audit::Event>& leaf) {
  RETURN_IF_ERROR(leaf.status());
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(store_.Db()));
  RETURN_IF_ERROR(contracts::PutPolicyLife(store_.Db(), source, life));
  RETURN_IF_ERROR(log_->Append(*leaf).status());
  return transaction.Commit();
}

StatusOr<std::vector<policy::Policy>> StorePolicyBooks::Sites() {
  std::map<SiteId, SiteRow> rows;
  {
    const MutexLock lock(mutex_);
    ASSIGN_OR_RETURN(rows, store_.Sites());
  }
  std::vector<policy::Policy> sites;
  for (const auto& [site, row] : rows) {
    ASSIGN_OR_RETURN(policy::Policy policy, policy::ParseStatement(row.statement));
    policy.identity.id = site.text();  // statements of two sites may have one id
    sites.push_back(std::move(policy));
  }
  return sites;
}

}  // namespace domicile::aggregator

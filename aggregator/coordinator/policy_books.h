// The coordinator's store and log as its policy keeper wants them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "aggregator/coordinator/store.h"
#include "audit/log.h"
#include "base/mutex.h"
#include "contracts/in_force/policy_keeper.h"

namespace domicile::aggregator {

// Thread-safe. Borrows all three; the mutex guards the other two, and the log is there by the time
// the first is asked for.
class StorePolicyBooks final : public contracts::PolicyBooks {
 public:
  StorePolicyBooks(Mutex& mutex, Store& store, std::optional<audit::Log>& log)
      : mutex_(mutex), store_(store), log_(log) {}
  StatusOr<contracts::PolicyLife> Find(std::string_view source) override;
  Status Record(std::string_view source, const contracts::PolicyLife& life,
                const StatusOr<audit::Event>& leaf) override;
  // Every site that ever connected, as its last statement says, under its name.
  StatusOr<std::vector<policy::Policy>> Sites() override;

 private:
  Mutex& mutex_;
  Store& store_ GUARDED_BY(mutex_);
  std::optional<audit::Log>& log_ GUARDED_BY(mutex_);
};

}  // namespace domicile::aggregator

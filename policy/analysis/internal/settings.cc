#include "policy/analysis/internal/settings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "policy/engine/fold.h"

namespace domicile::policy::analysis::internal {
namespace {

std::string Show(std::uint64_t value) { return std::to_string(value); }
std::string Show(double value) { return PrintDouble(value); }
std::string Show(bool value) { return value ? "true" : "false"; }
template <typename E>
requires std::is_enum_v<E> std::string Show(E value) { return std::string(Code(value)); }
std::string Show(const std::set<std::string>& values) {
  return "[" + Join(std::vector<std::string>(values.begin(), values.end()), ", ") + "]";
}
std::string Show(WallTime value) { return PrintTime(value); }
template <typename T>
std::string Show(const std::optional<T>& value) {
  return value ? Show(*value) : "";
}

class Comparison {
 public:
  // A bound that a request may not exceed: a larger one, or none, is looser.
  template <typename T>
  void AtMost(std::string key, const std::optional<T>& before, const std::optional<T>& after) {
    Note(std::move(key), before, after, before && (!after || *after > *before));
  }
  // A bound that a request must reach: a smaller one, or none, is looser.
  template <typename T>
  void AtLeast(std::string key, const std::optional<T>& before, const std::optional<T>& after) {
    Note(std::move(key), before, after, before && (!after || *after < *before));
  }
  // What is in the list is allowed; without a list, anything.
  template <typename T>
  void Within(std::string key, const std::optional<std::set<T>>& before,
              const std::optional<std::set<T>>& after) {
    const bool loosens = before && (!after || !std::includes(before->begin(), before->end(),
                                                             after->begin(), after->end()));
    Note(std::move(key), before, after, loosens);
  }

  std::vector<SettingChange> Take() { return std::move(changes_); }

 private:
  template <typename T>
  void Note(std::string key, const std::optional<T>& before, const std::optional<T>& after,
            bool loosens) {
    if (before != after) {
      changes_.push_back({"", "", std::move(key), Show(before), Show(after), loosens});
    }
  }

  std::vector<SettingChange> changes_;
};

std::map<ApprovalRole, std::uint64_t> ApprovalsOf(const Terms& terms) {
  std::map<ApprovalRole, std::uint64_t> approvals;
  for (const auto& clause : terms.approvals) {
    for (const auto& [role, wanted] : clause.value) {
      approvals[role] = std::max<std::uint64_t>(approvals[role], wanted.count);
    }
  }
  return approvals;
}

void CompareApprovals(const Terms& before, const Terms& after, Comparison& comparison) {
  const auto old_counts = ApprovalsOf(before);
  const auto new_counts = ApprovalsOf(after);
  for (const ApprovalRole role : AllOf<ApprovalRole>()) {
    const auto count = [role](const std::map<ApprovalRole, std::uint64_t>& counts) {
      const auto found = counts.find(role);
      return std::optional<std::uint64_t>(found == counts.end() ? 0 : found->second);
    };
    comparison.AtLeast("approvals.required " + std::string(Code(role)), count(old_counts),
                       count(new_counts));
  }
}

// One clause's grounds that no ground of the other clause, of the same area and mechanism, is at
// least as wide as.
bool IsAsWide(const TransferGround& wide, const TransferGround& narrow) {
  const bool ends_no_sooner =
      !wide.valid_until || (narrow.valid_until && *wide.valid_until >= *narrow.valid_until);
  return wide.to == narrow.to && wide.mechanism == narrow.mechanism && ends_no_sooner &&
         (wide.importer.empty() || wide.importer == narrow.importer);
}

std::string Show(const TransferGround& ground) {
  std::string text = ground.to.text() + " by " + std::string(Code(ground.mechanism));
  text += ground.importer.empty() ? "" : " for " + ground.importer;
  return text + (ground.valid_until ? " until " + PrintTime(*ground.valid_until) : "");
}

// A ground that rests on a fact of tomorrow gains no request today: so the grounds themselves are
// compared.
void CompareGrounds(const Terms& before, const Terms& after, std::vector<SettingChange>& changes) {
  const auto all = [](const Terms& terms) {
    std::vector<TransferGround> grounds;
    for (const auto& clause : terms.grounds) {
      grounds.insert(grounds.end(), clause.value.begin(), clause.value.end());
    }
    return grounds;
  };
  const auto report = [&changes](const std::vector<TransferGround>& more,
                                 const std::vector<TransferGround>& less, bool loosens) {
    for (const TransferGround& ground : more) {
      const bool is_new =
          std::none_of(less.begin(), less.end(),
                       [&ground](const TransferGround& old) { return IsAsWide(old, ground); });
      if (is_new) {
        changes.push_back({"", "", "rule.transfer", loosens ? "" : Show(ground),
                           loosens ? Show(ground) : "", loosens});
      }
    }
  };
  report(all(after), all(before), true);
  report(all(before), all(after), false);
}

}  // namespace

std::vector<SettingChange> CompareTerms(const Terms& before, const Terms& after) {
  Comparison compare;
  const auto at_most = [&](std::string key, auto member) {
    compare.AtMost(std::move(key), Least(before.*member), Least(after.*member));
  };
  const auto at_least = [&](std::string key, auto member) {
    compare.AtLeast(std::move(key), Greatest(before.*member), Greatest(after.*member));
  };
  at_least("require.privacy.min_contributors", &Terms::min_contributors);
  at_least("require.privacy.min_cohort", &Terms::min_cohort);
  at_least("require.privacy.min_batch", &Terms::min_batch);
  at_least("require.privacy.min_local_steps", &Terms::min_local_steps);
  at_most("require.privacy.clip_l2", &Terms::clip_l2);
  at_least("require.privacy.dp_mode", &Terms::dp_mode);
  at_least("require.privacy.require_secagg", &Terms::require_secagg);
  at_most("limit.rounds", &Terms::rounds);
  at_most("limit.runs_per_day", &Terms::runs_per_day);
  at_most("limit.update_bytes", &Terms::update_bytes);
  at_most("limit.released_numbers_per_record", &Terms::released_numbers_per_record);
  at_most("limit.metrics", &Terms::metrics);
  at_most("limit.params_per_record", &Terms::params_per_record);
  at_most("sandbox.network", &Terms::sandbox_network);
  at_most("update.weights", &Terms::weights);
  CompareApprovals(before, after, compare);
  std::vector<SettingChange> changes = compare.Take();
  CompareGrounds(before, after, changes);
  return changes;
}

std::vector<SettingChange> CompareFiles(const Policy& before, const Policy& after) {
  Comparison compare;
  using Count = std::optional<std::uint64_t>;
  using Names = std::optional<std::set<std::string>>;
  compare.AtLeast("policy.threshold", Count(before.identity.threshold),
                  Count(after.identity.threshold));
  // A life that ends no later than that of the facts gains no request today; it would, quietly,
  // when the facts are renewed.
  compare.AtLeast("policy.not_before", std::optional<WallTime>(before.identity.not_before),
                  std::optional<WallTime>(after.identity.not_before));
  compare.AtMost("policy.expires", std::optional<WallTime>(before.identity.expires),
                 std::optional<WallTime>(after.identity.expires));
  const auto names = [](const std::vector<std::string>& list) {
    return Names(std::set<std::string>(list.begin(), list.end()));
  };
  compare.Within("policy.signers", names(before.identity.signers), names(after.identity.signers));
  const auto seconds = [](const std::optional<Duration>& duration) {
    return duration ? Count(static_cast<std::uint64_t>(duration->count())) : Count();
  };
  compare.AtLeast("policy.cooldown, seconds", seconds(before.identity.cooldown),
                  seconds(after.identity.cooldown));
  const auto pinned = [](const std::string& digest) {
    return digest.empty() ? Names() : Names(std::set<std::string>{digest});
  };
  compare.Within("policy.legal_facts", pinned(before.identity.legal_facts),
                 pinned(after.identity.legal_facts));
  const auto keys = [&names](const Policy& policy) {
    return policy.approvals ? names(policy.approvals->keys) : Names(std::set<std::string>());
  };
  if (before.source == PolicySource::kSite || after.source == PolicySource::kSite) {
    compare.Within("approvals.keys", keys(before), keys(after));
  }
  return compare.Take();
}

}  // namespace domicile::policy::analysis::internal

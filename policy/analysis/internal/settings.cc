#include "policy/analysis/internal/settings.h"

#include <algorithm>
#include <array>
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
template <typename E>
std::string Show(const std::set<E>& values) {
  std::vector<std::string> codes;
  codes.reserve(values.size());
  for (const E value : values) {
    codes.emplace_back(Code(value));
  }
  return "[" + Join(codes, ", ") + "]";
}
std::string Show(const std::set<std::string>& values) {
  return "[" + Join(std::vector<std::string>(values.begin(), values.end()), ", ") + "]";
}
std::string Show(Duration value) {
  return value == kLifeOfDataset ? "life" : std::to_string(value.count()) + "s";
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

  // What is in the list is denied.
  template <typename T>
  void Beyond(std::string key, const std::set<T>& before, const std::set<T>& after) {
    Note(std::move(key), std::optional(before), std::optional(after),
         !std::includes(after.begin(), after.end(), before.begin(), before.end()));
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

// The lists of areas that must all cover, by their texts: whether one list is wider than another in
// other words cannot be told without a date, and counts as loosening.
std::optional<std::set<std::string>> AreaTexts(const Clauses<std::set<Area>>& clauses) {
  std::optional<std::set<std::string>> common;
  for (const auto& clause : clauses) {
    std::set<std::string> texts;
    for (const Area& area : clause.value) {
      texts.insert(area.text());
    }
    if (!common) {
      common = std::move(texts);
    } else {
      std::erase_if(*common, [&texts](const std::string& text) { return !texts.contains(text); });
    }
  }
  return common;
}

void CompareApprovals(const Terms& before, const Terms& after, Comparison& comparison) {
  const auto old_wanted = FoldApprovals(before);
  const auto new_wanted = FoldApprovals(after);
  for (const ApprovalRole role : AllOf<ApprovalRole>()) {
    const auto wanted = [role](const std::map<ApprovalRole, WantedApproval>& all) {
      const auto found = all.find(role);
      return found == all.end() ? WantedApproval{} : found->second;
    };
    const std::string key = "approvals.required " + std::string(Code(role));
    const WantedApproval was = wanted(old_wanted);
    const WantedApproval is = wanted(new_wanted);
    comparison.AtLeast(key, std::optional<std::uint64_t>(was.count),
                       std::optional<std::uint64_t>(is.count));
    comparison.AtLeast(key + ", distinct_org", std::optional<bool>(was.distinct_org),
                       std::optional<bool>(is.distinct_org));
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

// The blocs that a list of areas names and of which the facts say nothing at all: no request can
// be in them today, and whoever adds the fact would open (or close) them without a word here.
std::set<std::string> UnknownBlocs(const Clauses<std::set<Area>>& clauses, const Facts& facts) {
  std::set<std::string> unknown;
  for (const auto& clause : clauses) {
    for (const Area& area : clause.value) {
      const bool is_known =
          std::any_of(facts.facts.begin(), facts.facts.end(), [&area](const Fact& fact) {
            return fact.kind == FactKind::kBloc && fact.bloc == area.text();
          });
      if (area.IsBloc() && !is_known) {
        unknown.insert(area.text());
      }
    }
  }
  return unknown;
}

std::string NamedBlocs(const std::set<std::string>& blocs) {
  std::string text;
  for (const std::string& bloc : blocs) {
    text += (text.empty() ? "" : ", ") + bloc;
  }
  return text.empty() ? "" : text + " (the legal facts do not say who is in it)";
}

// The lists of areas that differ in such a bloc.
void CompareUnknownBlocs(const Terms& before, const Facts& old_facts, const Terms& after,
                         const Facts& new_facts, std::vector<SettingChange>& changes) {
  struct List {
    std::string_view key;
    const Clauses<std::set<Area>> Terms::*clauses;
    bool denies;
  };
  const std::array<List, 5> lists = {
      {{"allow.aggregator_locations", &Terms::aggregator_locations, false},
       {"allow.aggregator_control", &Terms::aggregator_control, false},
       {"model.recipients", &Terms::model_recipients, false},
       {"deny.locations", &Terms::deny_locations, true},
       {"deny.control", &Terms::deny_control, true}}};
  for (const List& list : lists) {
    const std::set<std::string> was = UnknownBlocs(before.*list.clauses, old_facts);
    const std::set<std::string> is = UnknownBlocs(after.*list.clauses, new_facts);
    if (was == is) {
      continue;
    }
    const std::set<std::string>& fewer = list.denies ? is : was;
    const std::set<std::string>& more = list.denies ? was : is;
    changes.push_back(
        {.site = {},
         .dataset = {},
         .key = std::string(list.key),
         .before = NamedBlocs(was),
         .after = NamedBlocs(is),
         .loosens = !std::includes(fewer.begin(), fewer.end(), more.begin(), more.end())});
  }
}

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
  at_least("require.privacy.secagg_threshold", &Terms::secagg_threshold);
  at_least("require.privacy.dp_unit", &Terms::dp_unit);
  at_least("require.privacy.sampling", &Terms::sampling);
  at_least("require.evidence", &Terms::evidence);
  at_least("site.location_evidence", &Terms::site_evidence);
  at_most("limit.epsilon_total", &Terms::epsilon_total);
  at_most("limit.epsilon_per_run", &Terms::epsilon_per_run);
  at_most("limit.delta", &Terms::delta);
  at_least("limit.budget_window", &Terms::budget_window);
  at_most("limit.export_subjects_per_year", &Terms::export_subjects_per_year);
  at_most("sandbox.network", &Terms::sandbox_network);
  at_least("sandbox.profile_min", &Terms::sandbox_profile);
  at_most("update.weights", &Terms::weights);
  at_most("approvals.max_age", &Terms::approval_max_age);
  at_least("retention.audit_min", &Terms::audit_min);
  at_most("retention.update_max", &Terms::update_max);
  at_most("retention.model_review", &Terms::model_review);
  at_least("erasure.on_withdrawal", &Terms::on_withdrawal);
  at_least("audit.witnesses_min", &Terms::witnesses_min);
  at_most("audit.max_unwitnessed_age", &Terms::max_unwitnessed_age);
  at_most("time.max_skew", &Terms::max_skew);
  // Allowed only if all allow it: the least of the answers counts.
  at_most("allow.derogations", &Terms::derogations);
  const auto within = [&](std::string key, auto member) {
    compare.Within(std::move(key), Intersection(before.*member), Intersection(after.*member));
  };
  within("allow.models", &Terms::models);
  within("allow.trainers", &Terms::trainers);
  within("allow.contributors", &Terms::contributors);
  compare.Within("allow.transit", AreaTexts(before.transit), AreaTexts(after.transit));
  compare.Beyond("deny.outputs", Union(before.deny_outputs), Union(after.deny_outputs));
  CompareApprovals(before, after, compare);
  std::vector<SettingChange> changes = compare.Take();
  CompareGrounds(before, after, changes);
  return changes;
}

}  // namespace

std::vector<SettingChange> CompareSettings(const Terms& before, const Facts& old_facts,
                                           const Terms& after, const Facts& new_facts) {
  std::vector<SettingChange> changes = CompareTerms(before, after);
  CompareUnknownBlocs(before, old_facts, after, new_facts, changes);
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

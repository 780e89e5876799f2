// The keys of a rule and of a policy's sections as values, so that one can be taken away or made as
// loose as the language goes, one at a time.
#pragma once

#include <span>
#include <string_view>

#include "policy/language/policy.h"

namespace domicile::policy::analysis::internal {

struct RuleKey {
  std::string_view name;  // `allow.update_kinds`
  bool (*is_set)(const Rule& rule);
  void (*clear)(Rule& rule);   // as if the author had not written it
  void (*loosen)(Rule& rule);  // as loose as can be written
};
std::span<const RuleKey> RuleKeys();

struct SectionKey {
  std::string_view name;  // `model.recipients`
  bool (*is_set)(const Policy& policy);
  void (*clear)(Policy& policy);
  void (*loosen)(Policy& policy);
  std::uint32_t (*line)(const Policy& policy);
};
std::span<const SectionKey> SectionKeys();

// Every country, by its code.
std::set<Area> EveryArea();

}  // namespace domicile::policy::analysis::internal

// The life of a policy file at one program: which version is in force, which one waits, and what
// becomes of a file that lies there now. Tightening is quick, loosening has a ceremony
// (docs/formats/policy-signature.md). Pure: the program keeps PolicyLife durably.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "policy/language/policy.h"
#include "policy/reason.h"

namespace domicile::contracts {

// One version of a file, as it was read.
struct PolicyVersion {
  std::string text;  // exact
  Digest digest;     // of the text
  std::uint64_t version = 0;
  friend bool operator==(const PolicyVersion&, const PolicyVersion&) = default;
};

struct PolicyLife {
  std::optional<PolicyVersion> in_force;
  std::optional<PolicyVersion> waiting;  // allows more, and is well signed
  WallTime waiting_since;                // when it was seen first
  friend bool operator==(const PolicyLife&, const PolicyLife&) = default;
};

// Who must have signed a version, and how long it waits if it allows more.
struct PolicyCeremony {
  std::vector<std::string> signers;  // names of keys; empty: every key of the configuration
  std::uint32_t threshold = 1;
  std::chrono::seconds cooldown{0};
};

// Where the versions of a site do not say, what allows more waits for a day.
inline constexpr std::chrono::seconds kDefaultCooldown = std::chrono::hours(24);

// The ceremony of `next` after `in_force` (null: nothing is): the greater threshold and the longer
// cool-down of the two, and the signers whom the one in force names: a new version cannot lower
// the bar for itself.
PolicyCeremony CeremonyOf(const policy::PolicyIdentity* in_force,
                          const policy::PolicyIdentity& next);

enum class PolicyStep : std::uint8_t {
  kRefuse = 0,  // the one in force stays; `reason` says why
  kSame = 1,    // it is the one in force; what waited is withdrawn
  kAdopt = 2,   // from now on
  kWait = 3,    // until `effective_at`
};

struct PolicyVerdict {
  PolicyStep step = PolicyStep::kRefuse;
  policy::Reason reason = policy::Reason::kPolicySignature;
  WallTime effective_at;        // kWait
  bool is_first_sight = false;  // kWait: it was not waiting before
};

// `signers`: of the configuration's keys, those that signed; unset: files are taken unsigned.
// `loosens`: whether it allows anything that the one in force does not; true if that cannot be
// told. The first version ever needs the threshold and waits for nothing.
PolicyVerdict WeighPolicy(const PolicyLife& life, const PolicyVersion& next,
                          const std::optional<std::vector<std::string>>& signers, bool loosens,
                          const PolicyCeremony& ceremony, WallTime now);

// What the life is after a verdict.
PolicyLife After(PolicyLife life, PolicyVersion next, const PolicyVerdict& verdict, WallTime now);

}  // namespace domicile::contracts

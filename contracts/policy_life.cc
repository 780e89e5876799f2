#include "contracts/policy_life.h"

#include <algorithm>
#include <utility>

namespace domicile::contracts {

namespace {

using policy::Reason;

std::size_t CountSigners(const std::vector<std::string>& signed_by,
                         const std::vector<std::string>& allowed) {
  return static_cast<std::size_t>(
      std::count_if(signed_by.begin(), signed_by.end(), [&](const std::string& name) {
        return allowed.empty() || std::find(allowed.begin(), allowed.end(), name) != allowed.end();
      }));
}

}  // namespace

PolicyCeremony CeremonyOf(const policy::PolicyIdentity* in_force,
                          const policy::PolicyIdentity& next) {
  PolicyCeremony ceremony{.signers = next.signers,
                          .threshold = next.threshold,
                          .cooldown = next.cooldown.value_or(kDefaultCooldown)};
  if (in_force != nullptr) {
    ceremony.signers = in_force->signers;
    ceremony.threshold = std::max(in_force->threshold, next.threshold);
    ceremony.cooldown = std::max(
        in_force->cooldown.value_or(next.cooldown.value_or(kDefaultCooldown)), ceremony.cooldown);
  }
  ceremony.threshold = std::max<std::uint32_t>(ceremony.threshold, 1);
  return ceremony;
}

PolicyVerdict WeighPolicy(const PolicyLife& life, const PolicyVersion& next,
                          const std::optional<std::vector<std::string>>& signers, bool loosens,
                          const PolicyCeremony& ceremony, WallTime now) {
  const auto refuse = [](Reason reason) {
    return PolicyVerdict{PolicyStep::kRefuse, reason, {}, false};
  };
  const bool is_first = !life.in_force.has_value();
  if (!is_first && life.in_force->digest == next.digest) {
    return {PolicyStep::kSame, Reason::kNone, {}, false};
  }
  // The number alone would do for an older file put back; two files of one number are one too many.
  if (!is_first && next.version <= life.in_force->version) {
    return refuse(Reason::kPolicyRollback);
  }
  const std::size_t wanted = is_first || loosens ? ceremony.threshold : 1;
  if (signers && CountSigners(*signers, ceremony.signers) < wanted) {
    return refuse(Reason::kPolicySignature);
  }
  if (is_first || !loosens) {
    return {PolicyStep::kAdopt, Reason::kNone, {}, false};
  }
  const bool is_first_sight = !life.waiting || life.waiting->digest != next.digest;
  const WallTime since = is_first_sight ? now : life.waiting_since;
  const WallTime effective_at = since + ceremony.cooldown;
  return effective_at <= now ? PolicyVerdict{PolicyStep::kAdopt, Reason::kNone, {}, false}
                             : PolicyVerdict{PolicyStep::kWait, Reason::kPolicyCooldown,
                                             effective_at, is_first_sight};
}

PolicyLife After(PolicyLife life, PolicyVersion next, const PolicyVerdict& verdict, WallTime now) {
  switch (verdict.step) {
    case PolicyStep::kRefuse:
      break;  // what waits goes on waiting: a bad file does not undo what was well signed
    case PolicyStep::kSame:
      life.waiting.reset();
      life.waiting_since = {};
      break;
    case PolicyStep::kAdopt:
      life.in_force = std::move(next);
      life.waiting.reset();
      life.waiting_since = {};
      break;
    case PolicyStep::kWait:
      if (verdict.is_first_sight) {
        life.waiting_since = now;
      }
      life.waiting = std::move(next);
      break;
  }
  return life;
}

}  // namespace domicile::contracts

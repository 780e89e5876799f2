#include "aggregator/coordinator/signed_policies.h"

#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "contracts/policy_life.h"
#include "contracts/policy_signature.h"

namespace domicile::aggregator {

namespace {

constexpr std::uint64_t kLargestNote = std::uint64_t{1} << 20U;

Status CheckOne(const std::string& file, const std::string& text,
                std::span<const crypto::NoteVerifier> keys,
                const contracts::PolicyCeremony& ceremony) {
  const StatusOr<std::string> note = ReadFile(file + ".sig", kLargestNote);
  if (!note.ok()) {
    return Error(StatusCode::kUnauthenticated,
                 "`" + file + "` is not signed: " + std::string(Message(note.status())));
  }
  const StatusOr<std::vector<std::string>> signers =
      contracts::VerifyPolicySignature(text, *note, keys);
  if (!signers.ok()) {
    return Annotate(signers.status(), "`" + file + "`");
  }
  const contracts::PolicyVerdict verdict = contracts::WeighPolicy(
      {}, {.text = text, .digest = {}, .version = 0}, *signers, true, ceremony, {});
  return verdict.step == contracts::PolicyStep::kAdopt
             ? OkStatus()
             : Error(StatusCode::kUnauthenticated,
                     "`" + file + "`: " + std::string(policy::Explain(verdict.reason)));
}

}  // namespace

Status CheckSigned(const Config& config, const PolicyFiles& policies) {
  const contracts::PolicySigners& signers = config.policy_signers;
  if (signers.none) {
    return OkStatus();
  }
  RETURN_IF_ERROR(CheckOne(config.federation_policy, policies.federation_text, signers.federation,
                           contracts::CeremonyOf(nullptr, policies.federation.identity)));
  RETURN_IF_ERROR(CheckOne(config.aggregator_policy, policies.aggregator_text, signers.aggregator,
                           contracts::CeremonyOf(nullptr, policies.aggregator.identity)));
  return CheckOne(config.legal_facts, policies.facts_text, signers.facts, {});
}

}  // namespace domicile::aggregator

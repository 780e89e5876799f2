#include "policy/reason.h"

#include <array>
#include <cstddef>

namespace domicile::policy {
namespace {

struct Entry {
  Reason reason;
  std::string_view code;
  std::string_view sentence;
};

// In order of numbers. The page docs/formats/reason-codes.md holds the same list, and a test
// compares.
constexpr std::array kEntries = {
    Entry{Reason::kNone, "NONE",
          "No reason was given; this is never sent, so a message that holds it is refused."},
    Entry{Reason::kPermitted, "PERMITTED", "Every policy allows it."},
    Entry{Reason::kNoRuleMatched, "NO-RULE",
          "No rule of the site speaks for this dataset; add a rule to the site policy that "
          "names it."},
    Entry{Reason::kForbidden, "FORBIDDEN",
          "A deny rule or a country-of-concern fact matches; it wins over every allow."},
    Entry{Reason::kRuleInvalid, "RULE-INVALID",
          "A rule or the request cannot be evaluated, and what cannot be evaluated is denied; "
          "fix what the finding names."},
    Entry{Reason::kPolicyExpired, "POLICY-EXPIRED",
          "A policy is past its expiry; its owner must issue a new version."},
    Entry{Reason::kPolicyNotYetValid, "POLICY-NOT-YET-VALID",
          "A policy is not in force yet; wait for its not_before or check the clock."},
    Entry{Reason::kPolicyDigestMismatch, "POLICY-DIGEST-MISMATCH",
          "The two ends hold different effective policies; exchange the policy files again "
          "and compare versions."},
    Entry{Reason::kPolicyUnsatisfiable, "POLICY-UNSATISFIABLE",
          "Two rules leave nothing to allow; one of the two lines named must change."},
    Entry{Reason::kLocation, "LOCATION",
          "The receiver is at a place that no rule allows, or its place cannot be read."},
    Entry{Reason::kControl, "CONTROL",
          "The receiver is controlled from a place that no rule allows, or nobody says from "
          "where."},
    Entry{Reason::kRecipient, "RECIPIENT",
          "A party that would get models is not among the allowed recipients."},
    Entry{Reason::kPurpose, "PURPOSE", "The dataset may not be used for this purpose."},
    Entry{Reason::kUpdateKind, "UPDATE-KIND",
          "This kind of numbers may not leave for this dataset."},
    Entry{Reason::kView, "VIEW",
          "The receiver would see more of one site's contribution than the policy allows."},
    Entry{Reason::kEdpbUseCase6, "EDPB-UC6",
          "A readable contribution of one site would go to a country without an adequacy "
          "decision, for which the EDPB knows no effective measure; use secure aggregation, "
          "or move the aggregator to an adequate country."},
    Entry{Reason::kNoTransferMechanism, "NO-TRANSFER-MECHANISM",
          "No legal ground is stated for this border; add a transfer entry to the site "
          "policy."},
    Entry{Reason::kFactMissing, "FACT-MISSING",
          "A legal fact that the decision needs is not in the legal facts file."},
    Entry{Reason::kFactExpired, "FACT-EXPIRED",
          "A legal fact is out of date; have the legal facts file checked and renewed."},
    Entry{Reason::kDocumentMissing, "DOCUMENT-MISSING",
          "A document that the law asks for is not named in the policy."},
    Entry{Reason::kDocumentExpired, "DOCUMENT-EXPIRED",
          "A document named in the policy is past its date; renew it and the policy."},
    Entry{Reason::kMinContributors, "MIN-CONTRIBUTORS",
          "Too few independent organisations stand behind the sum."},
    Entry{Reason::kMinCohort, "MIN-COHORT",
          "Too few records stand behind the numbers, or it is not known how many."},
    Entry{Reason::kClip, "CLIP", "The plan's clip norm is not a positive number."},
    Entry{Reason::kLocalSteps, "LOCAL-STEPS",
          "The plan trains fewer local steps a round than the policy asks for."},
    Entry{Reason::kBatch, "BATCH", "The plan's batches are smaller than the policy asks for."},
    Entry{Reason::kLimitRounds, "LIMIT-ROUNDS", "The plan has more rounds than the policy allows."},
    Entry{Reason::kLimitRuns, "LIMIT-RUNS",
          "The dataset has been used for as many runs today as the policy allows."},
    Entry{Reason::kLimitBytes, "LIMIT-BYTES", "The update is larger than the policy allows."},
    Entry{Reason::kLimitReleasedNumbers, "LIMIT-RELEASED-NUMBERS",
          "More numbers for each record would have left than the policy allows."},
    Entry{Reason::kPrivacyRequired, "PRIVACY-REQUIRED",
          "The policy asks for differential privacy that the plan does not give."},
    Entry{Reason::kModelNotAllowed, "MODEL-NOT-ALLOWED",
          "The model is not among those the policy allows."},
    Entry{Reason::kTrainerNotAllowed, "TRAINER-NOT-ALLOWED",
          "The trainer program is not among those the policy allows."},
    Entry{Reason::kDatasetUnknown, "DATASET-UNKNOWN",
          "The site's policy describes no dataset of this alias."},
    Entry{Reason::kApprovalMissing, "APPROVAL-MISSING",
          "Everything else is in order; a person at the site must approve."},
    Entry{Reason::kSandboxMissing, "SANDBOX-MISSING",
          "The trainer's sandbox is missing or reaches further than the policy allows."},
    Entry{Reason::kOutputForbidden, "OUTPUT-FORBIDDEN",
          "This form of output is forbidden for the dataset."},
    Entry{Reason::kSecureAggregationRequired, "SECURE-AGGREGATION-REQUIRED",
          "The policy asks for secure aggregation, and the plan lets the aggregator see "
          "single contributions."},
    Entry{Reason::kLimitMetrics, "LIMIT-METRICS",
          "The update carries more metrics than the policy allows."},
    Entry{Reason::kLegalFactsDigest, "LEGAL-FACTS-DIGEST",
          "A policy was written for other legal facts than those in force; have it read against "
          "the new facts and issue it again."},
    Entry{Reason::kLocationEvidence, "LOCATION-EVIDENCE",
          "The place of a party is known less surely than the policy asks for."},
    Entry{Reason::kDerogation, "DEROGATION",
          "Only a derogation for single cases is stated for this border, and the policy does not "
          "let those count."},
    Entry{Reason::kLimitEpsilon, "LIMIT-EPSILON",
          "The privacy budget does not cover it: epsilon or delta would be more than the policy "
          "allows, or is not known."},
    Entry{Reason::kDpUnit, "DP-UNIT",
          "Differential privacy would hide less than the unit that the policy asks for."},
    Entry{Reason::kRetention, "RETENTION",
          "A party keeps logs for a shorter time, or updates or models for a longer time, than the "
          "policy allows, or does not say for how long."},
    Entry{Reason::kWitnesses, "WITNESSES",
          "Fewer witnesses have signed the head of the log than the policy asks for."},
    Entry{Reason::kTransit, "TRANSIT", "The bytes would pass through a place that no rule allows."},
    Entry{Reason::kPurposeProhibited, "PURPOSE-PROHIBITED",
          "The purpose is one that a policy forbids by name; no allow lifts that."},
    Entry{Reason::kNegativeList, "NEGATIVE-LIST",
          "A negative list of the law forbids transfers to this place, whatever is stated."},
    Entry{Reason::kExportSubjects, "EXPORT-SUBJECTS",
          "More people's data would leave within a year than the policy allows, or it is not known "
          "how many."},
    Entry{Reason::kSampling, "SAMPLING",
          "The policy asks for batches drawn by the agent, and the plan draws them otherwise."},
    Entry{Reason::kEdpbUseCase7, "EDPB-UC7",
          "Somebody in a country without an adequacy decision would look at readable data, for "
          "which the EDPB knows no effective measure; let only sums be seen, or look from an "
          "adequate country."},
    Entry{Reason::kSubjectsThreshold, "SUBJECTS-THRESHOLD",
          "From so many people on, the law lets only certain grounds count for this border, and "
          "the stated one is not among them; it may also not be known how many people there are."},
    Entry{
        Reason::kPolicySignature, "POLICY-SIGNATURE",
        "The policy or the legal facts are not signed by enough of the keys this program trusts."},
    Entry{Reason::kPolicyRollback, "POLICY-ROLLBACK",
          "The policy is an older version than one already seen, or another text of the same "
          "version."},
    Entry{Reason::kPolicyCooldown, "POLICY-COOLDOWN",
          "The policy allows more than the one before and is still in its cool-down; the one "
          "before stays in force."},
    Entry{Reason::kGrantSignature, "GRANT-SIGNATURE",
          "The grant is not signed by enough of the keys this program trusts."},
    Entry{Reason::kGrantExpired, "GRANT-EXPIRED",
          "The grant is past its date; approve the job again."},
    Entry{Reason::kGrantPlan, "GRANT-PLAN", "The grant is for another plan."},
    Entry{Reason::kGrantTrainer, "GRANT-TRAINER", "The grant is for another trainer program."},
    Entry{Reason::kGrantBaseModel, "GRANT-BASE-MODEL", "The grant is for another first model."},
    Entry{Reason::kGrantDataset, "GRANT-DATASET",
          "The grant is for another dataset, or for another content of it."},
    Entry{Reason::kGrantPolicy, "GRANT-POLICY",
          "The grant was given under another effective policy; approve the job again."},
    Entry{Reason::kApprovalExpired, "APPROVAL-EXPIRED",
          "An approval is older than the policy lets one count; a person must approve again."},
    Entry{Reason::kApprovalDenied, "APPROVAL-DENIED",
          "A person at the site refused this job or took the approval back; only a new job can be "
          "approved."},
    Entry{Reason::kGrantUsed, "GRANT-USED",
          "The run that this grant was given for is over, or has gone past this round; only a new "
          "job can be approved."},
    Entry{Reason::kModelDigest, "MODEL-DIGEST",
          "The model received has not the digest that was announced."},
    Entry{Reason::kModelJump, "MODEL-JUMP",
          "The model differs from the last one by more than one committed round can explain; "
          "do not train on it, and ask the aggregator's operator."},
    Entry{Reason::kModelShape, "MODEL-SHAPE", "The model's tensors are not those of the plan."},
    Entry{Reason::kModelNotFinite, "MODEL-NOT-FINITE",
          "The model holds a value that is not a finite number."},
    Entry{Reason::kNormalisation, "NORMALISATION",
          "The normalisation constants changed after they were fixed, or lie below the floor "
          "of the plan."},
    Entry{Reason::kStatDifference, "STAT-DIFFERENCE",
          "Together with a statistic already released, this one would tell about too few "
          "records."},
    Entry{Reason::kStatRepeated, "STAT-REPEATED",
          "This statistic has already left for this dataset version."},
    Entry{Reason::kNoExamples, "NO-EXAMPLES",
          "The site has no record to train on; check the dataset description."},
    Entry{Reason::kTrainerUnavailable, "TRAINER-UNAVAILABLE",
          "The trainer service does not answer; start it."},
    Entry{Reason::kTrainerFailed, "TRAINER-FAILED",
          "The trainer could not do the task; its own log at the site says why."},
    Entry{Reason::kDatasetInvalid, "DATASET-INVALID",
          "The data do not fit their description or the plan's schema; the trainer's log at "
          "the site says where."},
    Entry{Reason::kLogUnavailable, "LOG-UNAVAILABLE",
          "The audit log cannot be written, and nothing leaves that is not logged."},
    Entry{Reason::kDiskFull, "DISK-FULL", "There is no space left to keep what must be kept."},
    Entry{Reason::kClock, "CLOCK",
          "The clock is behind what has been witnessed, or too far from the others; set it."},
    Entry{Reason::kRosterStale, "ROSTER-STALE",
          "The roster is past its date or older than one already seen."},
    Entry{Reason::kUnwitnessed, "UNWITNESSED",
          "The site's log has not been witnessed for too long."},
    Entry{Reason::kCertificate, "CERTIFICATE",
          "The certificate is not valid for this use; renew it or check the trust root."},
    Entry{Reason::kNotInRoster, "NOT-IN-ROSTER", "The party or its key is not in the roster."},
    Entry{Reason::kRole, "ROLE", "The certificate's role may not make this call."},
    Entry{Reason::kClaimedIdentity, "CLAIMED-IDENTITY",
          "The message claims another identity than the certificate proves."},
    Entry{Reason::kJurisdictionMismatch, "JURISDICTION-MISMATCH",
          "Certificate, roster and policy do not name the same place."},
    Entry{Reason::kInstance, "INSTANCE",
          "A later start of the same site has already been seen; stop the older or cloned "
          "agent."},
    Entry{Reason::kEpochTooSmall, "EPOCH-TOO-SMALL",
          "A later epoch of the aggregator has already been seen; stop the older aggregator."},
    Entry{Reason::kProtocolVersion, "PROTOCOL-VERSION",
          "The two programs know no protocol version in common; update the older one."},
    Entry{Reason::kUnknownField, "UNKNOWN-FIELD",
          "The message holds a field that this protocol version does not have."},
    Entry{Reason::kMalformed, "MALFORMED", "The message cannot be read."},
    Entry{Reason::kAlreadyConnected, "ALREADY-CONNECTED",
          "The site already has a connection with the same instance."},
    Entry{Reason::kLogHead, "LOG-HEAD",
          "A log head is missing, badly signed, or does not extend the one seen before."},
    Entry{Reason::kPolicySchemaVersion, "POLICY-SCHEMA-VERSION",
          "A policy is written in a version of the language that this program does not read."},
    Entry{Reason::kJobUnknown, "JOB-UNKNOWN", "There is no such job."},
    Entry{Reason::kNotAParticipant, "NOT-A-PARTICIPANT",
          "The site is not in the cohort of this round."},
    Entry{Reason::kRoundMissing, "ROUND-MISSING", "The round is not named."},
    Entry{Reason::kStaleRound, "STALE-ROUND", "The update is for a round that is over."},
    Entry{Reason::kRoundNotOpen, "ROUND-NOT-OPEN", "The phase is not open."},
    Entry{Reason::kWrongBaseModel, "WRONG-BASE-MODEL",
          "The update starts from another model than the one of the open phase."},
    Entry{Reason::kWrongEpoch, "WRONG-EPOCH",
          "The update is for another epoch of the phase; the same bytes may be sent again in "
          "the current one."},
    Entry{Reason::kAlreadyReceived, "ALREADY-RECEIVED",
          "Another update of this site for this phase has already been received."},
    Entry{Reason::kUploadInProgress, "UPLOAD-IN-PROGRESS",
          "An upload of this site for this phase is still open."},
    Entry{Reason::kShape, "SHAPE", "The update's tensors are not those of the plan."},
    Entry{Reason::kNotFinite, "NOT-FINITE",
          "The update holds a value that is not a finite number."},
    Entry{Reason::kOutOfRange, "OUT-OF-RANGE",
          "A number of the update is beyond the range of the grid."},
    Entry{Reason::kNorm, "NORM", "The update's norm is above the clip norm."},
    Entry{Reason::kWeight, "WEIGHT", "The weight is outside the range of the plan."},
    Entry{Reason::kDigestMismatch, "DIGEST-MISMATCH",
          "The bytes have not the digest that was announced."},
    Entry{Reason::kTooLarge, "TOO-LARGE", "The message or update is larger than the phase allows."},
    Entry{Reason::kWrongEncoding, "WRONG-ENCODING",
          "The update's encoding is not that of the plan, or cannot be decoded."},
    Entry{Reason::kDeadline, "DEADLINE", "The phase's deadline has passed."},
    Entry{Reason::kBelowFloor, "BELOW-FLOOR",
          "Fewer sites contributed than the floor of the phase; nothing is released."},
    Entry{Reason::kNoExamplesAnywhere, "NO-EXAMPLES-ANYWHERE",
          "No participating site has a record for this phase."},
    Entry{Reason::kConnectionLost, "CONNECTION-LOST", "The connection was lost."},
    Entry{Reason::kCancelled, "CANCELLED", "An operator cancelled it."},
    Entry{Reason::kTooFewSites, "TOO-FEW-SITES",
          "Fewer sites accepted or are connected than the job needs."},
    Entry{Reason::kAggregatorRestarted, "AGGREGATOR-RESTARTED",
          "The aggregator restarted; the phase begins again in a new epoch."},
    Entry{Reason::kSuperseded, "SUPERSEDED", "A newer message or epoch has replaced it."},
    Entry{Reason::kPhaseIncomplete, "PHASE-INCOMPLETE",
          "A phase that needs every participant did not get them all."},
    Entry{Reason::kBusy, "BUSY", "The program is at a limit of its own; try again later."},
    Entry{Reason::kResultNotFinite, "RESULT-NOT-FINITE",
          "The combined result holds a value that is not a finite number; nothing is "
          "committed."},
};

constexpr auto kReasons = [] {
  std::array<Reason, kEntries.size()> reasons{};
  for (std::size_t i = 0; i < kEntries.size(); ++i) {
    reasons[i] = kEntries[i].reason;
  }
  return reasons;
}();

const Entry& Find(Reason reason) {
  for (const Entry& entry : kEntries) {
    if (entry.reason == reason) {
      return entry;
    }
  }
  return kEntries[0];
}

}  // namespace

std::string_view Code(Reason reason) { return Find(reason).code; }
std::string_view Explain(Reason reason) { return Find(reason).sentence; }

std::optional<Reason> ReasonFromNumber(std::uint32_t number) {
  for (const Entry& entry : kEntries) {
    if (static_cast<std::uint32_t>(entry.reason) == number) {
      return entry.reason;
    }
  }
  return std::nullopt;
}

std::optional<Reason> ReasonFromCode(std::string_view code) {
  for (const Entry& entry : kEntries) {
    if (entry.code == code) {
      return entry.reason;
    }
  }
  return std::nullopt;
}

std::span<const Reason> AllReasons() { return kReasons; }

}  // namespace domicile::policy

// Why something was allowed, denied, held or refused: the closed list of reason codes that
// decisions, refusals, log leaves and consoles share. Page: docs/formats/reason-codes.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace domicile::policy {

// Stored in logs and sent between programs: append, never renumber.
enum class Reason : std::uint16_t {
  kNone = 0,  // no reason given; never sent

  // Decisions of policy.
  kPermitted = 1,
  kNoRuleMatched = 2,
  kForbidden = 3,
  kRuleInvalid = 4,
  kPolicyExpired = 5,
  kPolicyNotYetValid = 6,
  kPolicyDigestMismatch = 7,
  kPolicyUnsatisfiable = 8,
  kLocation = 9,
  kControl = 10,
  kRecipient = 11,
  kPurpose = 12,
  kUpdateKind = 13,
  kView = 14,
  kEdpbUseCase6 = 15,
  kNoTransferMechanism = 16,
  kFactMissing = 17,
  kFactExpired = 18,
  kDocumentMissing = 19,
  kDocumentExpired = 20,
  kMinContributors = 21,
  kMinCohort = 22,
  kClip = 23,
  kLocalSteps = 24,
  kBatch = 25,
  kLimitRounds = 26,
  kLimitRuns = 27,
  kLimitBytes = 28,
  kLimitReleasedNumbers = 29,
  kPrivacyRequired = 30,
  kModelNotAllowed = 31,
  kTrainerNotAllowed = 32,
  kDatasetUnknown = 33,
  kApprovalMissing = 34,
  kSandboxMissing = 35,
  kOutputForbidden = 36,
  kSecureAggregationRequired = 37,
  kLimitMetrics = 38,
  kLegalFactsDigest = 39,
  kLocationEvidence = 40,
  kDerogation = 41,
  kLimitEpsilon = 42,
  kDpUnit = 43,
  kRetention = 44,
  kWitnesses = 45,
  kTransit = 46,
  kPurposeProhibited = 47,
  kNegativeList = 48,
  kExportSubjects = 49,
  kSampling = 50,
  kEdpbUseCase7 = 51,
  kSubjectsThreshold = 52,
  kPolicySignature = 53,
  kPolicyRollback = 54,
  kPolicyCooldown = 55,

  // Grants.
  kGrantSignature = 60,
  kGrantExpired = 61,
  kGrantPlan = 62,
  kGrantTrainer = 63,
  kGrantBaseModel = 64,
  kGrantDataset = 65,
  kGrantPolicy = 66,
  kApprovalExpired = 67,
  kApprovalDenied = 68,
  kGrantUsed = 69,

  // Model intake, statistics, the gate.
  kModelDigest = 80,
  kModelJump = 81,
  kModelShape = 82,
  kModelNotFinite = 83,
  kNormalisation = 84,
  kStatDifference = 85,
  kStatRepeated = 86,
  kNoExamples = 87,
  kTrainerUnavailable = 88,
  kTrainerFailed = 89,
  kDatasetInvalid = 90,
  kLogUnavailable = 91,
  kDiskFull = 92,
  kClock = 93,
  kRosterStale = 94,
  kUnwitnessed = 95,

  // Identity.
  kCertificate = 110,
  kNotInRoster = 111,
  kRole = 112,
  kClaimedIdentity = 113,
  kJurisdictionMismatch = 114,
  kInstance = 115,
  kEpochTooSmall = 116,
  kProtocolVersion = 117,
  kUnknownField = 118,
  kMalformed = 119,
  kAlreadyConnected = 120,
  kLogHead = 121,
  kPolicySchemaVersion = 122,

  // Rounds.
  kJobUnknown = 140,
  kNotAParticipant = 141,
  kRoundMissing = 142,
  kStaleRound = 143,
  kRoundNotOpen = 144,
  kWrongBaseModel = 145,
  kWrongEpoch = 146,
  kAlreadyReceived = 147,
  kUploadInProgress = 148,
  kShape = 149,
  kNotFinite = 150,
  kOutOfRange = 151,
  kNorm = 152,
  kWeight = 153,
  kDigestMismatch = 154,
  kTooLarge = 155,
  kWrongEncoding = 156,
  kDeadline = 157,
  kBelowFloor = 158,
  kNoExamplesAnywhere = 159,
  kConnectionLost = 160,
  kCancelled = 161,
  kTooFewSites = 162,
  kAggregatorRestarted = 163,
  kSuperseded = 164,
  kPhaseIncomplete = 165,
  kBusy = 166,
  kResultNotFinite = 167,
};

// The code as people and logs write it: `MODEL-JUMP`. Never empty.
std::string_view Code(Reason reason);

// One sentence for the person who must act: what happened and what to do.
std::string_view Explain(Reason reason);

// Empty for a number or code that is not in the list: unknown means deny.
std::optional<Reason> ReasonFromNumber(std::uint32_t number);
std::optional<Reason> ReasonFromCode(std::string_view code);

// The whole list, in order of numbers.
std::span<const Reason> AllReasons();

}  // namespace domicile::policy

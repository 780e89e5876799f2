// The closed vocabulary of policies. Every enumeration has a zero that is never valid and never
// written; `Code` gives the spelling in files, `FromCode<E>` reads it back, `AllOf<E>` lists it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace domicile::policy {

// Stored and sent by their codes. Append, never renumber; the order of the enumerations marked
// *ordered* is the order from strict to loose (or from little to much), and is part of the
// language.

enum class PolicySource : std::uint8_t { kNone = 0, kFederation = 1, kAggregator = 2, kSite = 3 };

// What kind of numbers leave.
enum class UpdateKind : std::uint8_t {
  kNone = 0,
  kDeltaMasked = 1,         // delta.masked: under secure aggregation
  kDeltaClippedNoised = 2,  // delta.clipped_noised
  kDeltaPlain = 3,          // delta.plain: clipped, on the grid, readable
  kGradient = 4,            // gradient: of one step
  kMetricsAggregate = 5,    // metrics.aggregate: sums over records: loss, counts, score histograms
  kModelFinal = 6,          // model.final: a global model, of any round
  kStatisticsTable = 7,     // statistics.table: n, sums and sums of squares per input
};

// What the receiving side can see of one site's contribution. Ordered.
enum class View : std::uint8_t {
  kNone = 0,
  kAggregateOnly = 1,
  kMaskedIndividual = 2,
  kPlaintextIndividual = 3,
};

enum class Purpose : std::uint8_t {
  kNone = 0,
  kScientificResearch = 1,
  kPublicHealth = 2,
  kOfficialStatistics = 3,
  kPolicyMaking = 4,
  kEducation = 5,
  kHealthcareDelivery = 6,
  kAlgorithmTesting = 7,
  kFraudPrevention = 8,
  kServiceImprovement = 9,
};

enum class Regime : std::uint8_t {
  kNone = 0,
  kEuGdpr = 1,
  kUkGdpr = 2,
  kChFadp = 3,
  kUsHipaa = 4,
  kUsDoj202 = 5,
  kCnPipl = 6,
  kRu152Fz = 7,
  kInDpdp = 8,
  kBrLgpd = 9,
  kCaQc25 = 10,
  kAuApp8 = 11,
  kSaPdpl = 12,
  kEuEhds = 13,
  kEuAiAct = 14,
};

enum class Mechanism : std::uint8_t {
  kNone = 0,
  kAdequacy = 1,  // needs a legal fact; with a scope, also a reference and an importer
  kScc = 2,
  kSccNational = 3,
  kBcr = 4,
  kCode = 5,
  kCertification = 6,
  kIdta = 7,
  kUkAddendum = 8,
  kCacAssessment = 9,
  kCacContract = 10,
  kCacCertification = 11,
  kBaa = 12,
  kPiaQc = 13,
};

enum class Category : std::uint8_t {
  kNone = 0,
  kIdentifier = 1,
  kHealth = 2,
  kGenomic = 3,
  kOmic = 4,
  kBiometric = 5,
  kPreciseGeo = 6,
  kFinancial = 7,
  kChild = 8,
  kCriminal = 9,
  kImportantCn = 10,
  kOrdinary = 11,  // none of the others
};

enum class ApprovalRole : std::uint8_t {
  kNone = 0,
  kDpo = 1,
  kOperator = 2,
  kCiso = 3,
  kEthicsBoard = 4,
  kDataOwner = 5,
};

// How far the trainer's sandbox may reach. Ordered.
enum class SandboxNetwork : std::uint8_t {
  kUnset = 0,
  kNone = 1,
  kLoopback = 2,
  kSiteCluster = 3,
};

// How exactly a site's weight may be told. Ordered.
enum class WeightRule : std::uint8_t { kUnset = 0, kEqual = 1, kRounded = 2, kExact = 3 };

// How differential privacy is given. Ordered, from little to much.
enum class DpMode : std::uint8_t { kUnset = 0, kNone = 1, kClaimed = 2, kEnforced = 3 };

// How a location is known. Ordered, from little to much.
enum class LocationEvidence : std::uint8_t {
  kUnset = 0,
  kDeclared = 1,
  kCertificate = 2,
  kAttested = 3,
};

std::string_view Code(PolicySource value);
std::string_view Code(UpdateKind value);
std::string_view Code(View value);
std::string_view Code(Purpose value);
std::string_view Code(Regime value);
std::string_view Code(Mechanism value);
std::string_view Code(Category value);
std::string_view Code(ApprovalRole value);
std::string_view Code(SandboxNetwork value);
std::string_view Code(WeightRule value);
std::string_view Code(DpMode value);
std::string_view Code(LocationEvidence value);

// Empty for any text that is not exactly a code: unknown means deny. Defined for each enumeration
// above.
template <typename E>
std::optional<E> FromCode(std::string_view code);

// Every valid value, in order; never the zero.
template <typename E>
std::span<const E> AllOf();

// Health, genomic, omic, biometric, criminal: what GDPR Art. 9 and 10 single out.
bool IsSpecial(Category category);

// GDPR Art. 6(1) and 9(2) as `A6-1-e`, `A9-2-j`, and the equivalents of other regimes. Closed
// lists.
bool IsLawfulBasis(std::string_view code);
bool IsSpecialCategoryBasis(std::string_view code);
std::span<const std::string_view> LawfulBases();
std::span<const std::string_view> SpecialCategoryBases();

}  // namespace domicile::policy

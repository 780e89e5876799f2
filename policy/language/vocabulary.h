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

// kGrant: what a site's grant narrows; there is no policy file of it.
enum class PolicySource : std::uint8_t {
  kNone = 0,
  kFederation = 1,
  kAggregator = 2,
  kSite = 3,
  kGrant = 4,
};

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

// What for. The permitted uses of EHDS Art. 53, two more, and the prohibited uses of Art. 54: a
// plan can name one of those, and be refused for it. That the articles list permitted purposes,
// among them the training of algorithms, and prohibited ones has a source; their wording and
// letters are from memory, and to be confirmed against the Regulation by counsel.
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
  kProductDevelopment = 10,    // Art. 53(1)(e)(i)
  kDetrimentalDecisions = 11,  // Art. 54(a): decisions against persons or groups
  kDiscriminatoryTerms = 12,   // Art. 54(b): job offers, insurance, credit, worse terms
  kMarketing = 13,             // Art. 54(c)
  kHarmfulProducts = 14,       // Art. 54(d)
  kUnethicalActivities = 15,   // Art. 54(e): against ethical provisions of national law
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
  // GDPR Art. 49: `derogation:A49-1-a` to `-g`, and `derogation:A49-2` for the compelling interests
  // of the second subparagraph. They count only under `allow.derogations = true`.
  kDerogation491a = 14,
  kDerogation491b = 15,
  kDerogation491c = 16,
  kDerogation491d = 17,
  kDerogation491e = 18,
  kDerogation491f = 19,
  kDerogation491g = 20,
  kDerogation492 = 21,
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

// Forms of output that may be forbidden, whatever kind of numbers they pass as.
enum class Output : std::uint8_t {
  kNone = 0,
  kPerRecord = 1,
  kEmbeddings = 2,
  kActivations = 3,
  kOptimizerState = 4,
  kInstanceBasedModel = 5,   // a model that holds records: nearest neighbours, support vectors
  kSparseEmbeddingRows = 6,  // which rows are not zero tells which tokens a site has
  kFreeText = 7,
  kLogsRaw = 8,
  kSamples = 9,
};

// Whose presence differential privacy hides. Ordered, from fine to coarse.
enum class DpUnit : std::uint8_t { kUnset = 0, kRecord = 1, kPerson = 2, kSite = 3 };

// How the batches are drawn, as far as an accountant may count on it. Ordered, from little to much.
enum class Sampling : std::uint8_t { kUnset = 0, kNoneAssumed = 1, kPoissonByAgent = 2 };

// How many people a dataset is about: a bucket from its first number on, below its second. kUnset:
// unknown, and then the stricter branch is taken. Ordered.
enum class SubjectsCount : std::uint8_t {
  kUnset = 0,
  kBelow100 = 1,
  kBelow1000 = 2,
  kBelow10000 = 3,
  kBelow100000 = 4,
  kBelow1000000 = 5,
  kAbove = 6,  // 1 000 000 and more
};

// What happens to models when a person withdraws. Ordered, from little to much.
enum class ErasureRule : std::uint8_t {
  kUnset = 0,
  kStopUse = 1,
  kFlagModels = 2,
  kRetrainRequired = 3,
};

// What the trainer is locked into. Ordered, from little to much.
enum class SandboxProfile : std::uint8_t {
  kUnset = 0,
  kNamespaces = 1,  // ns+seccomp
  kGvisor = 2,
  kMicrovm = 3,
  kTee = 4,
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
std::string_view Code(Output value);
std::string_view Code(DpUnit value);
std::string_view Code(Sampling value);
std::string_view Code(SubjectsCount value);
std::string_view Code(ErasureRule value);
std::string_view Code(SandboxProfile value);

// Empty for any text that is not exactly a code: unknown means deny. Defined for each enumeration
// above.
template <typename E>
std::optional<E> FromCode(std::string_view code);

// Every valid value, in order; never the zero.
template <typename E>
std::span<const E> AllOf();

// Health, genomic, omic, biometric, criminal: what GDPR Art. 9 and 10 single out.
bool IsSpecial(Category category);

// Art. 49 GDPR: for single cases, never the ground of repeated rounds by itself.
bool IsDerogation(Mechanism mechanism);
// Art. 46 GDPR and its equivalents: a contract, rule or certificate between the parties, which a
// transfer impact assessment must accompany.
bool IsSafeguard(Mechanism mechanism);

// The uses that EHDS Art. 54 prohibits: the strict default of `deny.purposes`.
std::span<const Purpose> ProhibitedPurposes();

// Whether so many people may be in the dataset. True for kUnset: what is not known may be.
bool MayReach(SubjectsCount count, std::uint64_t at_least);
// The most people that may be in it; empty if there is no such number.
std::optional<std::uint64_t> MostOf(SubjectsCount count);

// GDPR Art. 6(1) and 9(2) as `A6-1-e`, `A9-2-j`, and the equivalents of other regimes. Closed
// lists.
bool IsLawfulBasis(std::string_view code);
bool IsSpecialCategoryBasis(std::string_view code);
std::span<const std::string_view> LawfulBases();
std::span<const std::string_view> SpecialCategoryBases();

}  // namespace domicile::policy

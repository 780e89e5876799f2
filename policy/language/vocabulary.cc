#include "policy/language/vocabulary.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace domicile::policy {
namespace {

// The spellings of one enumeration; the index is the value less one, since zero is never written.
template <typename E, std::size_t N>
struct Vocabulary {
  std::array<std::string_view, N> codes;
  std::array<E, N> values;
};

template <typename E, typename... Codes>
constexpr auto MakeVocabulary(Codes... codes) {
  Vocabulary<E, sizeof...(codes)> vocabulary = {{codes...}, {}};
  for (std::size_t i = 0; i < vocabulary.values.size(); ++i) {
    vocabulary.values[i] = static_cast<E>(i + 1);
  }
  return vocabulary;
}

template <typename E>
struct Spelling;

#define DOMICILE_SPELLING(E, ...)                                                             \
  template <>                                                                                 \
  struct Spelling<E> {                                                                        \
    static constexpr auto kVocabulary = MakeVocabulary<E>(__VA_ARGS__);                       \
  };                                                                                          \
  std::string_view CodeOf(E value) {                                                          \
    const auto& codes = Spelling<E>::kVocabulary.codes;                                       \
    const auto index = static_cast<std::size_t>(value);                                       \
    return index == 0 || index > codes.size() ? std::string_view("unset") : codes[index - 1]; \
  }

DOMICILE_SPELLING(PolicySource, "federation", "aggregator", "site", "grant")
DOMICILE_SPELLING(UpdateKind, "delta.masked", "delta.clipped_noised", "delta.plain", "gradient",
                  "metrics.aggregate", "model.final", "statistics.table")
DOMICILE_SPELLING(View, "aggregate_only", "masked_individual", "plaintext_individual")
DOMICILE_SPELLING(Purpose, "scientific_research", "public_health", "official_statistics",
                  "policy_making", "education", "healthcare_delivery", "algorithm_testing",
                  "fraud_prevention", "service_improvement", "product_development",
                  "detrimental_decisions", "discriminatory_terms", "marketing", "harmful_products",
                  "unethical_activities")
DOMICILE_SPELLING(Regime, "eu-gdpr", "uk-gdpr", "ch-fadp", "us-hipaa", "us-doj202", "cn-pipl",
                  "ru-152fz", "in-dpdp", "br-lgpd", "ca-qc-25", "au-app8", "sa-pdpl", "eu-ehds",
                  "eu-aiact")
DOMICILE_SPELLING(Mechanism, "adequacy", "scc", "scc_national", "bcr", "code", "certification",
                  "idta", "uk_addendum", "cac_assessment", "cac_contract", "cac_certification",
                  "baa", "pia_qc", "derogation:A49-1-a", "derogation:A49-1-b", "derogation:A49-1-c",
                  "derogation:A49-1-d", "derogation:A49-1-e", "derogation:A49-1-f",
                  "derogation:A49-1-g", "derogation:A49-2")
DOMICILE_SPELLING(Category, "identifier", "health", "genomic", "omic", "biometric", "precise_geo",
                  "financial", "child", "criminal", "important_cn", "none")
DOMICILE_SPELLING(ApprovalRole, "dpo", "operator", "ciso", "ethics_board", "data_owner")
DOMICILE_SPELLING(SandboxNetwork, "none", "loopback", "site_cluster")
DOMICILE_SPELLING(WeightRule, "equal", "rounded", "exact")
DOMICILE_SPELLING(DpMode, "none", "claimed", "enforced")
DOMICILE_SPELLING(LocationEvidence, "declared", "certificate", "attested")
DOMICILE_SPELLING(Output, "per_record", "embeddings", "activations", "optimizer_state",
                  "instance_based_model", "sparse_embedding_rows", "free_text", "logs_raw",
                  "samples")
DOMICILE_SPELLING(DpUnit, "record", "person", "site")
DOMICILE_SPELLING(Sampling, "none_assumed", "poisson_by_agent")
DOMICILE_SPELLING(SubjectsCount, "<100", "100-1000", "1000-10000", "10000-100000", "100000-1000000",
                  ">1000000")
DOMICILE_SPELLING(ErasureRule, "stop_use", "flag_models", "retrain_required")
DOMICILE_SPELLING(SandboxProfile, "ns+seccomp", "gvisor", "microvm", "tee")

#undef DOMICILE_SPELLING

constexpr std::array kProhibitedPurposes = {
    Purpose::kDetrimentalDecisions, Purpose::kDiscriminatoryTerms, Purpose::kMarketing,
    Purpose::kHarmfulProducts, Purpose::kUnethicalActivities};

constexpr auto kLawfulBases = std::to_array<std::string_view>(
    {"A6-1-a", "A6-1-b", "A6-1-c", "A6-1-d", "A6-1-e", "A6-1-f", "fadp-30", "fadp-31-1",
     "fadp-31-2-e", "fadp-34", "fadp-39", "hipaa-authorization", "hipaa-tpo", "hipaa-waiver",
     "hipaa-limited-data-set", "hipaa-deidentified"});
constexpr auto kSpecialBases = std::to_array<std::string_view>(
    {"A9-2-a", "A9-2-b", "A9-2-c", "A9-2-d", "A9-2-e", "A9-2-f", "A9-2-g", "A9-2-h", "A9-2-i",
     "A9-2-j", "fadp-31-2-e", "fadp-39", "hipaa-authorization", "hipaa-tpo", "hipaa-waiver",
     "hipaa-limited-data-set", "hipaa-deidentified"});

}  // namespace

#define DOMICILE_VOCABULARY(E)                                  \
  std::string_view Code(E value) { return CodeOf(value); }      \
  template <>                                                   \
  std::optional<E> FromCode<E>(std::string_view code) {         \
    const auto& vocabulary = Spelling<E>::kVocabulary;          \
    for (std::size_t i = 0; i < vocabulary.codes.size(); ++i) { \
      if (vocabulary.codes[i] == code) {                        \
        return vocabulary.values[i];                            \
      }                                                         \
    }                                                           \
    return std::nullopt;                                        \
  }                                                             \
  template <>                                                   \
  std::span<const E> AllOf<E>() {                               \
    return Spelling<E>::kVocabulary.values;                     \
  }

DOMICILE_VOCABULARY(PolicySource)
DOMICILE_VOCABULARY(UpdateKind)
DOMICILE_VOCABULARY(View)
DOMICILE_VOCABULARY(Purpose)
DOMICILE_VOCABULARY(Regime)
DOMICILE_VOCABULARY(Mechanism)
DOMICILE_VOCABULARY(Category)
DOMICILE_VOCABULARY(ApprovalRole)
DOMICILE_VOCABULARY(SandboxNetwork)
DOMICILE_VOCABULARY(WeightRule)
DOMICILE_VOCABULARY(DpMode)
DOMICILE_VOCABULARY(LocationEvidence)
DOMICILE_VOCABULARY(Output)
DOMICILE_VOCABULARY(DpUnit)
DOMICILE_VOCABULARY(Sampling)
DOMICILE_VOCABULARY(SubjectsCount)
DOMICILE_VOCABULARY(ErasureRule)
DOMICILE_VOCABULARY(SandboxProfile)

#undef DOMICILE_VOCABULARY

bool IsSpecial(Category category) {
  switch (category) {
    case Category::kHealth:
    case Category::kGenomic:
    case Category::kOmic:
    case Category::kBiometric:
    case Category::kCriminal:
    case Category::kNone:  // not read: as strict as can be
      return true;
    case Category::kIdentifier:
    case Category::kPreciseGeo:
    case Category::kFinancial:
    case Category::kChild:
    case Category::kImportantCn:
    case Category::kOrdinary:
      return false;
  }
  return true;
}

bool IsDerogation(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::kDerogation491a:
    case Mechanism::kDerogation491b:
    case Mechanism::kDerogation491c:
    case Mechanism::kDerogation491d:
    case Mechanism::kDerogation491e:
    case Mechanism::kDerogation491f:
    case Mechanism::kDerogation491g:
    case Mechanism::kDerogation492:
      return true;
    case Mechanism::kNone:
    case Mechanism::kAdequacy:
    case Mechanism::kScc:
    case Mechanism::kSccNational:
    case Mechanism::kBcr:
    case Mechanism::kCode:
    case Mechanism::kCertification:
    case Mechanism::kIdta:
    case Mechanism::kUkAddendum:
    case Mechanism::kCacAssessment:
    case Mechanism::kCacContract:
    case Mechanism::kCacCertification:
    case Mechanism::kBaa:
    case Mechanism::kPiaQc:
      return false;
  }
  return true;  // not read: as strict as can be
}

bool IsSafeguard(Mechanism mechanism) {
  constexpr std::array kSafeguards = {
      Mechanism::kScc,  Mechanism::kSccNational,   Mechanism::kBcr,       Mechanism::kCode,
      Mechanism::kIdta, Mechanism::kCertification, Mechanism::kUkAddendum};
  return std::find(kSafeguards.begin(), kSafeguards.end(), mechanism) != kSafeguards.end();
}

std::span<const Purpose> ProhibitedPurposes() { return kProhibitedPurposes; }

std::optional<std::uint64_t> MostOf(SubjectsCount count) {
  switch (count) {
    case SubjectsCount::kUnset:
    case SubjectsCount::kAbove:
      return std::nullopt;
    case SubjectsCount::kBelow100:
      return 99;
    case SubjectsCount::kBelow1000:
      return 999;
    case SubjectsCount::kBelow10000:
      return 9'999;
    case SubjectsCount::kBelow100000:
      return 99'999;
    case SubjectsCount::kBelow1000000:
      return 999'999;
  }
  return std::nullopt;
}

bool MayReach(SubjectsCount count, std::uint64_t at_least) {
  const std::optional<std::uint64_t> most = MostOf(count);
  return !most || at_least <= *most;
}

std::span<const std::string_view> LawfulBases() { return kLawfulBases; }
std::span<const std::string_view> SpecialCategoryBases() { return kSpecialBases; }

bool IsLawfulBasis(std::string_view code) {
  return std::find(kLawfulBases.begin(), kLawfulBases.end(), code) != kLawfulBases.end();
}
bool IsSpecialCategoryBasis(std::string_view code) {
  return std::find(kSpecialBases.begin(), kSpecialBases.end(), code) != kSpecialBases.end();
}

}  // namespace domicile::policy

#include "policy/language/vocabulary.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace domicile::policy {
namespace {

using std::string_view_literals::operator""sv;

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

#define DOMICILE_SPELLING(E, ...)                                             \
  template <>                                                                 \
  struct Spelling<E> {                                                        \
    static constexpr auto kVocabulary = MakeVocabulary<E>(__VA_ARGS__);       \
  };                                                                          \
  std::string_view CodeOf(E value) {                                          \
    const auto& codes = Spelling<E>::kVocabulary.codes;                       \
    const auto index = static_cast<std::size_t>(value);                       \
    return index == 0 || index > codes.size() ? "unset"sv : codes[index - 1]; \
  }

DOMICILE_SPELLING(PolicySource, "federation"sv, "aggregator"sv, "site"sv, "grant"sv)
DOMICILE_SPELLING(UpdateKind, "delta.masked"sv, "delta.clipped_noised"sv, "delta.plain"sv,
                  "gradient"sv, "metrics.aggregate"sv, "model.final"sv, "statistics.table"sv)
DOMICILE_SPELLING(View, "aggregate_only"sv, "masked_individual"sv, "plaintext_individual"sv)
DOMICILE_SPELLING(Purpose, "scientific_research"sv, "public_health"sv, "official_statistics"sv,
                  "policy_making"sv, "education"sv, "healthcare_delivery"sv, "algorithm_testing"sv,
                  "fraud_prevention"sv, "service_improvement"sv, "product_development"sv,
                  "detrimental_decisions"sv, "discriminatory_terms"sv, "marketing"sv,
                  "harmful_products"sv, "unethical_activities"sv)
DOMICILE_SPELLING(Regime, "eu-gdpr"sv, "uk-gdpr"sv, "ch-fadp"sv, "us-hipaa"sv, "us-doj202"sv,
                  "cn-pipl"sv, "ru-152fz"sv, "in-dpdp"sv, "br-lgpd"sv, "ca-qc-25"sv, "au-app8"sv,
                  "sa-pdpl"sv, "eu-ehds"sv, "eu-aiact"sv)
DOMICILE_SPELLING(Mechanism, "adequacy"sv, "scc"sv, "scc_national"sv, "bcr"sv, "code"sv,
                  "certification"sv, "idta"sv, "uk_addendum"sv, "cac_assessment"sv,
                  "cac_contract"sv, "cac_certification"sv, "baa"sv, "pia_qc"sv,
                  "derogation:A49-1-a"sv, "derogation:A49-1-b"sv, "derogation:A49-1-c"sv,
                  "derogation:A49-1-d"sv, "derogation:A49-1-e"sv, "derogation:A49-1-f"sv,
                  "derogation:A49-1-g"sv, "derogation:A49-2"sv)
DOMICILE_SPELLING(Category, "identifier"sv, "health"sv, "genomic"sv, "omic"sv, "biometric"sv,
                  "precise_geo"sv, "financial"sv, "child"sv, "criminal"sv, "important_cn"sv,
                  "none"sv)
DOMICILE_SPELLING(ApprovalRole, "dpo"sv, "operator"sv, "ciso"sv, "ethics_board"sv, "data_owner"sv)
DOMICILE_SPELLING(SandboxNetwork, "none"sv, "loopback"sv, "site_cluster"sv)
DOMICILE_SPELLING(WeightRule, "equal"sv, "rounded"sv, "exact"sv)
DOMICILE_SPELLING(DpMode, "none"sv, "claimed"sv, "enforced"sv)
DOMICILE_SPELLING(LocationEvidence, "declared"sv, "certificate"sv, "attested"sv)
DOMICILE_SPELLING(Output, "per_record"sv, "embeddings"sv, "activations"sv, "optimizer_state"sv,
                  "instance_based_model"sv, "sparse_embedding_rows"sv, "free_text"sv, "logs_raw"sv,
                  "samples"sv)
DOMICILE_SPELLING(DpUnit, "record"sv, "person"sv, "site"sv)
DOMICILE_SPELLING(Sampling, "none_assumed"sv, "poisson_by_agent"sv)
DOMICILE_SPELLING(SubjectsCount, "<100"sv, "100-1000"sv, "1000-10000"sv, "10000-100000"sv,
                  "100000-1000000"sv, ">1000000"sv)
DOMICILE_SPELLING(ErasureRule, "stop_use"sv, "flag_models"sv, "retrain_required"sv)
DOMICILE_SPELLING(SandboxProfile, "ns+seccomp"sv, "gvisor"sv, "microvm"sv, "tee"sv)

#undef DOMICILE_SPELLING

constexpr std::array kProhibitedPurposes = {
    Purpose::kDetrimentalDecisions, Purpose::kDiscriminatoryTerms, Purpose::kMarketing,
    Purpose::kHarmfulProducts, Purpose::kUnethicalActivities};

constexpr std::array kLawfulBases = {"A6-1-a"sv,
                                     "A6-1-b"sv,
                                     "A6-1-c"sv,
                                     "A6-1-d"sv,
                                     "A6-1-e"sv,
                                     "A6-1-f"sv,
                                     "fadp-30"sv,
                                     "fadp-31-1"sv,
                                     "fadp-31-2-e"sv,
                                     "fadp-34"sv,
                                     "fadp-39"sv,
                                     "hipaa-authorization"sv,
                                     "hipaa-tpo"sv,
                                     "hipaa-waiver"sv,
                                     "hipaa-limited-data-set"sv,
                                     "hipaa-deidentified"sv};
constexpr std::array kSpecialBases = {"A9-2-a"sv,
                                      "A9-2-b"sv,
                                      "A9-2-c"sv,
                                      "A9-2-d"sv,
                                      "A9-2-e"sv,
                                      "A9-2-f"sv,
                                      "A9-2-g"sv,
                                      "A9-2-h"sv,
                                      "A9-2-i"sv,
                                      "A9-2-j"sv,
                                      "fadp-31-2-e"sv,
                                      "fadp-39"sv,
                                      "hipaa-authorization"sv,
                                      "hipaa-tpo"sv,
                                      "hipaa-waiver"sv,
                                      "hipaa-limited-data-set"sv,
                                      "hipaa-deidentified"sv};

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
      return true;
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

bool MayReach(SubjectsCount count, std::uint64_t at_least) {
  switch (count) {
    case SubjectsCount::kUnset:
    case SubjectsCount::kAbove:
      return true;
    case SubjectsCount::kBelow100:
      return at_least < 100;
    case SubjectsCount::kBelow1000:
      return at_least < 1000;
    case SubjectsCount::kBelow10000:
      return at_least < 10'000;
    case SubjectsCount::kBelow100000:
      return at_least < 100'000;
    case SubjectsCount::kBelow1000000:
      return at_least < 1'000'000;
  }
  return true;
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

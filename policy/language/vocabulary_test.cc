#include "policy/language/vocabulary.h"

#include <set>

#include <doctest/doctest.h>

namespace domicile::policy {
namespace {

template <typename E>
void CheckVocabulary(std::size_t size) {
  std::set<std::string_view> codes;
  for (const E value : AllOf<E>()) {
    CAPTURE(Code(value));
    CHECK(codes.insert(Code(value)).second);
    CHECK(FromCode<E>(Code(value)) == value);
  }
  CHECK(codes.size() == size);
  CHECK(Code(E{}) == "unset");
  CHECK(!FromCode<E>("unset").has_value());
  CHECK(!FromCode<E>("").has_value());
  CHECK(!FromCode<E>("NONE").has_value());
}

}  // namespace

TEST_CASE("Vocabulary: every code reads back, and neither zero nor an unknown text is a value") {
  CheckVocabulary<PolicySource>(4);
  CheckVocabulary<UpdateKind>(7);
  CheckVocabulary<View>(3);
  CheckVocabulary<Purpose>(15);
  CheckVocabulary<Regime>(14);
  CheckVocabulary<Mechanism>(21);
  CheckVocabulary<Category>(11);
  CheckVocabulary<ApprovalRole>(5);
  CheckVocabulary<SandboxNetwork>(3);
  CheckVocabulary<WeightRule>(3);
  CheckVocabulary<DpMode>(3);
  CheckVocabulary<LocationEvidence>(3);
  CheckVocabulary<Output>(9);
  CheckVocabulary<DpUnit>(3);
  CheckVocabulary<Sampling>(2);
  CheckVocabulary<SubjectsCount>(6);
  CheckVocabulary<ErasureRule>(3);
  CheckVocabulary<SandboxProfile>(4);
}

TEST_CASE("Vocabulary: the order of ordered enumerations runs as documented") {
  CHECK(View::kAggregateOnly < View::kMaskedIndividual);
  CHECK(View::kMaskedIndividual < View::kPlaintextIndividual);
  CHECK(SandboxNetwork::kNone < SandboxNetwork::kLoopback);
  CHECK(SandboxNetwork::kLoopback < SandboxNetwork::kSiteCluster);
  CHECK(WeightRule::kEqual < WeightRule::kRounded);
  CHECK(WeightRule::kRounded < WeightRule::kExact);
  CHECK(DpMode::kNone < DpMode::kClaimed);
  CHECK(DpMode::kClaimed < DpMode::kEnforced);
}

TEST_CASE("Vocabulary: special categories are those of Art. 9 and 10, and the unset one") {
  CHECK(IsSpecial(Category::kHealth));
  CHECK(IsSpecial(Category::kGenomic));
  CHECK(IsSpecial(Category::kCriminal));
  CHECK(IsSpecial(Category::kNone));
  CHECK(!IsSpecial(Category::kFinancial));
  CHECK(!IsSpecial(Category::kOrdinary));
}

}  // namespace domicile::policy

#include "policy/language/vocabulary.h"

#include <algorithm>
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

TEST_CASE("Vocabulary: the newer ordered enumerations run from little to much") {
  const auto runs = [](const auto& values) { return std::is_sorted(values.begin(), values.end()); };
  CHECK(runs(AllOf<LocationEvidence>()));
  CHECK(AllOf<LocationEvidence>().front() == LocationEvidence::kDeclared);
  CHECK(AllOf<SandboxProfile>().front() == SandboxProfile::kNamespaces);
  CHECK(AllOf<SandboxProfile>().back() == SandboxProfile::kTee);
  CHECK(AllOf<DpUnit>().back() == DpUnit::kSite);
  CHECK(AllOf<Sampling>().back() == Sampling::kPoissonByAgent);
  CHECK(AllOf<ErasureRule>().back() == ErasureRule::kRetrainRequired);
  CHECK(runs(AllOf<SubjectsCount>()));
}

TEST_CASE("Vocabulary: derogations, safeguards and the rest are told apart") {
  int derogations = 0;
  int safeguards = 0;
  for (const Mechanism mechanism : AllOf<Mechanism>()) {
    CAPTURE(Code(mechanism));
    CHECK(IsDerogation(mechanism) == Code(mechanism).starts_with("derogation:"));
    CHECK_FALSE((IsDerogation(mechanism) && IsSafeguard(mechanism)));
    derogations += IsDerogation(mechanism) ? 1 : 0;
    safeguards += IsSafeguard(mechanism) ? 1 : 0;
  }
  CHECK(derogations == 8);
  CHECK(safeguards == 7);
  CHECK(IsSafeguard(Mechanism::kScc));
  CHECK_FALSE(IsSafeguard(Mechanism::kAdequacy));
  CHECK_FALSE(IsSafeguard(Mechanism::kCacAssessment));
  CHECK(IsDerogation(static_cast<Mechanism>(200)));  // not read: as strict as can be
}

TEST_CASE("Vocabulary: a bucket may reach every number below its end, and an unknown count all") {
  struct Case {
    SubjectsCount count;
    std::uint64_t reaches;
    std::uint64_t not_reached;  // 0: there is no such number
  };
  const Case cases[] = {
      {SubjectsCount::kUnset, 1'000'000'000, 0},
      {SubjectsCount::kBelow100, 99, 100},
      {SubjectsCount::kBelow1000, 999, 1000},
      {SubjectsCount::kBelow10000, 9999, 10'000},
      {SubjectsCount::kBelow100000, 99'999, 100'000},
      {SubjectsCount::kBelow1000000, 999'999, 1'000'000},
      {SubjectsCount::kAbove, 1'000'000'000, 0},
      {static_cast<SubjectsCount>(200), 1'000'000'000, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(Code(c.count));
    CHECK(MayReach(c.count, c.reaches));
    CHECK((c.not_reached == 0 || !MayReach(c.count, c.not_reached)));
  }
}

TEST_CASE("Vocabulary: the prohibited purposes are five, and none of the permitted ones") {
  CHECK(ProhibitedPurposes().size() == 5);
  CHECK(ProhibitedPurposes().front() == Purpose::kDetrimentalDecisions);
  CHECK(std::find(ProhibitedPurposes().begin(), ProhibitedPurposes().end(),
                  Purpose::kScientificResearch) == ProhibitedPurposes().end());
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

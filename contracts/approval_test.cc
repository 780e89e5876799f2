#include "contracts/approval.h"

#include <doctest/doctest.h>

#include "tests/support/example_approval.h"

namespace domicile::contracts {
namespace {

using policy::ApprovalRole;

TEST_CASE("MeetNeeds: persons or houses of a role, each need by itself") {
  const std::vector<GivenApproval> given = {{"a", ApprovalRole::kDpo, "charite", {}},
                                            {"b", ApprovalRole::kDpo, "charite", {}},
                                            {"c", ApprovalRole::kOperator, "data-office", {}}};
  struct Case {
    const char* name;
    std::vector<ApprovalNeed> needs;
    bool want;
  };
  const Case cases[] = {
      {"nothing asked", {}, true},
      {"two officers", {{ApprovalRole::kDpo, 2, false}}, true},
      {"three officers", {{ApprovalRole::kDpo, 3, false}}, false},
      {"two officers of two houses", {{ApprovalRole::kDpo, 2, true}}, false},
      {"both roles", {{ApprovalRole::kDpo, 1, true}, {ApprovalRole::kOperator, 1, true}}, true},
      {"a role nobody has", {{ApprovalRole::kCiso, 1, false}}, false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(MeetNeeds(given, c.needs) == c.want);
  }
}

TEST_CASE("ApprovalRules: narrowed to the names that a policy lists; no list leaves all") {
  const ApprovalRules rules = {.approvers = {test::ApproverOf(test::ExamplePerson("a", 1)),
                                             test::ApproverOf(test::ExamplePerson("b", 2))},
                               .persons = 2,
                               .needs = {},
                               .max_age = {}};

  const std::vector<std::string> names = {"b", "c"};
  const ApprovalRules narrowed = rules.OnlyNamed(names);

  REQUIRE(narrowed.approvers.size() == 1);
  CHECK(narrowed.approvers[0].key.name() == "b");
  CHECK(narrowed.persons == 2);  // narrowing lowers nothing
  CHECK(rules.OnlyNamed({}) == rules);
}

}  // namespace
}  // namespace domicile::contracts

#include "policy/reason.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "base/text.h"

namespace domicile::policy {

TEST_CASE("Reason: every code is unique, short, upper case, and reads back") {
  std::set<std::string_view> codes;
  for (const Reason reason : AllReasons()) {
    const std::string_view code = Code(reason);
    CAPTURE(code);
    CHECK(codes.insert(code).second);
    CHECK(!code.empty());
    CHECK(code.size() <= 32);
    CHECK(std::all_of(code.begin(), code.end(), [](char c) {
      return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    }));
    CHECK(ReasonFromCode(code) == reason);
    CHECK(ReasonFromNumber(static_cast<std::uint32_t>(reason)) == reason);
    CHECK(Explain(reason).size() > 20);
    CHECK(Explain(reason).ends_with('.'));
  }
  CHECK(codes.size() == AllReasons().size());
}

TEST_CASE("Reason: the list is in order of numbers, and unknown numbers and codes are nothing") {
  CHECK(std::is_sorted(AllReasons().begin(), AllReasons().end()));
  CHECK(!ReasonFromNumber(59).has_value());
  CHECK(!ReasonFromNumber(65535 + 2).has_value());
  CHECK(!ReasonFromCode("permitted").has_value());
  CHECK(!ReasonFromCode("").has_value());
}

TEST_CASE("Reason: a value outside the enumeration is explained as none, not as permitted") {
  CHECK(Code(static_cast<Reason>(9999)) == "NONE");
}

// The page is the golden text of every explanation: who changes a sentence changes it there too,
// and the review sees it.
TEST_CASE("Reason: docs/formats/reason-codes.md is the list, row by row, and no more") {
  const auto page =
      ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/docs/formats/reason-codes.md", 1U << 20U);
  REQUIRE(page.ok());

  std::vector<std::string> rows;
  for (const std::string_view line : Split(*page, '\n')) {
    if (line.starts_with("| ") && !line.starts_with("| number ")) {
      rows.emplace_back(line);
    }
  }

  REQUIRE(rows.size() == AllReasons().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Reason reason = AllReasons()[i];
    CHECK(rows[i] == "| " + std::to_string(static_cast<unsigned>(reason)) + " | `" +
                         std::string(Code(reason)) + "` | " + std::string(Explain(reason)) + " |");
  }
}

}  // namespace domicile::policy

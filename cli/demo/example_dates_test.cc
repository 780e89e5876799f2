#include "cli/demo/example_dates.h"

#include <chrono>
#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "policy/language/facts.h"
#include "policy/language/parse.h"

namespace domicile::cli {
namespace {

const std::string kExamples = DOMICILE_SOURCE_DIR "/deploy/examples/heart/";

TEST_CASE("MoveExampleDates: periods move, what was checked or decided stays") {
  const std::string text =
      "not_before = 2026-11-01\nexpires = 2027-10-31  # why\n"
      "refs.dpia.valid_until = 2027-10-31\nchecked_on = 2026-11-30\nname = \"expires = "
      "2027-10-31\"\n";

  const std::string moved = MoveExampleDates(text, ExamplesWritten() + std::chrono::days(400));

  CHECK(moved ==
        "# Copied for the demonstration, its periods moved by 400 days.\n"
        "not_before = 2027-12-06\nexpires = 2028-12-04  # why\n"
        "refs.dpia.valid_until = 2028-12-04\nchecked_on = 2026-11-30\n"
        "name = \"expires = 2027-10-31\"\n");
  CHECK(MoveExampleDates(text, ExamplesWritten()) == text);
}

TEST_CASE("MoveExampleDates: ten years from now every example still parses and is in force") {
  const WallTime later = ExamplesWritten() + std::chrono::days(3650);
  const auto read = [&](const std::string& name) {
    return MoveExampleDates(ReadFile(kExamples + name, 1U << 20U).value(), later);
  };

  for (const char* site : {"cleveland", "budapest", "zurich-basel", "long-beach"}) {
    const std::string name = "site." + std::string(site) + ".policy.toml";
    const auto policy = policy::ParsePolicy(read(name), name, policy::PolicySource::kSite);
    REQUIRE_MESSAGE(policy.ok(), Message(policy.status()));
    CHECK(policy->identity.not_before < later);
    CHECK(policy->identity.expires > later);
  }
  const auto facts = policy::ParseFacts(read("legal-facts.toml"), "legal-facts.toml");
  REQUIRE_MESSAGE(facts.ok(), Message(facts.status()));
  CHECK(facts->expires > later);
}

}  // namespace
}  // namespace domicile::cli

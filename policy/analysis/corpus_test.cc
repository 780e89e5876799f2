// Runs tests/policy_corpus/*.case. Grammar: the README there.
#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "policy/analysis/cases.h"
#include "policy/engine/explain.h"
#include "policy/language/statement.h"

namespace domicile::policy::analysis {
namespace {

std::string Beside(const std::string& path) { return JoinPath(DOMICILE_SOURCE_DIR, path); }

CaseBook ReadCorpus() {
  const std::string folder = Beside("tests/policy_corpus");
  const auto names = ListFiles(folder);
  REQUIRE(names.ok());
  CaseBook book;
  std::size_t files = 0;
  for (const std::string& name : *names) {
    if (!name.ends_with(".case")) {
      continue;
    }
    const auto text = ReadFile(JoinPath(folder, name), 1U << 20U);
    REQUIRE_MESSAGE(text.ok(), ToString(text.status()));
    const Status status = book.Add(
        *text, name, [](const std::string& path) { return ReadFile(Beside(path), 1U << 20U); });
    CHECK_MESSAGE(status.ok(), ToString(status));
    ++files;
  }
  CHECK(files >= 13);  // a folder that went missing must not pass
  return book;
}

// What must hold of every decision.
void CheckAlways(const CaseBook& book, const Case& each, const Decision& decision) {
  CHECK(decision.permit.has_value() == (decision.result == Result::kAllow));
  CHECK(!decision.findings.empty());
  CHECK((decision.Why() == Reason::kPermitted) == (decision.result == Result::kAllow));
  const Json explained = ExplainJson(decision, each.transfer);
  CHECK(PrintJson(ExplainJson(book.Answer(each), each.transfer)) == PrintJson(explained));

  // The other end, which has only the statement, comes to the same.
  const Policy& site = book.policies()[each.site].policy;
  const auto statement = ParseStatement(StatementText(site));
  REQUIRE_MESSAGE(statement.ok(), ToString(statement.status()));
  const Policy& federation = book.policies()[each.federation].policy;
  const Policy& aggregator = book.policies()[each.aggregator].policy;
  const Facts& facts = book.facts()[each.facts];
  CHECK(Meet(federation, aggregator, *statement, facts).Text() ==
        Meet(federation, aggregator, site, facts).Text());
  const Decision theirs = book.AnswerWith(each, each.site, *statement);
  CHECK(theirs.result == decision.result);
  CHECK(theirs.Why() == decision.Why());
}

}  // namespace

TEST_CASE(
    "CaseBook: legal facts have the digest of their text, and a policy that names it is met") {
  const std::string name = "key_legal_facts.case";
  const auto text = ReadFile(Beside("tests/policy_corpus/" + name), 1U << 20U);
  REQUIRE(text.ok());
  const auto load = [](const std::string& path) { return ReadFile(Beside(path), 1U << 20U); };
  for (const char* digit : {"c", "d"}) {
    CAPTURE(digit);
    std::string asked;
    CaseBook book([&](std::string_view facts) {
      asked = facts;
      return std::string(64, *digit);
    });
    REQUIRE(book.Add(*text, name, load).ok());

    CHECK(asked == load("deploy/examples/heart/legal-facts.toml").value());
    const Decision decision = book.Answer(book.cases().front());  // its policy names cccc...
    CHECK(decision.Why() == (*digit == 'c' ? Reason::kPermitted : Reason::kLegalFactsDigest));
  }
}

TEST_CASE("Corpus: every case comes out as written") {
  const CaseBook book = ReadCorpus();

  CHECK(book.cases().size() + book.refusals().size() >= 300);
  for (const Case& each : book.cases()) {
    CAPTURE(each.where);
    CAPTURE(each.name);
    const Decision decision = book.Answer(each);
    CHECK(WhyFailed(each, decision) == "");
    CheckAlways(book, each, decision);
  }
  for (const Refusal& each : book.refusals()) {
    CAPTURE(each.where);
    CAPTURE(each.name);
    CHECK(WhyFailed(each) == "");
  }
}

TEST_CASE("Corpus: a case that cannot be read is an error with its place") {
  struct Row {
    std::string name;
    std::string text;
    std::string says;
  };
  const Row rows[] = {
      {"no sources",
       "[sources]\n[transfer]\n[[case]]\nname = \"a\"\nexpect = \"deny\"\nreasons = "
       "[\"LOCATION\"]\n",
       "x.case:4:"},
      {"a wrong code",
       "[sources]\n[transfer]\n[[case]]\nname = \"a\"\nexpect = \"no\"\nreasons = [\"LOCATION\"]\n",
       "must be `allow`, `hold` or `deny`"},
      {"a wrong reason",
       "[sources]\n[transfer]\n[[case]]\nname = \"a\"\nexpect = \"deny\"\nreasons = [\"PLACE\"]\n",
       "is not a reason code"},
      {"a source that is not there", "[sources]\nsite = \"nowhere.toml\"\n", "x.case:"},
      {"an unknown key",
       "[sources]\n[transfer]\n[[refuse]]\nname = \"a\"\nsource = \"site\"\ntext = \"\"\nsays = "
       "\"\"\nwhy = 1\n",
       "why"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CaseBook book;
    const Status status = book.Add(row.text, "x.case", [](const std::string& path) {
      return StatusOr<std::string>(Error(StatusCode::kNotFound, "no `" + path + "`"));
    });
    CHECK(!status.ok());
    const std::string message(Message(status));
    CAPTURE(message);
    CHECK(message.find(row.says) != std::string::npos);
  }
}

}  // namespace domicile::policy::analysis

// Runs tests/policy_corpus/*.case. Grammar: the README there.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "base/toml.h"
#include "policy/engine/explain.h"
#include "policy/engine/request.h"
#include "policy/language/parse.h"
#include "policy/language/statement.h"

namespace domicile::policy {
namespace {

std::string Beside(const std::string& path) { return JoinPath(DOMICILE_SOURCE_DIR, path); }

// A source as its texts.
struct SourceText {
  std::string name;
  std::string text;
};

struct SourceTexts {
  SourceText federation;
  SourceText aggregator;
  SourceText site;
  SourceText facts;
};

void ReadSource(TomlTable& table, const std::string& key, SourceText& source) {
  if (const auto path = table.TryString(key)) {
    const auto text = ReadFile(Beside(*path), 1U << 20U);
    REQUIRE_MESSAGE(text.ok(), ToString(text.status()));
    source = {*path, *text};
  }
  if (const auto text = table.TryString(key + "_text")) {
    source = {key, *text};
  }
}

SourceTexts ReadSources(TomlTable table, SourceTexts sources) {
  ReadSource(table, "federation", sources.federation);
  ReadSource(table, "aggregator", sources.aggregator);
  ReadSource(table, "site", sources.site);
  ReadSource(table, "facts", sources.facts);
  return sources;
}

Policy MustParse(const SourceText& source, PolicySource kind) {
  auto policy = ParsePolicy(source.text, source.name, kind);
  REQUIRE_MESSAGE(policy.ok(), ToString(policy.status()));
  return *std::move(policy);
}

struct Sources {
  Policy federation;
  Policy aggregator;
  Policy site;
  Facts facts;
};

Sources Load(const SourceTexts& texts) {
  auto facts = ParseFacts(texts.facts.text, texts.facts.name);
  REQUIRE_MESSAGE(facts.ok(), ToString(facts.status()));
  return {MustParse(texts.federation, PolicySource::kFederation),
          MustParse(texts.aggregator, PolicySource::kAggregator),
          MustParse(texts.site, PolicySource::kSite), *std::move(facts)};
}

std::vector<std::string> CodesOf(const Decision& decision) {
  std::vector<std::string> codes;
  for (const Finding& finding : decision.findings) {
    codes.emplace_back(Code(finding.reason));
  }
  return codes;
}

// What must hold of every decision.
void CheckAlways(const Sources& sources, const Transfer& transfer, const Decision& decision) {
  CHECK(decision.permit.has_value() == (decision.result == Result::kAllow));
  CHECK(!decision.findings.empty());
  CHECK((decision.Why() == Reason::kPermitted) == (decision.result == Result::kAllow));
  const Effective effective =
      Meet(sources.federation, sources.aggregator, sources.site, sources.facts);
  const Json explained = ExplainJson(decision, transfer);
  CHECK(PrintJson(ExplainJson(Decide(effective, transfer), transfer)) == PrintJson(explained));

  // The other end, which has only the statement, comes to the same.
  const auto statement = ParseStatement(StatementText(sources.site));
  REQUIRE_MESSAGE(statement.ok(), ToString(statement.status()));
  const Effective other = Meet(sources.federation, sources.aggregator, *statement, sources.facts);
  CHECK(other.Text() == effective.Text());
  const Decision theirs = Decide(other, transfer);
  CHECK(theirs.result == decision.result);
  CHECK(theirs.Why() == decision.Why());
}

void RunCase(TomlTable table, const SourceTexts& texts, const Transfer& base) {
  const std::string name = table.String("name");
  CAPTURE(name);
  const std::string expect = table.String("expect");
  const std::vector<std::string> reasons = table.Strings("reasons");
  const std::string says = table.TryString("says").value_or("");
  const Sources sources = Load(ReadSources(table, texts));
  Transfer transfer = base;
  if (auto changes = table.TryTable("transfer")) {
    transfer = ReadTransfer(*changes, base);
  }

  const Decision decision =
      Decide(Meet(sources.federation, sources.aggregator, sources.site, sources.facts), transfer);

  const std::string explanation = ExplainText(decision, transfer);
  CAPTURE(explanation);
  CHECK(Code(decision.result) == expect);
  const std::vector<std::string> codes = CodesOf(decision);
  REQUIRE(!reasons.empty());
  CHECK(codes.front() == reasons.front());
  for (const std::string& reason : reasons) {
    CAPTURE(reason);
    CHECK(ReasonFromCode(reason).has_value());
    CHECK(std::find(codes.begin(), codes.end(), reason) != codes.end());
  }
  CHECK(explanation.find(says) != std::string::npos);
  CheckAlways(sources, transfer, decision);
}

void RunRefusal(TomlTable table) {
  const std::string name = table.String("name");
  CAPTURE(name);
  const std::string source = table.String("source");
  const std::string text = table.String("text");
  const std::string says = table.String("says");
  const auto kind = FromCode<PolicySource>(source);

  const Status status =
      kind ? ParsePolicy(text, source, *kind).status() : ParseFacts(text, source).status();

  CHECK(status.code() == StatusCode::kInvalidArgument);
  const std::string message(Message(status));
  CAPTURE(message);
  CHECK(message.find(says) != std::string::npos);
  CHECK(message.starts_with(source + ":"));
}

std::size_t RunFile(const std::string& path) {
  CAPTURE(path);
  auto document = TomlDocument::Read(path);
  REQUIRE_MESSAGE(document.ok(), ToString(document.status()));
  TomlTable root = document->Root();
  const SourceTexts texts = ReadSources(root.Table("sources"), {});
  const Transfer base = ReadTransfer(root.Table("transfer"), {});
  std::size_t count = 0;
  for (const TomlTable& table : root.Tables("case")) {
    RunCase(table, texts, base);
    ++count;
  }
  for (const TomlTable& table : root.Tables("refuse")) {
    RunRefusal(table);
    ++count;
  }
  const Status status = document->Finish();
  CHECK_MESSAGE(status.ok(), ToString(status));
  CHECK(count > 0);
  return count;
}

}  // namespace

TEST_CASE("Corpus: every case comes out as written") {
  const std::string folder = Beside("tests/policy_corpus");
  const auto names = ListFiles(folder);
  REQUIRE(names.ok());
  std::size_t files = 0;
  std::size_t cases = 0;
  for (const std::string& name : *names) {
    if (name.ends_with(".case")) {
      cases += RunFile(JoinPath(folder, name));
      ++files;
    }
  }
  // A folder that went missing must not pass.
  CHECK(files >= 13);
  CHECK(cases >= 300);
}

}  // namespace domicile::policy

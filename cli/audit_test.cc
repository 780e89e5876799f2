#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/testing_outcome.h"
#include "crypto/merkle.h"
#include "tests/support/example_log.h"

namespace domicile::cli {
namespace {

using test::Must;

// Logs of a site and its aggregator in a folder, and the command.
class Terminal {
 public:
  Terminal() {
    test::ExampleLog site(Path("agent.db"));
    site.Append(test::SiteStory());
    Must(site.log->Head().status());
    Write("key", site.signer.Verifier().Print() + "\n");
    test::ExampleLog aggregator(Path("aggregator.db"), test::kAggregatorLog);
    aggregator.Append(test::AggregatorStory());
    Must(aggregator.log->Head().status());
  }

  std::string Path(const std::string& name) const { return folder_.File(name); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  std::string Read(const std::string& name) const {
    return Must(ReadFile(Path(name), std::uint64_t{1} << 20U));
  }

  // `args` with @NAME standing for a path in the folder.
  Outcome Run(const std::string& args) const {
    const FakeClock clock(test::kExampleTime);
    SeededRandom random(1);
    return RunAt(clock, random, Words("audit " + args, [this](std::string_view name) {
                   return Path(std::string(name));
                 }));
  }

 private:
  test::TempFolder folder_;
};

TEST_CASE("audit show: lists the entries, or those of one type, no line wider than 100") {
  const Terminal terminal;
  const Outcome all = terminal.Run("show @agent.db");
  CHECK(all.exit == 0);
  CHECK(all.out.find("agent.started") != std::string::npos);
  for (const std::string_view line : Split(all.out, '\n')) {
    CHECK(line.size() <= 100);
  }

  const Outcome one = terminal.Run("show @agent.db --type egress.done --json");
  CHECK(one.exit == 0);
  CHECK(Must(audit::ParseLeaf(StripWhitespace(one.out))).event == test::SiteStory()[4]);

  const Outcome misspelt = terminal.Run("show @agent.db --type egres.done");
  CHECK(misspelt.exit == 2);
  CHECK(misspelt.err.find("did you mean `egress.done`") != std::string::npos);
  CHECK(terminal.Run("show @none.db").exit == 3);
}

TEST_CASE("audit export, then verify: the export holds against the head that was kept") {
  const Terminal terminal;
  const Outcome written = terminal.Run("export @agent.db -o @log.jsonl --head-out @head");
  CHECK(written.exit == 0);
  CHECK(written.out.find("6 entries written to") != std::string::npos);

  for (const std::string log : {"@log.jsonl", "@agent.db"}) {
    CAPTURE(log);
    const Outcome good = terminal.Run("verify " + log + " --head @head --key @key");
    CAPTURE(good.out);
    CHECK(good.exit == 0);
    CHECK(good.out.find("the first 6 entries are those of the head given") != std::string::npos);
  }
  const Outcome alone = terminal.Run("verify @agent.db");
  CHECK(alone.exit == 0);
  CHECK(alone.out.find("no earlier head given: removal at the end cannot be seen") !=
        std::string::npos);
  CHECK(alone.out.find("no key given") != std::string::npos);
}

TEST_CASE("audit verify: a changed or cut log exits 1 and names the entry") {
  const Terminal terminal;
  REQUIRE(terminal.Run("export @agent.db -o @log.jsonl --head-out @head").exit == 0);
  std::string lines = terminal.Read("log.jsonl");
  const std::string cut = lines.substr(0, lines.rfind('\n', lines.size() - 2) + 1);
  lines[lines.find("heart-1", lines.find("egress.decided") - 300)] = 'b';
  terminal.Write("log.jsonl", lines);

  const Outcome edited = terminal.Run("verify @log.jsonl --head @head --key @key --json");
  CHECK(edited.exit == 1);
  const Json report = Must(ParseJson(edited.out));
  CHECK(*report.Find("intact")->TryBool() == false);
  CHECK(report.Find("findings")->TryArray()->front().Find("seq") != nullptr);

  terminal.Write("cut.jsonl", cut);
  const Outcome shorter = terminal.Run("verify @cut.jsonl --head @head");
  CHECK(shorter.exit == 1);
  CHECK(shorter.out.find("head says 6 entries, log has 5") != std::string::npos);
}

TEST_CASE("audit verify: a bad key is wrong use, a missing head cannot be done") {
  const Terminal terminal;
  CHECK(terminal.Run("verify @agent.db --key nonsense").exit == 2);
  CHECK(terminal.Run("verify @agent.db --head @none").exit == 3);
  CHECK(terminal.Run("verify @none.db").exit == 3);
  CHECK(terminal.Run("verify").exit == 2);
}

TEST_CASE("audit reconcile: exits 0 if all is explained and 1 if not") {
  const Terminal terminal;
  const Outcome good = terminal.Run("reconcile @agent.db @aggregator.db");
  CAPTURE(good.out);
  CHECK(good.exit == 0);
  CHECK(good.out.find("0 unexplained") != std::string::npos);

  {
    test::ExampleLog aggregator(terminal.Path("aggregator.db"), test::kAggregatorLog);
    aggregator.Append(test::Received(test::ExampleDigest(0x99)));
  }
  const Outcome bad = terminal.Run("reconcile @agent.db @aggregator.db --json");
  CHECK(bad.exit == 1);
  CHECK(*Must(ParseJson(bad.out)).Find("explained")->TryBool() == false);
  CHECK(terminal.Run("reconcile @aggregator.db @agent.db").exit == 2);
}

TEST_CASE("audit transfers: lists what crossed borders") {
  const Terminal terminal;
  const Outcome table = terminal.Run("transfers @aggregator.db");
  CHECK(table.exit == 0);
  CHECK(table.out.find("site/charite DE") != std::string::npos);
  CHECK(table.out.find("aggregator/main IE") != std::string::npos);
  const Outcome json = terminal.Run("transfers @agent.db --json");
  CHECK(Must(ParseJson(json.out)).Find("transfers")->TryArray()->size() == 2);
}

TEST_CASE("audit export: an export cannot be exported again") {
  const Terminal terminal;
  REQUIRE(terminal.Run("export @agent.db -o @log.jsonl").exit == 0);
  CHECK(terminal.Run("export @log.jsonl -o @again.jsonl").exit == 2);
}

}  // namespace
}  // namespace domicile::cli

// `domicile demo`, as a user runs it; and what an auditor does with the folder that it leaves.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "tests/support/federation_processes.h"
#include "tests/support/run_command.h"

namespace domicile::test {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{64} << 20U;

CommandResult Domicile(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {ProgramFolder() + "/domicile"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const StatusOr<CommandResult> result = RunCommand(command);
  REQUIRE_MESSAGE(result.ok(), Message(result.status()));
  return *result;
}

// A kept demo of three rounds, made once.
struct Kept {
  TemporaryFolder folder;
  CommandResult result;
  std::string In(const std::string& name) const { return folder.In("demo/" + name); }
  // What `audit verify` is told about a party's log.
  std::vector<std::string> Verify(const std::string& log, const std::string& party) const {
    return {"audit",
            "verify",
            log,
            "--head",
            In(party + "/audit/head.note"),
            "--key",
            In(party + "/identity/log.pub")};
  }
};
const Kept& KeptDemo() {
  static const Kept* const kept = [] {
    static Kept made;
    made.result = Domicile({"demo", "--rounds", "3", "--dir", made.folder.In("demo")});
    return &made;
  }();
  return *kept;
}

std::vector<std::string> Parties() {
  std::vector<std::string> parties = {"aggregator"};
  for (const cli::DemoSite& site : cli::HeartSites()) {
    parties.push_back("sites/" + site.name);
  }
  return parties;
}

std::string Database(const std::string& party) {
  return party + (party == "aggregator" ? "/state/aggregator.db" : "/state/agent.db");
}

}  // namespace

TEST_CASE("Demo: three rounds end with the models, the transfers and the proofs") {
  const CommandResult& result = KeptDemo().result;

  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(result.err.empty());
  for (const char* said :
       {"FEDERATED: no record left its hospital", "all records in one place (demo only)",
        "What crossed which border", "cleveland", "zurich-basel", "both ends agree on",
        "proven by heads that others kept", "The whole demonstration took",
        "Everything is kept in"}) {
    CHECK_MESSAGE(result.out.find(said) != std::string::npos, std::string(said));
  }
}

TEST_CASE("Demo: a kept folder has a folder for each party with configuration, output and log") {
  const Kept& kept = KeptDemo();

  CHECK(FileExists(kept.In("ca/root.pem")));
  CHECK(FileExists(kept.In("aggregator/aggregator.toml")));
  for (const std::string& party : Parties()) {
    for (const char* file : {"/output.log", "/audit/log.db", "/audit/log.jsonl",
                             "/audit/log.jsonl.hashes", "/audit/head.note"}) {
      CHECK_MESSAGE(FileExists(kept.In(party + file)), (party + file));
    }
    if (party != "aggregator") {
      CHECK(FileExists(kept.In(party + "/agent.toml")));
      CHECK(FileExists(kept.In(party + "/trainer/trainer.toml")));
    }
  }
}

TEST_CASE("Demo: a folder that is not empty is refused and left alone") {
  const TemporaryFolder folder;
  REQUIRE(WriteFileDurably(folder.In("mine.txt"), AsBytes("mine")).ok());

  const CommandResult result = Domicile({"demo", "--rounds", "3", "--dir", folder.Path()});

  CHECK(result.code == 2);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("domicile: "));
  CHECK(result.err.find("is not empty") != std::string::npos);
  const auto files = ListFiles(folder.Path());
  REQUIRE(files.ok());
  CHECK(*files == std::vector<std::string>{"mine.txt"});
}

TEST_CASE("Demo: every log and every export of a kept folder verifies and reconciles") {
  const Kept& kept = KeptDemo();

  for (const std::string& party : Parties()) {
    CAPTURE(party);
    for (const std::string& log : {kept.In(Database(party)), kept.In(party + "/audit/log.jsonl")}) {
      const CommandResult verified = Domicile(kept.Verify(log, party));
      CHECK_MESSAGE(verified.code == 0, (verified.out + verified.err));
    }
    if (party != "aggregator") {
      const CommandResult reconciled = Domicile(
          {"audit", "reconcile", kept.In(Database(party)), kept.In(Database("aggregator"))});
      CHECK_MESSAGE(reconciled.code == 0, (reconciled.out + reconciled.err));
    }
  }
}

TEST_CASE("Demo: a log is exported and shown; an export without its end is noticed") {
  const Kept& kept = KeptDemo();
  const TemporaryFolder folder;
  const std::string party = "sites/budapest";

  const CommandResult exported =
      Domicile({"audit", "export", kept.In(Database(party)), "-o", folder.In("log.jsonl")});
  const CommandResult shown =
      Domicile({"audit", "show", folder.In("log.jsonl"), "--type", "egress.done", "--json"});
  // The kept export ends where the kept head does.
  const auto text = ReadFile(kept.In(party + "/audit/log.jsonl"), kLargest);
  REQUIRE(text.ok());
  const std::size_t last = text->rfind('\n', text->size() - 2);
  REQUIRE(WriteFileDurably(folder.In("cut.jsonl"), AsBytes(text->substr(0, last + 1))).ok());
  const CommandResult cut = Domicile(kept.Verify(folder.In("cut.jsonl"), party));

  CHECK_MESSAGE(exported.code == 0, exported.err);
  CHECK(shown.code == 0);
  CHECK(std::count(shown.out.begin(), shown.out.end(), '\n') == 5);  // statistics, 3 x train, last
  CHECK(cut.code == 1);
}

TEST_CASE("Demo: a byte that was changed in a copy of a log is named") {
  const Kept& kept = KeptDemo();
  const TemporaryFolder folder;
  const std::string party = "sites/long-beach";
  auto text = ReadFile(kept.In(party + "/audit/log.jsonl"), kLargest);
  REQUIRE(text.ok());
  // A digit of a number of bytes in an `egress.done`: still a well-formed leaf.
  const std::size_t leaf = text->find("\"egress.done\"");
  REQUIRE(leaf != std::string::npos);
  const std::size_t begin = text->rfind('\n', leaf) + 1;
  const std::size_t bytes = text->find("\"bytes\":", begin) + 8;
  (*text)[bytes] = (*text)[bytes] == '9' ? '8' : '9';
  const auto seq =
      std::count(text->begin(), text->begin() + static_cast<std::ptrdiff_t>(begin), '\n');
  REQUIRE(WriteFileDurably(folder.In("log.jsonl"), AsBytes(*text)).ok());
  std::filesystem::copy(kept.In(party + "/audit/log.jsonl.hashes"), folder.In("log.jsonl.hashes"));

  const CommandResult result = Domicile(kept.Verify(folder.In("log.jsonl"), party));

  CHECK(result.code == 1);
  CHECK_MESSAGE(result.out.find(std::to_string(seq)) != std::string::npos, result.out);
}

}  // namespace domicile::test

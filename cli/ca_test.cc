#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/testing_outcome.h"
#include "contracts/identity.h"
#include "crypto/key_file.h"

namespace domicile::cli {
namespace {

using contracts::LoadIdentity;
using crypto::Role;
using std::chrono::days;

const WallTime kNow = *ParseTime("2026-12-01T00:00:00Z");

// A folder, a clock and the command, as a person at a terminal has them.
class Terminal {
 public:
  Terminal()
      : folder_(std::filesystem::temp_directory_path() /
                ("domicile-ca-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
    REQUIRE(CreateFolders(folder_).ok());
  }
  ~Terminal() { std::filesystem::remove_all(folder_); }

  std::string Path(std::string_view name) const { return JoinPath(folder_, name); }

  // `args` with @NAME standing for a path in the folder.
  Outcome Run(const std::string& args) {
    return RunAt(clock, random_, Words(args, [this](std::string_view name) { return Path(name); }));
  }

  void Init() { REQUIRE(Run("ca init --federation fed.example --dir @ca").exit == 0); }
  void IssueSite() { REQUIRE(Run(std::string(kSite)).exit == 0); }

  static constexpr std::string_view kSite =
      "ca issue --dir @ca --site charite --jurisdiction DE --org charite -o @site";
  FakeClock clock{kNow};

 private:
  std::string folder_;
  SystemRandom random_;
};

unsigned ModeOf(const std::string& path) {
  struct stat facts {};
  REQUIRE(stat(path.c_str(), &facts) == 0);
  return facts.st_mode & 07777U;
}

TEST_CASE("ca init: keys are secret, the roster is signed, empty and version 1") {
  Terminal terminal;

  const Outcome made = terminal.Run("ca init --federation fed.example --dir @ca --json");

  CHECK(made.exit == 0);
  CHECK(made.out ==
        "{\"entries\":[],\"federation\":\"fed.example\",\"valid_until\":"
        "\"2026-12-31T00:00:00.000Z\",\"version\":1}\n");
  for (const char* const name : {"ca/root.key", "ca/issuing.key", "ca/roster.key"}) {
    CHECK(ModeOf(terminal.Path(name)) == 0600);
  }
  CHECK(ModeOf(terminal.Path("ca")) == 0700);
  const auto key = crypto::ReadNotePublicKey(terminal.Path("ca/roster.pub"));
  REQUIRE(key.ok());
  CHECK(key->name() == "fed.example/roster");
  const auto note = ReadFile(terminal.Path("ca/roster.note"), 1U << 20U);
  CHECK(contracts::OpenRoster(*note, *key, kNow, 1)->version == 1);
}

TEST_CASE("ca init: a folder that holds anything is left alone") {
  Terminal terminal;
  terminal.Init();
  const auto before = ReadFile(terminal.Path("ca/root.key"), 1U << 16U);

  const Outcome again = terminal.Run("ca init --federation fed.example --dir @ca");

  CHECK(again.exit == 2);
  CHECK(again.Complains("not empty"));
  CHECK(*ReadFile(terminal.Path("ca/root.key"), 1U << 16U) == *before);
  CHECK(terminal.Run("ca init --federation Fed --dir @other").exit == 2);
  CHECK_FALSE(FileExists(terminal.Path("other")));
}

TEST_CASE("ca issue: each party gets an identity that programs accept") {
  Terminal terminal;
  terminal.Init();
  terminal.IssueSite();
  REQUIRE(terminal
              .Run("ca issue --dir @ca --aggregator main --jurisdiction IE --org fed "
                   "--host aggregator.fed.example --host 127.0.0.1 --host ::1 -o @aggregator")
              .exit == 0);
  REQUIRE(terminal.Run("ca issue --dir @ca --operator alice -o @alice").exit == 0);
  REQUIRE(terminal.Run("ca issue --dir @ca --auditor dpa --days 7 -o @dpa").exit == 0);

  const auto site = LoadIdentity(terminal.Path("site"), Role::kSite, kNow);
  const auto aggregator = LoadIdentity(terminal.Path("aggregator"), Role::kAggregator, kNow);
  const auto alice = LoadIdentity(terminal.Path("alice"), Role::kOperator, kNow);
  const auto dpa = LoadIdentity(terminal.Path("dpa"), Role::kAuditor, kNow);

  CAPTURE(ToString(site.status()));
  REQUIRE(site.ok());
  CHECK(PrintSpiffe(site->Name()) == "spiffe://fed.example/jurisdiction/DE/site/charite");
  CHECK(site->entry.control_jurisdictions == std::vector<std::string>{"DE"});
  CHECK(site->log_key->Verifier().name() == "fed.example/site/charite/log");
  CHECK(ModeOf(terminal.Path("site/tls.key")) == 0600);
  CHECK(ModeOf(terminal.Path("site/log.key")) == 0600);
  CAPTURE(ToString(aggregator.status()));
  REQUIRE(aggregator.ok());
  for (const char* const host : {"aggregator.fed.example", "127.0.0.1", "::1"}) {
    CHECK(crypto::CheckHost(aggregator->files.tls_chain, host).ok());
  }
  CHECK_FALSE(crypto::CheckHost(aggregator->files.tls_chain, "main").ok());
  REQUIRE(alice.ok());
  CHECK_FALSE(alice->log_key.has_value());
  CHECK_FALSE(FileExists(terminal.Path("alice/log.key")));
  REQUIRE(dpa.ok());
  CHECK(dpa->certificate.not_after < kNow + days(7));
  CHECK(dpa->roster.version == 5);
  CHECK(dpa->roster.entries.size() == 4);
}

TEST_CASE("ca issue: a host name above 63 characters works") {
  Terminal terminal;
  terminal.Init();
  const std::string host = std::string(60, 'a') + "." + std::string(60, 'b') + ".fed.example";
  REQUIRE(terminal
              .Run("ca issue --dir @ca --aggregator main --jurisdiction IE --org fed --host " +
                   host + " -o @aggregator")
              .exit == 0);
  const auto chain = ReadFile(terminal.Path("aggregator/tls.pem"), 1U << 16U);
  CHECK(crypto::CheckHost(*chain, host).ok());
}

TEST_CASE("ca issue: wrong use is said, and changes nothing") {
  Terminal terminal;
  terminal.Init();
  const struct {
    std::string args;
    std::string says;
  } cases[] = {
      {"--jurisdiction DE --org o", "--site"},
      {"--site a --operator b", "xactly 1 option"},
      {"--site a", "--jurisdiction"},
      {"--site a --jurisdiction DE", "--org"},
      {"--site a --jurisdiction de --org o", "--jurisdiction"},
      {"--site a --jurisdiction EU --org o", "--jurisdiction"},
      {"--site a --jurisdiction UK --org o", "GB"},
      {"--site a --jurisdiction DE --org o --control DE,XX", "--control"},
      {"--site A --jurisdiction DE --org o", "a-z"},
      {"--site a --jurisdiction DE --org O", "--org"},
      {"--site a --jurisdiction DE --org o --host h", "--host"},
      {"--site a --jurisdiction DE --org o --days 91", "90"},
      {"--site a --jurisdiction DE --org o --days 0", "90"},
      {"--site a --jurisdiction DE --org o --renew", "--renew"},
      {"--aggregator a --jurisdiction DE --org o", "--host"},
      {"--aggregator a --jurisdiction DE --org o --host *.fed.example", "wildcard"},
      {"--aggregator a --jurisdiction DE --org o --host 300.0.0.1,x", "DNS name"},
      {"--operator a --jurisdiction DE", "operator"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.args);
    const Outcome outcome = terminal.Run("ca issue --dir @ca -o @out " + c.args);
    CAPTURE(outcome.err);
    CHECK(outcome.exit == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.Complains(c.says));
    CHECK_FALSE(std::filesystem::exists(terminal.Path("out")));
  }
  CHECK(terminal.Run("ca roster --dir @ca --json").out.find("\"version\":1") != std::string::npos);
}

TEST_CASE("ca issue: a party in the roster is renewed on request, with its log key and old key") {
  Terminal terminal;
  terminal.Init();
  terminal.IssueSite();
  const std::string again = std::string(Terminal::kSite) + "2";
  const auto first = LoadIdentity(terminal.Path("site"), Role::kSite, kNow);

  const Outcome refused = terminal.Run(again);
  const Outcome moved = terminal.Run(
      "ca issue --dir @ca --site charite --jurisdiction FR --org charite --renew -o "
      "@site2");
  const Outcome renewed = terminal.Run(again + " --renew");

  CHECK(refused.exit == 2);
  CHECK(refused.Complains("--renew"));
  CHECK(moved.exit == 2);
  CHECK(moved.Complains("revoke"));
  REQUIRE(renewed.exit == 0);
  CHECK_FALSE(FileExists(terminal.Path("site2/log.key")));
  // The log key stays with the site: its folder plus the renewed files is an identity again.
  std::filesystem::copy_file(terminal.Path("site/log.key"), terminal.Path("site2/log.key"));
  const auto second = LoadIdentity(terminal.Path("site2"), Role::kSite, kNow);
  CAPTURE(ToString(second.status()));
  REQUIRE(second.ok());
  CHECK(second->entry.log_key == first->entry.log_key);
  CHECK(second->entry.tls_keys ==
        std::vector<Digest>{first->certificate.key, second->certificate.key});
  CHECK(contracts::CheckPeer(second->roster, first->certificate, Role::kSite).reason ==
        policy::Reason::kNone);
}

TEST_CASE("ca revoke: a revoked party is nobody in the next roster, and may be issued anew") {
  Terminal terminal;
  terminal.Init();
  terminal.IssueSite();
  const auto site = LoadIdentity(terminal.Path("site"), Role::kSite, kNow);

  CHECK(terminal.Run("ca revoke --dir @ca --site charite").exit == 0);
  CHECK(terminal.Run("ca revoke --dir @ca --site charite").exit == 2);
  CHECK(terminal.Run("ca roster --dir @ca -o @roster.note").exit == 0);

  const auto note = ReadFile(terminal.Path("roster.note"), 1U << 20U);
  const auto roster = contracts::OpenRoster(*note, site->roster_key, kNow, site->roster.version);
  REQUIRE(roster.ok());
  CHECK(roster->version == site->roster.version + 1);
  CHECK(contracts::CheckPeer(*roster, site->certificate, Role::kSite).reason ==
        policy::Reason::kNotInRoster);
  CHECK(terminal.Run(std::string(Terminal::kSite) + "3").exit == 0);
}

TEST_CASE("ca roster: an expired roster can be renewed, and versions only grow") {
  Terminal terminal;
  terminal.Init();
  terminal.clock.Advance(days(40));
  CHECK(terminal.Run("ca roster --dir @ca --renew -o @roster.note").exit == 0);
  const auto key = crypto::ReadNotePublicKey(terminal.Path("ca/roster.pub"));
  const auto note = ReadFile(terminal.Path("roster.note"), 1U << 20U);
  const auto roster = contracts::OpenRoster(*note, *key, terminal.clock.Now(), 2);
  REQUIRE(roster.ok());
  CHECK(roster->version == 2);
  const Outcome shown = terminal.Run("ca roster --dir @ca");
  CHECK(shown.out == "fed.example version 2, valid until 2027-02-09T00:00:00.000Z\n");
}

TEST_CASE("ca: a folder that is no authority, is in use, or was changed is refused") {
  Terminal terminal;
  CHECK(terminal.Run("ca roster --dir @none").exit == 3);
  terminal.Init();
  {
    const auto held = LockFile(terminal.Path("ca/lock"), "a test");
    REQUIRE(held.ok());
    CHECK(terminal.Run("ca roster --dir @ca").exit == 3);
  }
  CHECK(terminal.Run("ca roster --dir @ca").exit == 0);
  std::string note = *ReadFile(terminal.Path("ca/roster.note"), 1U << 20U);
  note.replace(note.find("\"version\":1"), 11, "\"version\":9");
  REQUIRE(WriteFileDurably(terminal.Path("ca/roster.note"), AsBytes(note)).ok());
  const Outcome changed = terminal.Run("ca roster --dir @ca");
  CHECK(changed.exit == 3);
  CHECK(changed.Complains("does not verify"));
}

TEST_CASE("ca approver: the key signs, the printed line is its public half, nothing is replaced") {
  Terminal terminal;

  const Outcome made = terminal.Run("ca approver --name charite/dpo -o @dpo.key --json");
  const Outcome again = terminal.Run("ca approver --name charite/dpo -o @dpo.key");

  REQUIRE(made.exit == 0);
  const auto facts = ParseJson(made.out);
  const auto signer = crypto::ReadNoteKey(terminal.Path("dpo.key"));
  REQUIRE(signer.ok());
  CHECK(*facts->Find("public_key")->TryString() == signer->Verifier().Print());
  CHECK(crypto::ReadNotePublicKey(terminal.Path("dpo.pub"))->Print() == signer->Verifier().Print());
  CHECK(signer->Verifier().name() == "charite/dpo");
  CHECK(made.out.find("PRIVATE") == std::string::npos);
  CHECK(again.exit == 2);
  for (const char* const name : {"Dpo", "a//b", "a/b/c/d/e", "a+b", "../a"}) {
    CAPTURE(name);
    CHECK(terminal.Run("ca approver -o @x.key --name " + std::string(name)).exit == 2);
  }
}

}  // namespace
}  // namespace domicile::cli

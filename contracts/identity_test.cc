#include "contracts/identity.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/random.h"
#include "crypto/key_file.h"

namespace domicile::contracts {
namespace {

using crypto::Role;
using std::chrono::days;

const WallTime kNow = *ParseTime("2026-12-01T00:00:00Z");

// One federation with a site, made once: keys are slow.
struct Federation {
  crypto::Authority authority =
      *crypto::MakeAuthority("fed.example", kNow - days(1), kNow + days(900));
  SystemRandom random;
  crypto::NoteSigner roster_key =
      *crypto::NoteSigner::Generate(RosterKeyName("fed.example"), random);
  crypto::NoteSigner log_key =
      *crypto::NoteSigner::Generate(LogKeyName("fed.example", Role::kSite, "charite"), random);
  crypto::IssuedCertificate site = MakeSite("DE");
  crypto::IssuedCertificate elsewhere = MakeSite("FR");
  Roster roster = {.federation = "fed.example",
                   .version = 2,
                   .valid_until = kNow + days(30),
                   .entries = {{.role = Role::kSite,
                                .name = "charite",
                                .jurisdiction = "DE",
                                .control_jurisdictions = {},
                                .organisation = "charite",
                                .tls_keys = {site.key},
                                .log_key = log_key.Verifier().Print()}}};

  crypto::IssuedCertificate MakeSite(const std::string& jurisdiction) const {
    crypto::CertificateRequest request;
    request.spiffe = {.federation = "fed.example",
                      .role = Role::kSite,
                      .jurisdiction = jurisdiction,
                      .name = "charite"};
    request.client = true;
    request.not_before = kNow - days(1);
    request.not_after = kNow + days(60);
    return *crypto::Issue(authority.issuing_key_pem, authority.issuing_pem, request);
  }
};

const Federation& TestFederation() {
  static const Federation kFederation;
  return kFederation;
}

crypto::SecretBytes Secret(std::string_view text) { return crypto::SecretBytes(AsBytes(text)); }

IdentityFiles Files() {
  const Federation& federation = TestFederation();
  return {.tls_key = Secret(federation.site.key_pem),
          .tls_chain = federation.site.chain_pem,
          .root = federation.authority.root_pem,
          .log_key = Secret(federation.log_key.PrintSecret() + "\n"),
          .roster_note = *federation.roster_key.Sign(RosterText(federation.roster)),
          .roster_key = federation.roster_key.Verifier().Print() + "\n"};
}

TEST_CASE("CheckIdentity: files that belong together make an identity") {
  const auto identity = CheckIdentity(Files(), Role::kSite, kNow);

  CAPTURE(ToString(identity.status()));
  REQUIRE(identity.ok());
  CHECK(PrintSpiffe(identity->Name()) == "spiffe://fed.example/jurisdiction/DE/site/charite");
  CHECK(identity->certificate.key == TestFederation().site.key);
  CHECK(identity->roster == TestFederation().roster);
  CHECK(identity->entry == TestFederation().roster.entries[0]);
  REQUIRE(identity->log_key.has_value());
  CHECK(identity->log_key->Verifier() == TestFederation().log_key.Verifier());
}

TEST_CASE("CheckIdentity: each part that does not fit is named") {
  const Federation& federation = TestFederation();
  SystemRandom random;
  const struct {
    std::string name;
    std::function<void(IdentityFiles&)> change;
    StatusCode code;
    std::string says;
  } cases[] = {
      {"key of another", [&](auto& f) { f.tls_key = Secret(federation.elsewhere.key_pem); },
       StatusCode::kUnauthenticated, "tls.key"},
      {"no key", [](auto& f) { f.tls_key = {}; }, StatusCode::kInvalidArgument, "tls.key"},
      {"no certificate", [](auto& f) { f.tls_chain = "none"; }, StatusCode::kInvalidArgument,
       "tls.pem"},
      {"other root",
       [](auto& f) {
         f.root = crypto::MakeAuthority("fed.example", kNow - days(1), kNow + days(9))->root_pem;
       },
       StatusCode::kUnauthenticated, "root.pem"},
      {"certificate of another place",
       [&](auto& f) {
         f.tls_key = Secret(federation.elsewhere.key_pem);
         f.tls_chain = federation.elsewhere.chain_pem;
       },
       StatusCode::kFailedPrecondition, "JURISDICTION-MISMATCH"},
      {"not in the roster",
       [&](auto& f) {
         Roster roster = federation.roster;
         roster.entries.clear();
         f.roster_note = *federation.roster_key.Sign(RosterText(roster));
       },
       StatusCode::kFailedPrecondition, "NOT-IN-ROSTER"},
      {"expired roster",
       [&](auto& f) {
         Roster roster = federation.roster;
         roster.valid_until = kNow;
         f.roster_note = *federation.roster_key.Sign(RosterText(roster));
       },
       StatusCode::kFailedPrecondition, "roster.note"},
      {"roster of another key",
       [&](auto& f) {
         f.roster_key =
             crypto::NoteSigner::Generate("fed.example/roster", random)->Verifier().Print();
       },
       StatusCode::kUnauthenticated, "roster.note"},
      {"no roster key", [](auto& f) { f.roster_key = ""; }, StatusCode::kInvalidArgument,
       "roster.pub"},
      {"log key of another",
       [&](auto& f) {
         f.log_key = Secret(
             crypto::NoteSigner::Generate(LogKeyName("fed.example", Role::kSite, "charite"), random)
                 ->PrintSecret());
       },
       StatusCode::kUnauthenticated, "log.key"},
      {"no log key", [](auto& f) { f.log_key = {}; }, StatusCode::kInvalidArgument, "log.key"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    IdentityFiles files = Files();
    c.change(files);
    const Status status = CheckIdentity(std::move(files), Role::kSite, kNow).status();
    CAPTURE(ToString(status));
    CHECK(status.code() == c.code);
    CHECK(Message(status).find(c.says) != std::string_view::npos);
  }
}

TEST_CASE("CheckIdentity: another role and another time are refused") {
  const auto role = CheckIdentity(Files(), Role::kAggregator, kNow);
  const auto late = CheckIdentity(Files(), Role::kSite, kNow + days(61));
  CHECK(Message(role.status()).find("aggregator") != std::string_view::npos);
  CHECK(Message(late.status()).find("expired") != std::string_view::npos);
}

TEST_CASE("LoadIdentity: a folder is read whole, and a missing or open file is named") {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("domicile-identity-" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  REQUIRE(CreateFolders(folder).ok());
  const IdentityFiles files = Files();
  const auto path = [&](std::string_view name) { return JoinPath(folder, name); };
  REQUIRE(crypto::WriteKeyFile(path("tls.key"), files.tls_key.Text()).ok());
  REQUIRE(crypto::WriteKeyFile(path("log.key"), files.log_key.Text()).ok());
  REQUIRE(WriteFileDurably(path("tls.pem"), AsBytes(files.tls_chain)).ok());
  REQUIRE(WriteFileDurably(path("root.pem"), AsBytes(files.root)).ok());
  REQUIRE(WriteFileDurably(path("roster.pub"), AsBytes(files.roster_key)).ok());

  const auto missing = LoadIdentity(folder, Role::kSite, kNow);
  REQUIRE(WriteFileDurably(path("roster.note"), AsBytes(files.roster_note)).ok());
  const auto whole = LoadIdentity(folder, Role::kSite, kNow);
  REQUIRE(chmod(path("log.key").c_str(), 0644) == 0);
  const auto open = LoadIdentity(folder, Role::kSite, kNow);

  CHECK(missing.status().code() == StatusCode::kNotFound);
  CHECK(Message(missing.status()).find("roster.note") != std::string_view::npos);
  CAPTURE(ToString(whole.status()));
  CHECK(whole.ok());
  CHECK(open.status().code() == StatusCode::kPermissionDenied);
  CHECK(Message(open.status()).find("log.key") != std::string_view::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace domicile::contracts

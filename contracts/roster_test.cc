#include "contracts/roster.h"

#include <chrono>
#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "base/random.h"

namespace domicile::contracts {
namespace {

using crypto::Role;
using policy::Reason;

const WallTime kNow = *ParseTime("2026-12-01T00:00:00Z");

Digest DigestOf(std::uint8_t byte) {
  Digest digest;
  digest.bytes.fill(byte);
  return digest;
}

crypto::NoteSigner Signer(std::string_view name) {
  SeededRandom random(7);
  return *crypto::NoteSigner::Generate(name, random);
}

RosterEntry Placed(Role role, const std::string& name, const std::string& jurisdiction,
                   std::uint8_t key) {
  return {.role = role,
          .name = name,
          .jurisdiction = jurisdiction,
          .control_jurisdictions = {jurisdiction},
          .organisation = "org-" + name,
          .tls_keys = {DigestOf(key)},
          .log_key = Signer(LogKeyName("fed.example", role, name)).Verifier().Print()};
}

RosterEntry Person(Role role, const std::string& name, std::uint8_t key) {
  RosterEntry entry;
  entry.role = role;
  entry.name = name;
  entry.tls_keys = {DigestOf(key)};
  return entry;
}

Roster TestRoster() {
  return {
      .federation = "fed.example",
      .version = 7,
      .valid_until = kNow + std::chrono::days(30),
      .entries = {Placed(Role::kSite, "charite", "DE", 1), Placed(Role::kSite, "ucsf", "US-CA", 2),
                  Placed(Role::kAggregator, "main", "IE", 3), Person(Role::kOperator, "alice", 4),
                  Person(Role::kAuditor, "dpa", 5)}};
}

crypto::PeerIdentity Peer(Role role, const std::string& name, const std::string& jurisdiction,
                          std::uint8_t key) {
  return {.spiffe = {.federation = "fed.example",
                     .role = role,
                     .jurisdiction = jurisdiction,
                     .name = name},
          .key = DigestOf(key),
          .serial = "01",
          .not_after = kNow + std::chrono::days(1)};
}

TEST_CASE("RosterText: it is canonical JSON, and reading it gives the same roster") {
  const Roster roster = TestRoster();
  const std::string text = RosterText(roster);

  const auto read = RosterFromText(text);

  CAPTURE(ToString(read.status()));
  REQUIRE(read.ok());
  CHECK(*read == roster);
  CHECK(text.starts_with(R"({"entries":[{"control":["DE"],"jurisdiction":"DE","log_key":)"));
  CHECK(text.ends_with(
      R"("federation":"fed.example","type":"roster","v":1,"valid_until":"2026-12-31T00:00:00.000Z","version":7})"
      "\n"));
  Roster empty = roster;
  empty.entries.clear();
  CHECK(RosterFromText(RosterText(empty)).ok());
}

TEST_CASE("RosterFromText: another spelling of the same roster is refused") {
  const std::string text = RosterText(TestRoster());
  CHECK_FALSE(RosterFromText(text.substr(0, text.size() - 1)).ok());
  CHECK_FALSE(RosterFromText(text + "\n").ok());
  CHECK_FALSE(RosterFromText(" " + text).ok());
  std::string unknown = text;
  unknown.insert(unknown.find("\"type\""), "\"spare\":1,");
  CHECK(Message(RosterFromText(unknown).status()).find("spare") != std::string_view::npos);
  std::string later = text;
  later.replace(later.find("\"v\":1"), 5, "\"v\":2");
  CHECK_FALSE(RosterFromText(later).ok());
}

TEST_CASE("CheckRoster: one wrong entry refuses the roster, and is named") {
  const struct {
    std::string name;
    std::function<void(Roster&)> change;
    std::string says;
  } cases[] = {
      {"version 0", [](Roster& r) { r.version = 0; }, "version"},
      {"federation", [](Roster& r) { r.federation = "Fed"; }, "federation"},
      {"twice", [](Roster& r) { r.entries[1] = r.entries[0]; }, "site/charite"},
      {"order", [](Roster& r) { std::swap(r.entries[0], r.entries[1]); }, "in order"},
      {"no role", [](Roster& r) { r.entries[0].role = Role::kNone; }, "role"},
      {"name", [](Roster& r) { r.entries[0].name = "Charite"; }, "name"},
      {"bloc", [](Roster& r) { r.entries[0].jurisdiction = "EU"; }, "jurisdiction"},
      {"no country", [](Roster& r) { r.entries[0].jurisdiction = "UK"; }, "jurisdiction"},
      {"no place", [](Roster& r) { r.entries[0].jurisdiction = ""; }, "jurisdiction"},
      {"control",
       [](Roster& r) {
         r.entries[0].control_jurisdictions = {"DE", "DE"};
       },
       "control"},
      {"control order",
       [](Roster& r) {
         r.entries[0].control_jurisdictions = {"US", "DE"};
       },
       "control"},
      {"organisation", [](Roster& r) { r.entries[0].organisation = ""; }, "organisation"},
      {"no key", [](Roster& r) { r.entries[0].tls_keys.clear(); }, "tls_keys"},
      {"three keys",
       [](Roster& r) {
         r.entries[0].tls_keys = {DigestOf(7), DigestOf(8), DigestOf(9)};
       },
       "tls_keys"},
      {"key of another", [](Roster& r) { r.entries[1].tls_keys = r.entries[0].tls_keys; },
       "tls_keys"},
      {"log key of another", [](Roster& r) { r.entries[0].log_key = r.entries[1].log_key; },
       "log_key"},
      {"no log key", [](Roster& r) { r.entries[0].log_key = ""; }, "log_key"},
      {"operator with a place", [](Roster& r) { r.entries[3].jurisdiction = "DE"; },
       "operator/alice"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    Roster roster = TestRoster();
    c.change(roster);
    const Status status = CheckRoster(roster);
    CAPTURE(ToString(status));
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(Message(status).find(c.says) != std::string_view::npos);
    const auto read = RosterFromText(RosterText(roster));
    CHECK_FALSE((read.ok() && *read == roster));
  }
  CHECK(CheckRoster(TestRoster()).ok());
}

TEST_CASE("OpenRoster: the federation's key, a version that does not shrink, in its time") {
  const auto signer = Signer("fed.example/roster");
  const auto key = signer.Verifier();
  const std::string note = *signer.Sign(RosterText(TestRoster()));
  const WallTime end = TestRoster().valid_until;

  CHECK(*OpenRoster(note, key, kNow, 7) == TestRoster());
  CHECK(OpenRoster(note, key, kNow, 8).status().code() == StatusCode::kFailedPrecondition);
  CHECK(OpenRoster(note, key, end, 1).status().code() == StatusCode::kFailedPrecondition);
  CHECK(OpenRoster(note, key, end - std::chrono::nanoseconds(1), 1).ok());
}

TEST_CASE("OpenRoster: another key, a changed text or a key of another name is refused") {
  const auto signer = Signer("fed.example/roster");
  const auto other = Signer("other.example/roster");
  const auto key = signer.Verifier();
  const auto other_key = other.Verifier();
  const std::string note = *signer.Sign(RosterText(TestRoster()));
  std::string changed = note;
  changed.replace(changed.find("\"version\":7"), 11, "\"version\":9");

  CHECK(OpenRoster(note, other_key, kNow, 1).status().code() == StatusCode::kUnauthenticated);
  CHECK(OpenRoster(changed, key, kNow, 1).status().code() == StatusCode::kUnauthenticated);
  // Rightly signed by the configured key, which is not this federation's roster key.
  const auto foreign = OpenRoster(*other.Sign(RosterText(TestRoster())), other_key, kNow, 1);
  CHECK(foreign.status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("CheckPeer: role, name, place and key, each with its reason") {
  const Roster roster = TestRoster();
  auto stranger = Peer(Role::kSite, "charite", "DE", 1);
  stranger.spiffe.federation = "other.example";
  auto no_key = Peer(Role::kSite, "charite", "DE", 0);
  const struct {
    std::string name;
    crypto::PeerIdentity peer;
    Role wanted;
    Reason reason;
  } cases[] = {
      {"right", Peer(Role::kSite, "charite", "DE", 1), Role::kSite, Reason::kNone},
      {"aggregator", Peer(Role::kAggregator, "main", "IE", 3), Role::kAggregator, Reason::kNone},
      {"operator", Peer(Role::kOperator, "alice", "", 4), Role::kOperator, Reason::kNone},
      {"wrong role", Peer(Role::kSite, "charite", "DE", 1), Role::kAggregator, Reason::kRole},
      {"no role wanted", Peer(Role::kNone, "charite", "DE", 1), Role::kNone, Reason::kRole},
      {"unknown", Peer(Role::kSite, "nobody", "DE", 1), Role::kSite, Reason::kNotInRoster},
      {"name of an aggregator", Peer(Role::kSite, "main", "IE", 3), Role::kSite,
       Reason::kNotInRoster},
      {"other federation", stranger, Role::kSite, Reason::kNotInRoster},
      {"other place", Peer(Role::kSite, "charite", "FR", 1), Role::kSite,
       Reason::kJurisdictionMismatch},
      {"part of the place", Peer(Role::kSite, "ucsf", "US", 2), Role::kSite,
       Reason::kJurisdictionMismatch},
      {"key of another", Peer(Role::kSite, "charite", "DE", 2), Role::kSite, Reason::kNotInRoster},
      {"no key", no_key, Role::kSite, Reason::kNotInRoster},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const PeerCheck check = CheckPeer(roster, c.peer, c.wanted);
    CHECK(check.reason == c.reason);
    CHECK((check.entry != nullptr) == (c.reason == Reason::kNone));
  }
}

TEST_CASE("CheckPeer: the next key is as good as the current one, and no entry admits nobody") {
  Roster roster = TestRoster();
  roster.entries[0].tls_keys.push_back(DigestOf(9));
  CHECK(CheckPeer(roster, Peer(Role::kSite, "charite", "DE", 1), Role::kSite).reason ==
        Reason::kNone);
  CHECK(CheckPeer(roster, Peer(Role::kSite, "charite", "DE", 9), Role::kSite).reason ==
        Reason::kNone);
  CHECK(CheckPeer({}, Peer(Role::kSite, "charite", "DE", 1), Role::kSite).reason ==
        Reason::kNotInRoster);
}

}  // namespace
}  // namespace domicile::contracts

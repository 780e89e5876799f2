#include "site_agent/egress/policy_keeper.h"

#include <functional>

#include <doctest/doctest.h>

#include "site_agent/egress/testing.h"
#include "site_agent/egress/testing_gate.h"
#include "tests/support/example_approval.h"

namespace domicile::site_agent {
namespace {

using std::chrono::hours;

// The files of a site in Budapest, signed by its officer, its operator and the federation's office.
struct Files {
  Desk desk;
  FakeClock clock{kPolicyNow};
  crypto::NoteSigner officer = test::ExamplePerson("dpo-budapest", 1);
  crypto::NoteSigner operator_key = test::ExamplePerson("operator-budapest", 2);
  crypto::NoteSigner office = test::ExamplePerson("federation-office", 3);
  AgentConfig config;
  std::optional<PolicyKeeper> keeper;

  Files() {
    Must(CreateFolders(desk.Beside("policies")));
    config.policy = desk.Beside("policies/site.toml");
    config.federation_policy = desk.Beside("policies/federation.toml");
    config.legal_facts = desk.Beside("policies/facts.toml");
    config.policy_signers.site = {officer.Verifier(), operator_key.Verifier()};
    config.policy_signers.federation = {office.Verifier()};
    config.policy_signers.facts = {office.Verifier()};
    Write(config.federation_policy, HeartText("federation.policy.toml"), {&office});
    Write(config.legal_facts, HeartText("legal-facts.toml"), {&office});
    Write(config.policy, Site(1), {&officer, &operator_key});
    Restart();
  }
  // The site policy, of another version and with another number of rounds.
  static std::string Site(int version, int rounds = 40) {
    std::string text = HeartText("site.budapest.policy.toml");
    const auto replace = [&text](const std::string& from, const std::string& to) {
      const std::size_t at = text.find(from);
      REQUIRE(at != std::string::npos);
      text.replace(at, from.size(), to);
    };
    replace("\nversion = 1\n", "\nversion = " + std::to_string(version) + "\n");
    replace("\nlimit.rounds = 40\n", "\nlimit.rounds = " + std::to_string(rounds) + "\n");
    return text;
  }
  void Write(const std::string& file, const std::string& text,
             const std::vector<const crypto::NoteSigner*>& signers) const {
    Must(WriteFileDurably(file, AsBytes(text)));
    std::string note;
    for (const crypto::NoteSigner* signer : signers) {
      const std::string one = test::SignedAt(
          *signer, contracts::PolicySignatureText(crypto::Sha256(AsBytes(text))), kPolicyNow);
      note = note.empty() ? one : Must(crypto::MergeNotes(note, one));
    }
    Must(WriteFileDurably(file + ".sig", AsBytes(note)));
  }
  void Restart() {
    desk.Reopen();
    keeper.emplace(config, "HU", desk.Open(), clock);
  }
  std::uint64_t Look() { return Must(keeper->Look()).site.identity.version; }
  // How many leaves of this type with this code there are.
  std::size_t Count(audit::EventType type, std::string_view reason = {}) {
    std::size_t count = 0;
    for (std::uint64_t i = 0; i < desk.NumLeaves(); ++i) {
      const audit::Event leaf = desk.Leaf(i);
      const Json* code = leaf.body().Find("reason");
      if (leaf.type() == type &&
          (reason.empty() || (code != nullptr && *code->TryString() == reason))) {
        ++count;
      }
    }
    return count;
  }
};

}  // namespace

TEST_CASE("PolicyKeeper: the first versions need the threshold, and are in force at once") {
  Files files;
  CHECK(files.Look() == 1);
  CHECK(files.Count(audit::EventType::kPolicyLoaded) == 2);
  CHECK(files.Count(audit::EventType::kFactsLoaded) == 1);

  Files half;
  half.Write(half.config.policy, Files::Site(1), {&half.officer});
  CHECK(half.keeper->Look().status().code() == StatusCode::kUnauthenticated);
  Files none;
  Must(RemoveFile(none.config.legal_facts + ".sig"));
  CHECK(none.keeper->Look().status().code() == StatusCode::kUnauthenticated);
  none.config.policy_signers = {
      .none = true, .site = {}, .federation = {}, .aggregator = {}, .facts = {}};
  CHECK(none.Look() == 1);
}

TEST_CASE("PolicyKeeper: what allows less is in force at once, by one signature") {
  Files files;
  REQUIRE(files.Look() == 1);
  files.Write(files.config.policy, Files::Site(2, 20), {&files.officer});

  CHECK(files.Look() == 2);
  CHECK(files.Count(audit::EventType::kPolicyLoaded) == 3);
  files.Restart();
  CHECK(files.Look() == 2);
}

TEST_CASE("PolicyKeeper: what allows more needs the threshold and waits, over restarts") {
  Files files;
  REQUIRE(files.Look() == 1);
  files.Write(files.config.policy, Files::Site(2, 60), {&files.officer});
  CHECK(files.Look() == 1);
  CHECK(files.Count(audit::EventType::kPolicyRefused, "POLICY-SIGNATURE") == 1);

  files.Write(files.config.policy, Files::Site(2, 60), {&files.officer, &files.operator_key});
  CHECK(files.Look() == 1);
  CHECK(files.Count(audit::EventType::kPolicyWaiting) == 1);
  REQUIRE(files.keeper->NextLook().has_value());
  const WallTime due = *files.keeper->NextLook();
  CHECK(due >= kPolicyNow + hours(24));
  files.clock.SetWall(due - hours(1));
  files.Restart();
  CHECK(files.Look() == 1);
  CHECK(files.keeper->NextLook() == due);
  CHECK(files.Count(audit::EventType::kPolicyWaiting) == 1);

  files.clock.SetWall(due);
  CHECK(files.Look() == 2);
  CHECK_FALSE(files.keeper->NextLook().has_value());
}

TEST_CASE("PolicyKeeper: a version that was withdrawn waits from the beginning when it is back") {
  Files files;
  const std::vector<const crypto::NoteSigner*> both = {&files.officer, &files.operator_key};
  REQUIRE(files.Look() == 1);
  files.Write(files.config.policy, Files::Site(2, 60), both);
  REQUIRE(files.Look() == 1);
  files.Write(files.config.policy, Files::Site(1), both);
  REQUIRE(files.Look() == 1);
  CHECK_FALSE(files.keeper->NextLook().has_value());
  files.clock.SetWall(kPolicyNow + hours(25));
  files.Restart();

  files.Write(files.config.policy, Files::Site(2, 60), both);
  CHECK(files.Look() == 1);
  CHECK(files.Count(audit::EventType::kPolicyWaiting) == 2);
}

TEST_CASE("PolicyKeeper: a file that is older, changed or unreadable leaves what is in force") {
  Files files;
  files.Write(files.config.policy, Files::Site(3), {&files.officer, &files.operator_key});
  REQUIRE(files.Look() == 3);
  struct Case {
    const char* name;
    std::function<void()> change;
    const char* reason;
  };
  const std::vector<const crypto::NoteSigner*> both = {&files.officer, &files.operator_key};
  const Case cases[] = {
      {"an older version, well signed",
       [&] { files.Write(files.config.policy, Files::Site(2), both); }, "POLICY-ROLLBACK"},
      {"the same number, other words",
       [&] { files.Write(files.config.policy, Files::Site(3, 20), both); }, "POLICY-ROLLBACK"},
      {"no policy", [&] { files.Write(files.config.policy, "[policy]\n", both); }, "RULE-INVALID"},
      {"gone", [&] { Must(RemoveFile(files.config.policy)); }, "RULE-INVALID"},
      {"changed after it was signed",
       [&] {
         files.Write(files.config.policy, Files::Site(4, 20), both);
         Must(WriteFileDurably(files.config.policy, AsBytes(Files::Site(4, 21))));
       },
       "POLICY-SIGNATURE"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::size_t before = files.Count(audit::EventType::kPolicyRefused, c.reason);
    c.change();
    CHECK(files.Look() == 3);
    CHECK(files.Count(audit::EventType::kPolicyRefused, c.reason) == before + 1);
  }
  files.Restart();
  CHECK(files.Look() == 3);  // the text itself is kept
}

TEST_CASE("PolicyKeeper: newer legal facts need one signature and do not wait") {
  Files files;
  REQUIRE(files.Look() == 1);
  std::string facts = HeartText("legal-facts.toml");
  facts.replace(facts.find("\nversion = 1\n"), 13, "\nversion = 2\n");
  files.Write(files.config.legal_facts, facts, {&files.officer});
  CHECK(Must(files.keeper->Look()).facts.version == 1);
  files.Write(files.config.legal_facts, facts, {&files.office});

  CHECK(Must(files.keeper->Look()).facts.version == 2);
}

TEST_CASE("PolicyFolders: a folder that holds anything else is not to be read in") {
  const Files files;
  CHECK(PolicyFolders(files.config) == std::vector<std::string>{files.desk.Beside("policies")});

  Must(WriteFileDurably(files.desk.Beside("policies/data.csv"), {}));
  CHECK(PolicyFolders(files.config).empty());
}

}  // namespace domicile::site_agent

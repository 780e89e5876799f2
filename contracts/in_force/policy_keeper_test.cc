#include "contracts/in_force/policy_keeper.h"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <doctest/doctest.h>

#include "audit/log.h"
#include "base/file.h"
#include "base/sqlite.h"
#include "contracts/in_force/policy_store.h"
#include "contracts/policy_signature.h"
#include "crypto/sha256.h"
#include "policy/language/parse.h"
#include "tests/support/example_approval.h"
#include "tests/support/example_log.h"

namespace domicile::contracts {
namespace {

using std::chrono::hours;
using test::Must;

const std::string kHeart = DOMICILE_SOURCE_DIR "/deploy/examples/heart/";
const WallTime kNow = Must(ParseTime("2026-12-01T09:00:00Z"));

std::string HeartText(const std::string& name) {
  return Must(ReadFile(kHeart + name, std::uint64_t{1} << 20U));
}

// A database in memory with a log, whose sites are those of the example.
class Books final : public PolicyBooks {
 public:
  explicit Books(std::vector<std::string> sites) : sites_(std::move(sites)) {
    const std::array<std::string_view, 2> tables = {audit::kLogTables, kPolicyTables};
    Must(db_.Migrate(1, tables));
    log_.emplace(Must(audit::Log::Open(db_, signer_, clock_, random_)));
  }
  StatusOr<PolicyLife> Find(std::string_view source) override {
    return FindPolicyLife(db_, source);
  }
  Status Record(std::string_view source, const PolicyLife& life,
                const StatusOr<audit::Event>& leaf) override {
    RETURN_IF_ERROR(leaf.status());
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db_));
    RETURN_IF_ERROR(PutPolicyLife(db_, source, life));
    RETURN_IF_ERROR(log_->Append(*leaf).status());
    return transaction.Commit();
  }
  StatusOr<std::vector<policy::Policy>> Sites() override {
    std::vector<policy::Policy> sites;
    for (const std::string& site : sites_) {
      const std::string file = "site." + site + ".policy.toml";
      sites.push_back(
          Must(policy::ParsePolicy(HeartText(file), file, policy::PolicySource::kSite)));
    }
    return sites;
  }
  std::uint64_t NumLeaves() { return Must(log_->Size()); }
  audit::Event Leaf(std::uint64_t index) {
    return Must(audit::ParseLeaf(Must(log_->LeafWithProof(index)).leaf)).event;
  }

 private:
  std::vector<std::string> sites_;
  Database db_ = Must(Database::Open(":memory:", Database::Mode::kCreate));
  crypto::NoteSigner signer_ = test::ExampleSigner(test::kSiteLog);
  FakeClock clock_{test::kExampleTime};
  SeededRandom random_{7};
  std::optional<audit::Log> log_;
};

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string WithVersion(const std::string& text, int version) {
  return Replaced(text, "\nversion = 1\n", "\nversion = " + std::to_string(version) + "\n");
}

// Without the fact of this id.
std::string WithoutFact(const std::string& text, const std::string& id) {
  const std::size_t named = text.find("id = \"" + id + "\"");
  REQUIRE(named != std::string::npos);
  const std::size_t begin = text.rfind("[[fact]]", named);
  const std::size_t next = text.find("[[fact]]", named);
  return text.substr(0, begin) + (next == std::string::npos ? "" : text.substr(next));
}

// The files of a site in Budapest, signed by its officer, its operator and the federation's office.
struct Files {
  test::TempFolder folder;
  FakeClock clock{kNow};
  crypto::NoteSigner officer = test::ExamplePerson("dpo-budapest", 1);
  crypto::NoteSigner operator_key = test::ExamplePerson("operator-budapest", 2);
  crypto::NoteSigner office = test::ExamplePerson("federation-office", 3);
  std::string site = folder.File("site.toml");
  std::string federation = folder.File("federation.toml");
  std::string facts = folder.File("facts.toml");
  Books books{{"budapest"}};
  PolicyKeeperOptions options;
  std::optional<PolicyKeeper> keeper;

  Files() {
    options = {.files = {{"facts", policy::PolicySource::kNone, facts, {office.Verifier()}},
                         {"federation",
                          policy::PolicySource::kFederation,
                          federation,
                          {office.Verifier()}},
                         {"site",
                          policy::PolicySource::kSite,
                          site,
                          {officer.Verifier(), operator_key.Verifier()}}},
               .are_unsigned = false,
               .jurisdiction = "HU"};
    Write(federation, HeartText("federation.policy.toml"), {&office});
    Write(facts, HeartText("legal-facts.toml"), {&office});
    Write(site, Site(1), {&officer, &operator_key});
    Restart();
  }
  // The site policy, of another version and with another number of rounds.
  static std::string Site(int version, int rounds = 40) {
    return Replaced(WithVersion(HeartText("site.budapest.policy.toml"), version),
                    "\nlimit.rounds = 40\n", "\nlimit.rounds = " + std::to_string(rounds) + "\n");
  }
  void Write(const std::string& file, const std::string& text,
             const std::vector<const crypto::NoteSigner*>& signers) const {
    Must(WriteFileDurably(file, AsBytes(text)));
    std::string note;
    for (const crypto::NoteSigner* signer : signers) {
      const std::string one =
          test::SignedAt(*signer, PolicySignatureText(crypto::Sha256(AsBytes(text))), kNow);
      note = note.empty() ? one : Must(crypto::MergeNotes(note, one));
    }
    Must(WriteFileDurably(file + ".sig", AsBytes(note)));
  }
  void Restart() { keeper.emplace(options, books, clock); }
  std::uint64_t Look() { return Must(keeper->Look()).site.identity.version; }
  std::uint64_t LookAtFacts() { return Must(keeper->Look()).facts.version; }
  // How many leaves of this type with this code there are.
  std::size_t Count(audit::EventType type, std::string_view reason = {}) {
    std::size_t count = 0;
    for (std::uint64_t i = 0; i < books.NumLeaves(); ++i) {
      const audit::Event leaf = books.Leaf(i);
      const Json* code = leaf.body().Find("reason");
      if (leaf.type() == type &&
          (reason.empty() || (code != nullptr && *code->TryString() == reason))) {
        ++count;
      }
    }
    return count;
  }
};

TEST_CASE("PolicyKeeper: the first versions need the threshold, and are in force at once") {
  Files files;
  CHECK(files.Look() == 1);
  CHECK(files.Count(audit::EventType::kPolicyLoaded) == 2);
  CHECK(files.Count(audit::EventType::kFactsLoaded) == 1);

  Files half;
  half.Write(half.site, Files::Site(1), {&half.officer});
  CHECK(half.keeper->Look().status().code() == StatusCode::kUnauthenticated);
  Files none;
  Must(RemoveFile(none.facts + ".sig"));
  CHECK(none.keeper->Look().status().code() == StatusCode::kUnauthenticated);
  none.options.are_unsigned = true;
  none.Restart();
  CHECK(none.Look() == 1);
}

TEST_CASE("PolicyKeeper: what allows less is in force at once, by one signature") {
  Files files;
  REQUIRE(files.Look() == 1);
  files.Write(files.site, Files::Site(2, 20), {&files.officer});

  CHECK(files.Look() == 2);
  CHECK(files.Count(audit::EventType::kPolicyLoaded) == 3);
  files.Restart();
  CHECK(files.Look() == 2);
}

TEST_CASE("PolicyKeeper: what allows more needs the threshold and waits, over restarts") {
  Files files;
  REQUIRE(files.Look() == 1);
  files.Write(files.site, Files::Site(2, 60), {&files.officer});
  CHECK(files.Look() == 1);
  CHECK(files.Count(audit::EventType::kPolicyRefused, "POLICY-SIGNATURE") == 1);

  files.Write(files.site, Files::Site(2, 60), {&files.officer, &files.operator_key});
  CHECK(files.Look() == 1);
  CHECK(files.Count(audit::EventType::kPolicyWaiting) == 1);
  REQUIRE(files.keeper->NextLook().has_value());
  const WallTime due = *files.keeper->NextLook();
  CHECK(due >= kNow + hours(24));
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
  files.Write(files.site, Files::Site(2, 60), both);
  REQUIRE(files.Look() == 1);
  files.Write(files.site, Files::Site(1), both);
  REQUIRE(files.Look() == 1);
  CHECK_FALSE(files.keeper->NextLook().has_value());
  files.clock.SetWall(kNow + hours(25));
  files.Restart();

  files.Write(files.site, Files::Site(2, 60), both);
  CHECK(files.Look() == 1);
  CHECK(files.Count(audit::EventType::kPolicyWaiting) == 2);
}

TEST_CASE("PolicyKeeper: a file that is older, changed or unreadable leaves what is in force") {
  Files files;
  files.Write(files.site, Files::Site(3), {&files.officer, &files.operator_key});
  REQUIRE(files.Look() == 3);
  struct Case {
    const char* name;
    std::function<void()> change;
    const char* reason;
  };
  const std::vector<const crypto::NoteSigner*> both = {&files.officer, &files.operator_key};
  const Case cases[] = {
      {"an older version, well signed", [&] { files.Write(files.site, Files::Site(2), both); },
       "POLICY-ROLLBACK"},
      {"the same number, other words", [&] { files.Write(files.site, Files::Site(3, 20), both); },
       "POLICY-ROLLBACK"},
      {"no policy", [&] { files.Write(files.site, "[policy]\n", both); }, "RULE-INVALID"},
      {"gone", [&] { Must(RemoveFile(files.site)); }, "RULE-INVALID"},
      {"changed after it was signed",
       [&] {
         files.Write(files.site, Files::Site(4, 20), both);
         Must(WriteFileDurably(files.site, AsBytes(Files::Site(4, 21))));
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

TEST_CASE("PolicyKeeper: legal facts that allow nothing more are in force at once") {
  Files files;
  REQUIRE(files.Look() == 1);
  const std::string text = HeartText("legal-facts.toml");
  files.Write(files.facts, WithVersion(text, 2), {&files.officer});
  CHECK(files.LookAtFacts() == 1);  // the officer does not answer for the law
  CHECK(files.Count(audit::EventType::kPolicyRefused, "POLICY-SIGNATURE") == 1);
  files.Write(files.facts, WithVersion(text, 2), {&files.office});
  CHECK(files.LookAtFacts() == 2);

  // Vouched for for longer, and a decision revoked.
  files.Write(
      files.facts,
      WithoutFact(Replaced(WithVersion(text, 3), "expires = 2027-10-31", "expires = 2027-12-31"),
                  "adequacy-eu-ch"),
      {&files.office});
  CHECK(files.LookAtFacts() == 3);
  CHECK(files.Count(audit::EventType::kFactsLoaded) == 3);
}

TEST_CASE("PolicyKeeper: legal facts that allow more wait, and older ones stay away") {
  Files files;
  const std::string text = HeartText("legal-facts.toml");
  files.Write(files.facts, WithoutFact(text, "adequacy-eu-ch"), {&files.office});
  REQUIRE(files.LookAtFacts() == 1);
  files.Write(files.facts, WithVersion(text, 2), {&files.office});

  CHECK(files.LookAtFacts() == 1);
  CHECK(files.Count(audit::EventType::kPolicyWaiting) == 1);
  CHECK(files.keeper->NextLook() == kNow + kDefaultCooldown);
  files.clock.SetWall(kNow + kDefaultCooldown);
  CHECK(files.LookAtFacts() == 2);

  files.Write(files.facts, WithoutFact(text, "adequacy-eu-ch"), {&files.office});
  CHECK(files.LookAtFacts() == 2);
  CHECK(files.Count(audit::EventType::kPolicyRefused, "POLICY-ROLLBACK") == 1);
}

TEST_CASE("PolicyKeeper: a bloc with one member more waits, with one less it does not") {
  Files files;
  const std::string text = HeartText("legal-facts.toml");
  REQUIRE(files.LookAtFacts() == 1);
  const std::string member = "\"IS\", \"LI\", \"NO\"";
  files.Write(files.facts, WithVersion(Replaced(text, member, member + ", \"CH\""), 2),
              {&files.office});
  CHECK(files.LookAtFacts() == 1);
  files.Write(files.facts, WithVersion(Replaced(text, member, "\"LI\", \"NO\""), 2),
              {&files.office});
  CHECK(files.LookAtFacts() == 2);
}

// What an aggregator asks is asked of every site that it knows.
TEST_CASE(
    "PolicyKeeper: of a program without a site policy, without known sites nothing can be told") {
  for (const bool has_sites : {true, false}) {
    CAPTURE(has_sites);
    Files files;
    Books books(has_sites ? std::vector<std::string>{"budapest", "zurich-basel"}
                          : std::vector<std::string>{});
    const std::string file = files.folder.File("aggregator.toml");
    const std::string text = HeartText("aggregator.policy.toml");
    files.options.files[2] = {
        "aggregator", policy::PolicySource::kAggregator, file, {files.office.Verifier()}};
    PolicyKeeper keeper(files.options, books, files.clock);
    files.Write(file, text, {&files.office});
    REQUIRE(Must(keeper.Look()).aggregator.identity.version == 1);

    files.Write(file, Replaced(WithVersion(text, 2), "\"delta.plain\", ", ""), {&files.office});
    CHECK(Must(keeper.Look()).aggregator.identity.version == (has_sites ? 2 : 1));
    files.Write(file, Replaced(WithVersion(text, 3), "limit.rounds = 200", "limit.rounds = 300"),
                {&files.office});
    CHECK(Must(keeper.Look()).aggregator.identity.version == (has_sites ? 2 : 1));
    CHECK(keeper.NextLook() == kNow + kDefaultCooldown);
  }
}

}  // namespace
}  // namespace domicile::contracts

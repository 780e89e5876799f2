#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/plan_words.h"
#include "contracts/grant.h"
#include "crypto/key_file.h"

namespace domicile::cli {
namespace {

using policy::Reason;

const WallTime kNow = *ParseTime("2026-12-01T00:00:00Z");

std::string HeartJob() {
  return std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/heart/job.toml";
}

struct Outcome {
  int exit = -1;
  std::string out;
  std::string err;

  bool Says(std::string_view text) const { return out.find(text) != std::string::npos; }
  bool Complains(std::string_view text) const { return err.find(text) != std::string::npos; }
};

Digest Filled(std::uint8_t byte) {
  Digest digest;
  digest.bytes.fill(byte);
  return digest;
}

// An office without a network: a folder with a request and two officers' keys.
class Office {
 public:
  Office() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "domicile-grant-test-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    body.federation = "fed.example";
    body.site = SiteId::Parse("charite").value();
    body.job = JobId::Parse("heart-1").value();
    body.plan = contracts::PlanDigest(ReadPlan(HeartJob()).value());
    body.trainer = Filled(2);
    body.base_model = Filled(3);
    body.dataset = DatasetAlias::Parse("heart").value();
    body.dataset_commitment = Filled(4);
    body.effective_policy = Filled(5);
    body.not_after = kNow + std::chrono::days(30);
    AddKey("officer", 1);
    AddKey("head", 2);
    Write("request", contracts::GrantText(body));
  }
  Office(const Office&) = delete;
  Office& operator=(const Office&) = delete;
  ~Office() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string Path(std::string_view name) const { return JoinPath(folder_, name); }
  void Write(std::string_view name, std::string_view text) {
    REQUIRE(WriteFileDurably(Path(name), AsBytes(text)).ok());
  }
  std::string Read(std::string_view name) { return ReadFile(Path(name), 1U << 20U).value(); }
  bool Has(std::string_view name) const { return FileExists(Path(name)); }

  void AddKey(const std::string& name, std::uint64_t seed, const std::string& file = {}) {
    SeededRandom random(seed);
    const crypto::NoteSigner signer =
        crypto::NoteSigner::Generate("fed.example/site/charite/" + name, random).value();
    REQUIRE(crypto::WriteNoteKey(Path((file.empty() ? name : file) + ".key"), signer).ok());
    verifiers.push_back(signer.Verifier());
  }

  // `args` with @NAME standing for a path in the folder.
  Outcome Run(const std::string& args) {
    std::istringstream words(args);
    std::vector<std::string> list;
    for (std::string word; words >> word;) {
      list.push_back(word.starts_with('@') ? Path(word.substr(1)) : word);
    }
    std::ostringstream out;
    std::ostringstream err;
    Context context{.clock = clock_, .random = random_, .out = out, .err = err};
    const int exit = RunProgram(list, context);
    return {exit, out.str(), err.str()};
  }

  contracts::GrantBody body;
  std::vector<crypto::NoteVerifier> verifiers;

 private:
  std::string folder_;
  FakeClock clock_{kNow};
  SystemRandom random_;
};

TEST_CASE("job plan: says what a job asks, in words") {
  Office office;

  const Outcome outcome = office.Run("job plan " + HeartJob());

  CHECK(outcome.exit == 0);
  CHECK(outcome.Says("plan \"Heart disease at four hospitals\""));
  CHECK(outcome.Says("digest       e969 13b6 4f21"));
  CHECK(outcome.Says("purpose      scientific_research"));
  CHECK(outcome.Says("reads        age, trestbps, chol, "));
  CHECK(outcome.Says("label        num > 0"));
  CHECK(outcome.Says("recipients   sites, operator"));
  CHECK(outcome.Says("view         plain: the aggregator sees the numbers of this site alone"));
  CHECK(outcome.Says("training     40 rounds of 10 steps, all rows in each"));
  CHECK(outcome.Says("contributors at least 4, at most 16"));
  CHECK(outcome.Says("once         39 numbers"));                     // 3 * 13 inputs
  CHECK(outcome.Says("each round   14 numbers of at most 36 bits"));  // 2 * 2^34 + 1 levels
  CHECK(outcome.Says("norm at most 4; and 3 metrics"));
  CHECK(outcome.Says("at the end   2004 numbers"));  // 2 classes * 1000 bins, 4 metrics
  CHECK(outcome.Says("in all       2723 numbers"));  // 39 + 40 * 17 + 2004
}

TEST_CASE("job plan: the written plan is its exact text and reads as the same plan") {
  Office office;

  REQUIRE(office.Run("job plan " + HeartJob() + " -o @plan.json").exit == 0);
  const Outcome outcome = office.Run("job plan @plan.json --json");

  CHECK(office.Read("plan.json") == contracts::PlanText(ReadPlan(HeartJob()).value()));
  CHECK(outcome.exit == 0);
  const Json facts = ParseJson(outcome.out).value();
  CHECK(*facts.Find("digest")->TryString() == PrintHex(office.body.plan));
  CHECK(*facts.Find("leaves")->Find("in_all")->TryInt() == 2723);
  CHECK(PrintJson(*facts.Find("plan")) == office.Read("plan.json"));
}

TEST_CASE("job plan: a wrong job file is named with its place, and nothing is written") {
  Office office;
  office.Write("job.toml", "name = 1\n");
  office.Write("plan.json", "{}");

  const Outcome job = office.Run("job plan @job.toml -o @out");
  const Outcome plan = office.Run("job plan @plan.json");
  const Outcome absent = office.Run("job plan @absent.toml");

  CHECK(job.exit == 2);
  CHECK(job.Complains("job.toml:1:8: `name` must be a string"));
  CHECK_FALSE(office.Has("out"));
  CHECK(plan.exit == 2);
  CHECK(plan.Complains("plan.json`: `plan.v` is missing"));
  CHECK(absent.exit == 3);
}

TEST_CASE("job plan: texts that would drive a terminal are shown as what they are") {
  Office office;
  std::string job = ReadFile(HeartJob(), 1U << 20U).value();
  const std::size_t at = job.find("\"age\"");
  office.Write("job.toml", job.replace(at, 5, "\"\xC3\xA4ge\""));

  CHECK(office.Run("job plan @job.toml").Says("reads        \\xc3\\xa4ge, "));
}

TEST_CASE("job approve: shows what is approved, and writes a grant that verifies") {
  Office office;

  const Outcome outcome = office.Run("job approve --request @request --plan " + HeartJob() +
                                     " --key @officer.key -o @grant");

  CHECK(outcome.exit == 0);
  CHECK(outcome.Says("approval for site charite of federation fed.example"));
  CHECK(outcome.Says("job          heart-1"));
  CHECK(outcome.Says("plan         e969 13b6 4f21"));
  CHECK(outcome.Says("until        2026-12-31T00:00:00.000Z"));
  CHECK(outcome.Says("in all       2723 numbers"));
  CHECK(outcome.Says("signed by fed.example/site/charite/officer"));
  CHECK_FALSE(outcome.Says("was not shown"));
  const contracts::GrantCheck check =
      contracts::VerifyGrant(office.Read("grant"), office.verifiers, 1, office.body, kNow);
  CHECK(check.reason == Reason::kNone);
  CHECK(check.body == office.body);
}

TEST_CASE("job approve: two keys make a grant of two persons; days replace what was proposed") {
  Office office;

  const Outcome outcome = office.Run(
      "job approve --request @request --key @officer.key --key @head.key --days 7 --json -o "
      "@grant");

  REQUIRE(outcome.exit == 0);
  const Json facts = ParseJson(outcome.out).value();
  CHECK(facts.Find("signers")->TryArray()->size() == 2);
  CHECK(*facts.Find("not_after")->TryString() == "2026-12-08T00:00:00.000Z");
  CHECK_FALSE(*facts.Find("plan_shown")->TryBool());
  const std::string note = office.Read("grant");
  CHECK(contracts::VerifyGrant(note, office.verifiers, 2, office.body, kNow).reason ==
        Reason::kNone);
  CHECK(contracts::VerifyGrant(note, office.verifiers, 2, office.body, kNow + std::chrono::days(7))
            .reason == Reason::kGrantExpired);
}

TEST_CASE("job approve: without the plan it says that only a digest is approved") {
  Office office;

  CHECK(office.Run("job approve --request @request --key @officer.key -o @grant")
            .Says("only its digest is approved"));
}

TEST_CASE("job approve: another plan than the request's is not signed") {
  Office office;
  office.body.plan = Filled(9);
  office.Write("request", contracts::GrantText(office.body));

  const Outcome outcome = office.Run("job approve --request @request --plan " + HeartJob() +
                                     " --key @officer.key -o @grant");

  CHECK(outcome.exit == 1);
  CHECK(outcome.Complains("is not the plan of this request"));
  CHECK(outcome.Complains("0909 0909"));
  CHECK(outcome.Complains("e969 13b6"));
  CHECK_FALSE(office.Has("grant"));
}

TEST_CASE("job approve: what cannot be signed leaves no file and says why") {
  Office office;
  office.AddKey("officer", 3, "other");
  office.Write("broken", "{\"kind\":\"grant\"}\n");
  contracts::GrantBody body = office.body;
  body.not_after = kNow;
  office.Write("expired", contracts::GrantText(body));
  body.not_after = kNow + std::chrono::days(367);
  office.Write("endless", contracts::GrantText(body));
  struct Case {
    std::string name;
    std::string args;
    int exit;
    std::string want;
  };
  const Case cases[] = {
      {"no request", "--request @absent --key @officer.key", 3, "absent"},
      {"no grant text", "--request @broken --key @officer.key", 2, "request `"},
      {"expired proposal", "--request @expired --key @officer.key", 2, "give --days N"},
      {"endless proposal", "--request @endless --key @officer.key", 2, "more than 366 days"},
      {"no key", "--request @request", 2, "--key is required"},
      {"absent key", "--request @request --key @absent.key", 3, "absent.key"},
      {"no such key", "--request @request --key @request", 2, ""},
      {"one person twice", "--request @request --key @officer.key --key @other.key", 2, "one name"},
      {"the same key twice", "--request @request --key @officer.key --key @officer.key", 2, ""},
      {"no days", "--request @request --key @officer.key --days 0", 2, "--days"},
      {"years", "--request @request --key @officer.key --days 367", 2, "--days"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Outcome outcome = office.Run("job approve -o @grant " + c.args);
    CAPTURE(outcome.err);
    CHECK(outcome.exit == c.exit);
    CHECK(outcome.Complains(c.want));
    CHECK_FALSE(office.Has("grant"));
  }
}

}  // namespace
}  // namespace domicile::cli

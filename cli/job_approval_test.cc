#include <doctest/doctest.h>

#include "cli/proquint.h"
#include "cli/testing_office.h"

namespace domicile::cli {
namespace {

using policy::Reason;

TEST_CASE("job approve: shows what is approved, and writes a grant that verifies") {
  Office office;

  const Outcome outcome = office.Run("job approve --request @request --plan " + HeartJob() +
                                     " --key @officer.key -o @grant");

  CHECK(outcome.exit == 0);
  CHECK(outcome.Says("approval for site charite of federation fed.example"));
  CHECK(outcome.Says("job          heart-1"));
  CHECK(outcome.Says("plan         3afa 26fd 108d"));
  CHECK(outcome.Says("until        2026-12-31T00:00:00.000Z"));
  CHECK(outcome.Says("in all       2723 numbers"));
  CHECK(outcome.Says("signed by fed.example/site/charite/officer"));
  CHECK_FALSE(outcome.Says("was not shown"));
  const contracts::GrantCheck check = office.Verify(1, kNow);
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
  CHECK(office.Verify(2, kNow).reason == Reason::kNone);
  CHECK(office.Verify(2, kNow + std::chrono::days(7)).reason == Reason::kGrantExpired);
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
  CHECK(outcome.Complains("3afa 26fd"));
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
      {"no key", "--request @request", 2, "give --key FILE"},
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

TEST_CASE(
    "job request: the words for the telephone, what is asked, and the text to sign elsewhere") {
  Office office;
  office.Ask();

  const Outcome outcome = office.Run("job request heart-1 --dir @. -o @taken");

  CHECK(outcome.exit == 0);
  CHECK(outcome.Says("approval for site charite"));
  CHECK(outcome.Says("in words     " + SpokenDigest(contracts::GrantDigest(office.body))));
  CHECK(outcome.Says("at all sites " + SpokenDigest(contracts::SharedDigest(office.body))));
  CHECK(outcome.Says("in all       2723 numbers"));
  CHECK(outcome.Says("no job of this family was approved here before"));
  CHECK(office.Read("taken") == contracts::GrantText(office.body));
  CHECK(office.Run("job request heart-2 --dir @.").exit == 3);
  CHECK(office.Run("job request Heart! --dir @.").exit == 2);
}

TEST_CASE("job approve ID: into the agent's folder; who comes second signs the same text") {
  Office office;
  office.Ask();

  REQUIRE(office.Run("job approve heart-1 --dir @. --key @officer.key --days 7").exit == 0);
  const Outcome second = office.Run("job approve heart-1 --dir @. --key @head.key");

  CHECK(second.exit == 0);
  CHECK(second.Says("until        2026-12-08T00:00:00.000Z"));
  const contracts::GrantCheck check = office.Verify(2, kNow, "grants/heart-1.grant");
  CHECK(check.reason == Reason::kNone);
  CHECK(check.approvals.size() == 2);
}

TEST_CASE("job approve ID: approvals until different times are not put together, and it says so") {
  Office office;
  office.Ask();
  REQUIRE(office.Run("job approve heart-1 --dir @. --key @officer.key --days 7").exit == 0);

  const Outcome other = office.Run("job approve heart-1 --dir @. --key @head.key --days 8");

  CHECK(other.exit == 2);
  CHECK(other.Complains("all must sign the same text"));
  CHECK(office.Verify(1, kNow, "grants/heart-1.grant").reason == Reason::kNone);
}

TEST_CASE("job approve ID: an approval of what was asked before gives way to the one of now") {
  Office office;
  office.Ask();
  REQUIRE(office.Run("job approve heart-1 --dir @. --key @officer.key").exit == 0);
  office.body.effective_policy = Filled(8);
  office.Ask();

  REQUIRE(office.Run("job approve heart-1 --dir @. --key @officer.key").exit == 0);

  CHECK(office.Verify(1, kNow, "grants/heart-1.grant").reason == Reason::kNone);
}

TEST_CASE("job approve --signature: a note signed elsewhere, for this request and no other") {
  Office office;
  office.Ask();
  REQUIRE(
      office.Run("job approve --request @requests/heart-1.request --key @head.key -o @sig").exit ==
      0);
  contracts::GrantBody other = office.body;
  other.trainer = Filled(9);
  office.Write("other", contracts::GrantText(other));
  REQUIRE(office.Run("job approve --request @other --key @head.key -o @other.sig").exit == 0);

  const Outcome taken = office.Run("job approve heart-1 --dir @. --signature @sig");
  const Outcome refused = office.Run("job approve heart-1 --dir @. --signature @other.sig");

  CHECK(taken.exit == 0);
  CHECK(office.Verify(1, kNow, "grants/heart-1.grant").reason == Reason::kNone);
  CHECK(refused.exit == 2);
  CHECK(refused.Complains("approves something else"));
}

TEST_CASE("job approve --as: the raw signature of a card over the bytes it was given") {
  Office office;
  office.Ask();
  REQUIRE(office.Run("job request heart-1 --dir @. --to-sign -o @bytes").exit == 0);
  const std::string bytes = office.Read("bytes");
  const std::string text = contracts::GrantText(office.body);
  REQUIRE(bytes == "cosignature/v1\ntime 1796083200\n" + text);
  // What the card computes: the signature alone, out of the note that the same key makes.
  const crypto::NoteSigner card = crypto::ReadNoteKey(office.Path("head.key")).value();
  const std::string note = card.Cosign(text, 1796083200).value();
  const std::size_t space = note.rfind(' ');
  const Bytes line =
      ParseBase64(std::string_view(note).substr(space + 1, note.size() - space - 2)).value();
  const std::string raw(line.begin() + 12, line.end());
  office.Write("raw", raw);
  office.Write("base64", PrintBase64(AsBytes(raw)) + "\n");
  REQUIRE(crypto::WriteNotePublicKey(office.Path("head.pub"), card.Verifier()).ok());
  REQUIRE(crypto::WriteNotePublicKey(office.Path("officer.pub"), office.verifiers[0]).ok());
  const std::string how = "job approve heart-1 --dir @. --signed @bytes --signature ";

  CHECK(office.Run(how + "@raw --as @officer.pub").exit == 3);  // not this person's
  CHECK_FALSE(office.Has("grants/heart-1.grant"));
  CHECK(office.Run(how + "@raw --as @head.pub").exit == 0);
  CHECK(office.Verify(1, kNow, "grants/heart-1.grant").reason == Reason::kNone);
  CHECK(office.Run(how + "@base64 --as @head.pub").exit == 0);
  CHECK(office.Run(how + "@bytes --as @head.pub").exit == 2);
  CHECK(office.Run("job approve heart-1 --dir @. --signature @raw --as @head.pub").exit == 2);
  office.Write("bytes", bytes + "x");
  CHECK(office.Run(how + "@raw --as @head.pub").exit == 2);
}

TEST_CASE("job approve ID: shows what is not as it was when this family was approved last") {
  Office office;
  office.Ask();
  REQUIRE(office.Run("job approve heart-1 --dir @. --key @officer.key").exit == 0);
  std::string job = ReadFile(HeartJob(), 1U << 20U).value();
  job.replace(job.find("count = 40"), 10, "count = 60");
  office.Write("longer.toml", job);
  office.body.job = JobId::Parse("heart-2").value();
  office.body.plan = contracts::PlanDigest(ReadPlan(office.Path("longer.toml")).value());
  office.body.trainer = Filled(7);
  office.Ask("longer.toml");

  const Outcome outcome = office.Run("job approve heart-2 --dir @. --key @officer.key");

  CHECK(outcome.exit == 0);
  CHECK(outcome.Says("compared with job heart-1, approved last: now, and in brackets then"));
  CHECK(outcome.Says("  rounds: 60 (40)"));
  CHECK(outcome.Says("  numbers in all: 3063 (2723)"));
  CHECK(outcome.Says("  trainer: another than was approved then"));
  CHECK_FALSE(outcome.Says("purpose: "));
  CHECK_FALSE(outcome.Says("first model: "));
}

TEST_CASE("job deny: leaves a word that the agent and the trainer find") {
  Office office;
  office.Ask();

  const Outcome first = office.Run("job deny heart-1 --dir @.");

  CHECK(first.exit == 0);
  CHECK(first.Says("job heart-1: denied"));
  CHECK(office.Has("grants/heart-1.deny"));
  REQUIRE(office.Run("job approve heart-1 --dir @. --key @officer.key").exit == 0);
  CHECK(office.Run("job deny heart-1 --dir @.").Says("the approval is taken back"));
  CHECK(office.Run("job deny ../x --dir @.").exit == 2);
}

}  // namespace
}  // namespace domicile::cli

#include "contracts/grant.h"

#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/json.h"
#include "tests/support/example_approval.h"

namespace domicile::contracts {
namespace {

using policy::ApprovalRole;
using policy::Reason;

WallTime At(std::string_view text) { return ParseTime(text).value(); }

Digest Filled(std::uint8_t byte) {
  Digest digest;
  digest.bytes.fill(byte);
  return digest;
}

GrantBody Wanted() {
  return {.federation = "example.org",
          .site = SiteId::Parse("cleveland").value(),
          .job = JobId::Parse("heart-1").value(),
          .plan = Filled(1),
          .trainer = Filled(2),
          .base_model = Filled(3),
          .dataset = DatasetAlias::Parse("heart").value(),
          .dataset_commitment = Filled(4),
          .effective_policy = Filled(5),
          .not_after = At("2026-12-30T00:00:00Z")};
}

crypto::NoteSigner Signer(std::string_view name, std::uint64_t seed) {
  return test::ExamplePerson(name, seed);
}

const WallTime kNow = At("2026-12-01T00:00:00Z");
const WallTime kSigned = At("2026-11-30T00:00:00Z");

// Two approvers of the site, and a stranger.
struct Keys {
  crypto::NoteSigner officer = Signer("example.org/site/cleveland/officer", 1);
  crypto::NoteSigner head = Signer("example.org/site/cleveland/head", 2);
  crypto::NoteSigner stranger = Signer("example.org/site/budapest/officer", 3);

  ApprovalRules Rules(std::uint32_t persons = 1) const {
    return {.approvers = {test::ApproverOf(officer, ApprovalRole::kDpo, "charite"),
                          test::ApproverOf(head, ApprovalRole::kOperator, "charite")},
            .persons = persons,
            .needs = {},
            .max_age = {}};
  }
};

Reason Why(const std::string& note, const ApprovalRules& rules, WallTime now = kNow) {
  return VerifyGrant(note, rules, Wanted(), now).reason;
}

TEST_CASE("GrantText: one line of canonical JSON, and back") {
  const std::string text = GrantText(Wanted());

  CHECK(text == "{\"base_model\":\"" + PrintHex(Filled(3)) +
                    "\",\"dataset\":\"heart\",\"dataset_commitment\":\"" + PrintHex(Filled(4)) +
                    "\",\"effective_policy\":\"" + PrintHex(Filled(5)) +
                    "\",\"federation\":\"example.org\",\"job\":\"heart-1\",\"kind\":\"grant\","
                    "\"not_after\":\"2026-12-30T00:00:00.000Z\",\"plan\":\"" +
                    PrintHex(Filled(1)) + "\",\"site\":\"cleveland\",\"trainer\":\"" +
                    PrintHex(Filled(2)) + "\",\"v\":1}\n");
  CHECK(GrantBodyFromText(text).value() == Wanted());
}

TEST_CASE("GrantBodyFromText: other texts are refused, naming the field") {
  struct Case {
    std::string name;
    std::string from;
    std::string to;
    const char* want;
  };
  const Case cases[] = {
      {"no newline", "}\n", "}", "ends in a newline"},
      {"two newlines", "}\n", "}\n\n", "canonical"},
      {"a blank", "\"v\":1", "\"v\": 1", "canonical"},
      {"another kind", "\"kind\":\"grant\"", "\"kind\":\"roster\"", "`grant.kind` must be `grant`"},
      {"another version", "\"v\":1", "\"v\":2", "`grant.v`"},
      {"unknown key", "\"kind\":\"grant\"", "\"kind\":\"grant\",\"kine\":1", "unknown key `kine`"},
      {"missing key", "\"job\":\"heart-1\",", "", "`grant.job` is missing"},
      {"zero digest", PrintHex(Filled(1)), std::string(64, '0'), "`grant.plan` must be 64"},
      {"short digest", PrintHex(Filled(2)), "02", "`grant.trainer` must be 64"},
      {"capital digits", PrintHex(Filled(3)), std::string(64, 'A'),
       "`grant.base_model` must be 64"},
      {"federation", "example.org", "Example.org", "`grant.federation` must be"},
      {"site", "cleveland", "cleve/land", "`grant.site` is wrong"},
      {"time without milliseconds", "00.000Z", "00Z", "`grant.not_after` must be"},
      {"time with microseconds", "00.000Z", "00.000001Z", "`grant.not_after` must be"},
      {"no time", "2026-12-30T00:00:00.000Z", "never", "`grant.not_after` must be"},
      {"too long", "\"kind\":\"grant\"", "\"kind\":\"" + std::string(5'000, 'x') + "\"",
       "at most 4096"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    std::string text = GrantText(Wanted());
    const std::size_t at = text.find(c.from);
    REQUIRE(at != std::string::npos);
    const StatusOr<GrantBody> body = GrantBodyFromText(text.replace(at, c.from.size(), c.to));
    CHECK(body.status().code() == StatusCode::kInvalidArgument);
    CHECK(Message(body.status()).find(c.want) != std::string_view::npos);
  }
}

TEST_CASE("VerifyGrant: a grant for this very task covers it") {
  const Keys keys;
  const std::string note = test::SignedAt(keys.officer, GrantText(Wanted()), kSigned);

  const GrantCheck check = VerifyGrant(note, keys.Rules(), Wanted(), kNow);

  CHECK(check.reason == Reason::kNone);
  CHECK(check.body == Wanted());
}

TEST_CASE("VerifyGrant: the wish for an expiry does not matter, the grant's own does") {
  const Keys keys;
  const std::string note = test::SignedAt(keys.officer, GrantText(Wanted()), kSigned);
  GrantBody wanted = Wanted();
  wanted.not_after = WallTime{};
  const WallTime end = Wanted().not_after;

  CHECK(VerifyGrant(note, keys.Rules(), wanted, kNow).reason == Reason::kNone);
  CHECK(VerifyGrant(note, keys.Rules(), wanted, end - std::chrono::nanoseconds(1)).reason ==
        Reason::kNone);
  CHECK(VerifyGrant(note, keys.Rules(), wanted, end).reason == Reason::kGrantExpired);
}

TEST_CASE("VerifyGrant: any field that differs refuses, with the reason for it") {
  struct Case {
    std::string name;
    std::function<void(GrantBody&)> change;
    Reason want;
  };
  const Case cases[] = {
      {"another site", [](GrantBody& b) { b.site = SiteId::Parse("budapest").value(); },
       Reason::kGrantDataset},
      {"another federation", [](GrantBody& b) { b.federation = "other.org"; },
       Reason::kGrantDataset},
      {"another dataset", [](GrantBody& b) { b.dataset = DatasetAlias::Parse("lungs").value(); },
       Reason::kGrantDataset},
      {"another version", [](GrantBody& b) { b.dataset_commitment = Filled(9); },
       Reason::kGrantDataset},
      {"another job", [](GrantBody& b) { b.job = JobId::Parse("heart-2").value(); },
       Reason::kGrantPlan},
      {"another plan", [](GrantBody& b) { b.plan = Filled(9); }, Reason::kGrantPlan},
      {"another trainer", [](GrantBody& b) { b.trainer = Filled(9); }, Reason::kGrantTrainer},
      {"another model", [](GrantBody& b) { b.base_model = Filled(9); }, Reason::kGrantBaseModel},
      {"another policy", [](GrantBody& b) { b.effective_policy = Filled(9); },
       Reason::kGrantPolicy},
      {"expired", [](GrantBody& b) { b.not_after = At("2026-11-30T23:59:59.999Z"); },
       Reason::kGrantExpired},
  };
  const Keys keys;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    GrantBody granted = Wanted();
    c.change(granted);
    const std::string note = test::SignedAt(keys.officer, GrantText(granted), kSigned);

    const GrantCheck check = VerifyGrant(note, keys.Rules(), Wanted(), kNow);

    CHECK(check.reason == c.want);
    CHECK(check.body == GrantBody{});  // nothing of a grant that does not cover the task
  }
}

TEST_CASE("VerifyGrant: a text that is no grant is malformed, however well signed") {
  const Keys keys;
  const std::string note = test::SignedAt(keys.officer, "{\"kind\":\"roster\"}\n", kSigned);

  CHECK(VerifyGrant(note, keys.Rules(), Wanted(), kNow).reason == Reason::kMalformed);
}

TEST_CASE("VerifyGrant: signers count by name, each once, and only those that are approvers") {
  const Keys keys;
  const std::string text = GrantText(Wanted());
  const std::string one = test::SignedAt(keys.officer, text, kSigned);
  const std::string both =
      crypto::MergeNotes(one, test::SignedAt(keys.head, text, kSigned)).value();
  const std::string foreign = test::SignedAt(keys.stranger, text, kSigned);
  const std::string mixed = crypto::MergeNotes(one, foreign).value();
  const auto reason = [&keys](const std::string& note, std::uint32_t threshold) {
    return VerifyGrant(note, keys.Rules(threshold), Wanted(), kNow).reason;
  };

  CHECK(reason(both, 2) == Reason::kNone);
  CHECK(reason(one, 2) == Reason::kGrantSignature);
  CHECK(reason(mixed, 1) == Reason::kNone);
  CHECK(reason(mixed, 2) == Reason::kGrantSignature);
  CHECK(reason(foreign, 1) == Reason::kGrantSignature);
  CHECK(reason(both, 3) == Reason::kGrantSignature);
  CHECK(reason(both, 0) == Reason::kGrantSignature);  // nobody is never enough
  CHECK(reason(text, 1) == Reason::kGrantSignature);
  CHECK(reason("", 1) == Reason::kGrantSignature);
  CHECK(VerifyGrant(one, ApprovalRules{}, Wanted(), kNow).reason == Reason::kGrantSignature);
}

TEST_CASE("VerifyGrant: a grant with any byte changed is refused") {
  const Keys keys;
  const std::string note = test::SignedAt(keys.officer, GrantText(Wanted()), kSigned);
  for (std::size_t i = 0; i < note.size(); ++i) {
    for (const char flip : {'\x01', '\x20'}) {
      std::string changed = note;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      CAPTURE(i);

      CHECK(VerifyGrant(changed, keys.Rules(), Wanted(), kNow).reason != Reason::kNone);
    }
  }
}

TEST_CASE("VerifyGrant: says who approved, in which role, for which house, and when") {
  const Keys keys;
  const std::string text = GrantText(Wanted());
  const std::string both = crypto::MergeNotes(test::SignedAt(keys.officer, text, kSigned),
                                              test::SignedAt(keys.head, text, kNow))
                               .value();

  const GrantCheck check = VerifyGrant(both, keys.Rules(2), Wanted(), kNow);

  REQUIRE(check.reason == Reason::kNone);
  CHECK(check.approvals ==
        std::vector<GivenApproval>{
            {"example.org/site/cleveland/officer", ApprovalRole::kDpo, "charite", kSigned},
            {"example.org/site/cleveland/head", ApprovalRole::kOperator, "charite", kNow}});
}

TEST_CASE("VerifyGrant: a role that is missing, or two of one house, is not enough") {
  const Keys keys;
  const std::string text = GrantText(Wanted());
  const std::string one = test::SignedAt(keys.officer, text, kSigned);
  const std::string both =
      crypto::MergeNotes(one, test::SignedAt(keys.head, text, kSigned)).value();
  ApprovalRules rules = keys.Rules();

  rules.needs = {{.role = ApprovalRole::kOperator, .count = 1, .distinct_org = false}};
  CHECK(Why(one, rules) == Reason::kApprovalMissing);
  CHECK(Why(both, rules) == Reason::kNone);

  rules.approvers[1].role = ApprovalRole::kDpo;
  rules.needs = {{.role = ApprovalRole::kDpo, .count = 2, .distinct_org = false}};
  CHECK(Why(one, rules) == Reason::kApprovalMissing);
  CHECK(Why(both, rules) == Reason::kNone);
  rules.needs[0].distinct_org = true;
  CHECK(Why(both, rules) == Reason::kApprovalMissing);
  rules.approvers[1].organisation = "ethics-board";
  CHECK(Why(both, rules) == Reason::kNone);
}

TEST_CASE("VerifyGrant: an approval ages, and one from the future does not count") {
  const Keys keys;
  const std::string text = GrantText(Wanted());
  const auto at = [&](WallTime time) { return test::SignedAt(keys.officer, text, time); };
  ApprovalRules rules = keys.Rules();
  rules.max_age = std::chrono::hours(24);

  CHECK(Why(at(kNow - std::chrono::hours(24)), rules) == Reason::kNone);
  CHECK(Why(at(kNow - std::chrono::hours(25)), rules) == Reason::kApprovalExpired);
  CHECK(Why(at(kNow + kApprovalSkew), rules) == Reason::kNone);
  CHECK(Why(at(kNow + kApprovalSkew + std::chrono::seconds(1)), rules) == Reason::kGrantSignature);
  // Who signs again is as fresh as the last time.
  CHECK(Why(crypto::MergeNotes(at(kNow - std::chrono::hours(25)), at(kNow)).value(), rules) ==
        Reason::kNone);
  // Of two who are wanted one is too old.
  const std::string both =
      crypto::MergeNotes(at(kNow - std::chrono::hours(25)), test::SignedAt(keys.head, text, kNow))
          .value();
  CHECK(Why(both, rules) == Reason::kNone);
  rules.persons = 2;
  CHECK(Why(both, rules) == Reason::kApprovalExpired);
}

TEST_CASE("SharedDigest: the same at every site of a job, and another for anything else shared") {
  GrantBody other = Wanted();
  other.site = SiteId::Parse("budapest").value();
  other.dataset_commitment = Filled(9);
  other.effective_policy = Filled(9);
  other.not_after = kNow;
  CHECK(SharedDigest(other) == SharedDigest(Wanted()));
  CHECK(GrantDigest(other) != GrantDigest(Wanted()));
  for (const auto& change : std::vector<std::function<void(GrantBody&)>>{
           [](GrantBody& b) { b.plan = Filled(9); }, [](GrantBody& b) { b.base_model = Filled(9); },
           [](GrantBody& b) { b.federation = "other.org"; },
           [](GrantBody& b) { b.job = JobId::Parse("heart-2").value(); }}) {
    GrantBody changed = Wanted();
    change(changed);
    CHECK(SharedDigest(changed) != SharedDigest(Wanted()));
  }
}

}  // namespace
}  // namespace domicile::contracts

#include "contracts/grant.h"

#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/json.h"

namespace domicile::contracts {
namespace {

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
  SeededRandom random(seed);
  return crypto::NoteSigner::Generate(name, random).value();
}

// Two approvers of the site, and a stranger.
struct Keys {
  crypto::NoteSigner officer = Signer("example.org/site/cleveland/officer", 1);
  crypto::NoteSigner head = Signer("example.org/site/cleveland/head", 2);
  crypto::NoteSigner stranger = Signer("example.org/site/budapest/officer", 3);
  std::vector<crypto::NoteVerifier> approvers = {officer.Verifier(), head.Verifier()};
};

const WallTime kNow = At("2026-12-01T00:00:00Z");

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
  const std::string note = keys.officer.Sign(GrantText(Wanted())).value();

  const GrantCheck check = VerifyGrant(note, keys.approvers, 1, Wanted(), kNow);

  CHECK(check.reason == Reason::kNone);
  CHECK(check.body == Wanted());
}

TEST_CASE("VerifyGrant: the wish for an expiry does not matter, the grant's own does") {
  const Keys keys;
  const std::string note = keys.officer.Sign(GrantText(Wanted())).value();
  GrantBody wanted = Wanted();
  wanted.not_after = WallTime{};
  const WallTime end = Wanted().not_after;

  CHECK(VerifyGrant(note, keys.approvers, 1, wanted, kNow).reason == Reason::kNone);
  CHECK(VerifyGrant(note, keys.approvers, 1, wanted, end - std::chrono::nanoseconds(1)).reason ==
        Reason::kNone);
  CHECK(VerifyGrant(note, keys.approvers, 1, wanted, end).reason == Reason::kGrantExpired);
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
    const std::string note = keys.officer.Sign(GrantText(granted)).value();

    const GrantCheck check = VerifyGrant(note, keys.approvers, 1, Wanted(), kNow);

    CHECK(check.reason == c.want);
    CHECK(check.body == GrantBody{});  // nothing of a grant that does not cover the task
  }
}

TEST_CASE("VerifyGrant: a text that is no grant is malformed, however well signed") {
  const Keys keys;
  const std::string note = keys.officer.Sign("{\"kind\":\"roster\"}\n").value();

  CHECK(VerifyGrant(note, keys.approvers, 1, Wanted(), kNow).reason == Reason::kMalformed);
}

TEST_CASE("VerifyGrant: signers count by name, each once, and only those that are approvers") {
  const Keys keys;
  const std::string text = GrantText(Wanted());
  const std::string one = keys.officer.Sign(text).value();
  const std::string both = crypto::MergeNotes(one, keys.head.Sign(text).value()).value();
  const std::string foreign = keys.stranger.Sign(text).value();
  const std::string mixed = crypto::MergeNotes(one, foreign).value();
  const auto reason = [&keys](const std::string& note, std::size_t threshold) {
    return VerifyGrant(note, keys.approvers, threshold, Wanted(), kNow).reason;
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
  CHECK(VerifyGrant(one, {}, 1, Wanted(), kNow).reason == Reason::kGrantSignature);
}

TEST_CASE("VerifyGrant: a grant with any byte changed is refused") {
  const Keys keys;
  const std::string note = keys.officer.Sign(GrantText(Wanted())).value();
  for (std::size_t i = 0; i < note.size(); ++i) {
    for (const char flip : {'\x01', '\x20'}) {
      std::string changed = note;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      CAPTURE(i);

      CHECK(VerifyGrant(changed, keys.approvers, 1, Wanted(), kNow).reason != Reason::kNone);
    }
  }
}

TEST_CASE("VerifyGrant: two approver keys of one name are one person") {
  const Keys keys;
  const crypto::NoteSigner second = Signer("example.org/site/cleveland/officer", 9);
  const std::vector<crypto::NoteVerifier> approvers = {keys.officer.Verifier(), second.Verifier()};
  const std::string text = GrantText(Wanted());
  const std::string note =
      crypto::MergeNotes(keys.officer.Sign(text).value(), second.Sign(text).value()).value();

  CHECK(VerifyGrant(note, approvers, 1, Wanted(), kNow).reason == Reason::kNone);
  CHECK(VerifyGrant(note, approvers, 2, Wanted(), kNow).reason == Reason::kGrantSignature);
}

}  // namespace
}  // namespace domicile::contracts

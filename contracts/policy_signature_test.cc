#include "contracts/policy_signature.h"

#include <array>

#include <doctest/doctest.h>

#include "crypto/sha256.h"
#include "tests/support/example_approval.h"

namespace domicile::contracts {
namespace {

const WallTime kNow = ParseTime("2026-12-01T00:00:00Z").value();

std::string NoteOver(const crypto::NoteSigner& key, std::string_view document) {
  return test::SignedAt(key, PolicySignatureText(crypto::Sha256(AsBytes(document))), kNow);
}

TEST_CASE("VerifyPolicySignature: these bytes, by these keys, and nothing else") {
  const crypto::NoteSigner dpo = test::ExamplePerson("dpo", 1);
  const crypto::NoteSigner ciso = test::ExamplePerson("ciso", 2);
  const crypto::NoteSigner stranger = test::ExamplePerson("x", 3);
  const std::vector<crypto::NoteVerifier> keys = {dpo.Verifier(), ciso.Verifier()};
  const std::string text = "[policy]\r\n\tschema = 1";  // any bytes: tabs, no newline at the end
  const std::string one = NoteOver(dpo, text);
  const std::string both = crypto::MergeNotes(one, NoteOver(ciso, text)).value();
  struct Case {
    const char* name;
    std::string document;
    std::string note;
    std::vector<std::string> signers;
    const char* error;
  };
  const Case cases[] = {
      {"one", text, one, {"dpo"}, ""},
      {"two", text, both, {"dpo", "ciso"}, ""},
      {"a stranger beside",
       text,
       crypto::MergeNotes(one, NoteOver(stranger, text)).value(),
       {"dpo"},
       ""},
      {"a stranger", text, NoteOver(stranger, text), {}, "no signature of a known key"},
      {"other bytes", text + " ", one, {}, "for other bytes"},
      {"an approval, not a policy",
       text,
       test::SignedAt(dpo, "{\"kind\":\"grant\"}\n", kNow),
       {},
       "for other bytes"},
      {"no note", text, "signed, the officer", {}, "signed note"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const StatusOr<std::vector<std::string>> signers =
        VerifyPolicySignature(c.document, c.note, keys);
    CHECK(signers.value_or(std::vector<std::string>{}) == c.signers);
    if (!signers.ok()) {
      CHECK(signers.status().code() == StatusCode::kUnauthenticated);
      CHECK(Message(signers.status()).find(c.error) != std::string_view::npos);
    }
  }
}

TEST_CASE("ReadPolicySigners: keys for each file, or none by name; silence is an error") {
  const std::string key = test::ExamplePerson("dpo", 1).Verifier().Print();
  const std::string list = "[\"" + key + "\"]\n";
  constexpr std::array<std::string_view, 2> kWanted = {"site", "facts"};
  struct Case {
    const char* name;
    std::string toml;
    const char* error;  // empty: there is none
  };
  const Case cases[] = {
      {"keys", "[agent]\n[policy_signers]\nsite = " + list + "facts = " + list, ""},
      {"none by name", "[agent]\npolicy_signers = \"none\"\n", ""},
      {"silence", "[agent]\n", "policy_signers = \"none\" to take them unsigned"},
      {"another word", "[agent]\npolicy_signers = \"no\"\n", "must be \"none\""},
      {"one file forgotten", "[agent]\n[policy_signers]\nsite = " + list, "facts"},
      {"nobody", "[agent]\n[policy_signers]\nfacts = []\nsite = " + list, "at least one key"},
      {"no key", "[agent]\n[policy_signers]\nfacts = [\"x\"]\nsite = " + list, "facts"},
      {"one twice",
       "[agent]\n[policy_signers]\nfacts = [\"" + key + "\", \"" + key + "\"]\nsite = " + list,
       "twice"},
      {"a file nobody reads here",
       "[agent]\n[policy_signers]\nsite = " + list + "facts = " + list + "aggregator = " + list,
       "aggregator"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    TomlDocument document = TomlDocument::Parse(c.toml, "agent.toml").value();
    TomlTable root = document.Root();
    TomlTable main = root.Table("agent");
    const PolicySigners signers = ReadPolicySigners(root, main, kWanted);
    const Status finished = document.Finish();
    CAPTURE(Message(finished));
    CHECK(finished.ok() == std::string_view(c.error).empty());
    if (finished.ok()) {
      CHECK(signers.none == signers.site.empty());
    } else {
      CHECK(Message(finished).find(c.error) != std::string_view::npos);
    }
  }
}

}  // namespace
}  // namespace domicile::contracts

#include "crypto/note.h"

#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/random.h"

namespace domicile::crypto {
namespace {

// Made by an independent implementation; see `how` in the file.
const nlohmann::json& Golden() {
  static const nlohmann::json kGolden = nlohmann::json::parse(
      std::ifstream(DOMICILE_SOURCE_DIR "/tests/golden/signed_note_checkpoint.json"));
  return kGolden;
}

NoteVerifier GoldenKey(std::string_view tag) {
  for (const auto& key : Golden()["keys"]) {
    if (key["tag"] == tag) {
      return *NoteVerifier::Parse(key["vkey"].get<std::string>());
    }
  }
  FAIL("no such key");
  return {};
}

NoteSigner Signer(std::string_view name, std::uint64_t seed = 1,
                  NoteKeyKind kind = NoteKeyKind::kEd25519) {
  SeededRandom random(seed);
  return *NoteSigner::Generate(name, random, kind);
}

bool Mentions(const Status& status, std::string_view what) {
  return Message(status).find(what) != std::string_view::npos;
}

TEST_CASE("NoteVerifier: golden keys parse, print back, and have the golden key id") {
  REQUIRE(Golden()["keys"].size() == 5);
  for (const auto& c : Golden()["keys"]) {
    const auto vkey = c["vkey"].get<std::string>();
    CAPTURE(vkey);
    const auto key = NoteVerifier::Parse(vkey);
    REQUIRE(key.ok());
    CHECK(key->Print() == vkey);
    CHECK(key->name() == c["name"].get<std::string>());
    CHECK(static_cast<int>(key->Kind()) == c["sig_type"].get<int>());
    CHECK(vkey.find("+" + c["key_id_hex"].get<std::string>() + "+") != std::string::npos);
  }
}

TEST_CASE("NoteSigner: a golden seed gives the golden public key and signature") {
  for (const auto& c : Golden()["keys"]) {
    Bytes key = {static_cast<std::uint8_t>(c["sig_type"].get<int>())};
    const Bytes seed = *ParseHex(c["TEST_KEY_ONLY_seed_hex"].get<std::string>());
    key.insert(key.end(), seed.begin(), seed.end());
    const std::string skey = "PRIVATE+KEY+" + c["name"].get<std::string>() + "+" +
                             c["key_id_hex"].get<std::string>() + "+" + PrintBase64(key);
    const auto signer = NoteSigner::Parse(skey);
    REQUIRE(signer.ok());
    CHECK(signer->Verifier().Print() == c["vkey"].get<std::string>());
    CHECK(signer->PrintSecret() == skey);
    if (c["tag"] == "log") {
      const auto& note = Golden()["notes"][0];
      CHECK(*signer->Sign(note["note_text"].get<std::string>()) == note["note"].get<std::string>());
    }
    if (c["tag"] == "witness1") {
      const auto& cosigned = Golden()["cosignatures_over_checkpoint_8"][0];
      const auto text = Golden()["notes"][2]["note_text"].get<std::string>();
      CHECK(*signer->Cosign(text, cosigned["timestamp"].get<std::uint64_t>()) ==
            text + "\n" + cosigned["line"].get<std::string>());
    }
  }
}

TEST_CASE("OpenNote: every verdict of the golden file") {
  const std::vector<NoteVerifier> known = {GoldenKey("log"), GoldenKey("witness1"),
                                           GoldenKey("witness2")};
  REQUIRE(Golden()["notes"].size() > 25);
  for (const auto& c : Golden()["notes"]) {
    CAPTURE(c["name"].get<std::string>());
    CAPTURE(c["why"].get<std::string>());
    const Bytes bytes = *ParseHex(c["note_hex"].get<std::string>());
    const std::string_view note = AsText(bytes);
    const auto verdict = c["verdict"].get<std::string>();

    const auto opened = OpenNote(note, known);
    const auto checkpoint = OpenCheckpoint(note, known[0]);

    CHECK(checkpoint.ok() == (verdict == "accept"));
    if (verdict != "reject") {
      REQUIRE(opened.ok());
      CHECK(opened->text == c["note_text"].get<std::string>());
      CHECK(opened->signers.front() == known[0].name());
    }
    if (verdict == "accept" && c.contains("size")) {
      CHECK(checkpoint->size == c["size"].get<std::uint64_t>());
      CHECK(PrintHex(checkpoint->root) == c["root_hex"].get<std::string>());
      CHECK(PrintCheckpoint(*checkpoint) == opened->text);
    }
  }
}

TEST_CASE("OpenNote: a refused golden note is refused for what is wrong with it") {
  const struct {
    std::string_view name;
    StatusCode code;
    std::string_view says;
  } cases[] = {
      {"only-unknown-key", StatusCode::kUnauthenticated, "no signature of a known key"},
      {"text-changed", StatusCode::kUnauthenticated, "does not verify"},
      {"one-good-one-bad-of-same-key", StatusCode::kUnauthenticated, "does not verify"},
      {"signature-too-short", StatusCode::kUnauthenticated, "does not verify"},
      {"no-blank-line", StatusCode::kInvalidArgument, "no empty line"},
      {"no-final-newline", StatusCode::kInvalidArgument, "does not end in a newline"},
      {"hyphen-instead-of-em-dash", StatusCode::kInvalidArgument, "U+2014"},
      {"crlf", StatusCode::kInvalidArgument, "control character"},
      {"tab-in-text", StatusCode::kInvalidArgument, "control character"},
      {"base64-not-canonical", StatusCode::kInvalidArgument, "base64"},
      {"checkpoint-leading-zero-size", StatusCode::kInvalidArgument, "size"},
      {"checkpoint-size-over-u64", StatusCode::kInvalidArgument, "size"},
      {"checkpoint-short-root", StatusCode::kInvalidArgument, "root"},
      {"checkpoint-wrong-origin", StatusCode::kInvalidArgument, "origin"},
      {"checkpoint-empty-extension-line", StatusCode::kInvalidArgument, "empty line"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    bool found = false;
    for (const auto& note : Golden()["notes"]) {
      if (note["name"] == c.name) {
        found = true;
        const Bytes bytes = *ParseHex(note["note_hex"].get<std::string>());
        const Status status = OpenCheckpoint(AsText(bytes), GoldenKey("log")).status();
        CAPTURE(ToString(status));
        CHECK(status.code() == c.code);
        CHECK(Mentions(status, c.says));
      }
    }
    CHECK(found);
  }
}

TEST_CASE("OpenNote: golden cosignatures verify only over the text and time they were made for") {
  const auto text = Golden()["notes"][2]["note_text"].get<std::string>();
  REQUIRE(Golden()["cosignatures_over_checkpoint_8"].size() == 3);
  for (const auto& c : Golden()["cosignatures_over_checkpoint_8"]) {
    CAPTURE(c.dump());
    const NoteVerifier witness = GoldenKey(c["witness"].get<std::string>());
    const std::string note = text + "\n" + c["line"].get<std::string>();
    CHECK(OpenNote(note, std::span(&witness, 1)).ok() == c["valid"].get<bool>());
  }
}

TEST_CASE("OpenNote: the published example of another implementation verifies") {
  const auto& c = Golden()["public_example"];
  const NoteVerifier key = *NoteVerifier::Parse(c["vkey"].get<std::string>());
  const auto text = c["text"].get<std::string>();
  const std::string note =
      text + "\n\xE2\x80\x94 PeterNeumann " + c["signature_line_base64"].get<std::string>() + "\n";
  const auto opened = OpenNote(note, std::span(&key, 1));
  REQUIRE(opened.ok());
  CHECK(opened->text == text);
}

TEST_CASE("NoteSigner: what it signs opens with its key, and with no other") {
  const NoteSigner signer = Signer("fed.example/roster");
  const NoteSigner other = Signer("fed.example/roster", 2);
  const std::string text = "first\n\nsecond \xE2\x82\xAC\n";
  const std::string note = *signer.Sign(text);
  const NoteVerifier own = signer.Verifier();
  const NoteVerifier foreign = other.Verifier();

  const auto opened = OpenNote(note, std::span(&own, 1));

  REQUIRE(opened.ok());
  CHECK(opened->text == text);
  CHECK(opened->signers == std::vector<std::string>{"fed.example/roster"});
  CHECK(OpenNote(note, std::span(&foreign, 1)).status().code() == StatusCode::kUnauthenticated);
}

TEST_CASE("NoteSigner: every changed byte of a note is noticed") {
  const NoteSigner signer = Signer("k");
  const NoteVerifier key = signer.Verifier();
  const std::string note = *signer.Sign("text\n");
  for (std::size_t i = 0; i < note.size(); ++i) {
    CAPTURE(i);
    std::string changed = note;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK_FALSE(OpenNote(changed, std::span(&key, 1)).ok());
  }
}

TEST_CASE("NoteSigner: names and texts that cannot stand in a note are refused") {
  SeededRandom random(1);
  for (const std::string_view name : {"", "a b", "a+b", "caf\xC3\xA9", "a\n"}) {
    CHECK_FALSE(NoteSigner::Generate(name, random).ok());
  }
  CHECK_FALSE(NoteSigner::Generate(std::string(251, 'n'), random).ok());
  const NoteSigner signer = Signer("k");
  for (const std::string_view text : {"", "no newline", "tab\t\n", "\xC0\xAF\n", "\xED\xA0\x80\n",
                                      "\xF4\x90\x80\x80\n", "cut \xE2\x82\n"}) {
    CHECK(signer.Sign(text).status().code() == StatusCode::kInvalidArgument);
  }
  CHECK_FALSE(signer.Sign(std::string(1U << 20U, 'x') + "\n").ok());
}

TEST_CASE("NoteSigner: a cosigner signs nothing but cosignatures, and an author no cosignature") {
  const NoteSigner witness = Signer("w", 1, NoteKeyKind::kCosigner);
  const NoteSigner author = Signer("a");
  const NoteVerifier key = witness.Verifier();
  CHECK(witness.Sign("t\n").status().code() == StatusCode::kFailedPrecondition);
  CHECK(author.Cosign("t\n", 1).status().code() == StatusCode::kFailedPrecondition);
  CHECK(OpenNote(*witness.Cosign("t\n", 1), std::span(&key, 1)).ok());
}

TEST_CASE("OpenNote: says when a cosigner signed, the latest time if it did so twice") {
  const NoteSigner person = Signer("p", 1, NoteKeyKind::kCosigner);
  const NoteSigner author = Signer("a");
  const std::vector<NoteVerifier> keys = {author.Verifier(), person.Verifier()};
  const std::string note = *MergeNotes(*MergeNotes(*author.Sign("t\n"), *person.Cosign("t\n", 70)),
                                       *person.Cosign("t\n", 50));

  const OpenedNote opened = *OpenNote(note, keys);

  CHECK(opened.signers == std::vector<std::string>{"a", "p"});
  CHECK(opened.times == std::vector<std::uint64_t>{0, 70});
}

TEST_CASE("NoteFromCosignature: a signature made elsewhere over the exact bytes is the same note") {
  const NoteSigner person = Signer("p", 1, NoteKeyKind::kCosigner);
  const std::string note = *person.Cosign("t\n", 70);
  CHECK(BytesToCosign("t\n", 70) == "cosignature/v1\ntime 70\nt\n");
  const std::size_t space = note.rfind(' ');
  const Bytes line =
      *ParseBase64(std::string_view(note).substr(space + 1, note.size() - space - 2));
  const ByteSpan signature = ByteSpan(line).subspan(12);

  CHECK(*NoteFromCosignature("t\n", person.Verifier(), 70, signature) == note);
  CHECK(NoteFromCosignature("t\n", person.Verifier(), 71, signature).status().code() ==
        StatusCode::kUnauthenticated);
  CHECK(NoteFromCosignature("u\n", person.Verifier(), 70, signature).status().code() ==
        StatusCode::kUnauthenticated);
  CHECK(NoteFromCosignature("t\n", person.Verifier(), 70, signature.first(63)).status().code() ==
        StatusCode::kUnauthenticated);
  CHECK(NoteFromCosignature("t\n", Signer("a").Verifier(), 70, signature).status().code() ==
        StatusCode::kInvalidArgument);
}

TEST_CASE("NoteSigner: a damaged key is refused, and the message repeats none of it") {
  const std::string skey = Signer("fed/approver").PrintSecret();
  const std::string secret = skey.substr(skey.rfind('+') + 1, 12);
  const std::string damaged[] = {skey.substr(0, skey.size() - 4), skey + "A", skey.substr(8),
                                 "PRIVATE+KEY+fed/approver+00000000" + skey.substr(skey.rfind('+')),
                                 "PRIVATE+KEY+" + skey};
  for (const std::string& text : damaged) {
    const auto parsed = NoteSigner::Parse(text);
    REQUIRE_FALSE(parsed.ok());
    CHECK_FALSE(Mentions(parsed.status(), secret));
  }
  CHECK_FALSE(NoteVerifier::Parse(skey).ok());
}

TEST_CASE("MergeNotes: both signatures stand, each once, and other texts are refused") {
  const NoteSigner a = Signer("a", 1);
  const NoteSigner b = Signer("b", 2);
  const std::vector<NoteVerifier> known = {a.Verifier(), b.Verifier()};
  const std::string by_a = *a.Sign("grant\n");
  const std::string by_b = *b.Sign("grant\n");

  const auto merged = MergeNotes(by_a, by_b);
  const auto again = MergeNotes(*merged, by_b);

  REQUIRE(merged.ok());
  CHECK(OpenNote(*merged, known)->signers == std::vector<std::string>{"a", "b"});
  CHECK(*again == *merged);
  CHECK_FALSE(MergeNotes(by_a, *b.Sign("another\n")).ok());
}

TEST_CASE("OpenNote: a note with too many signature lines or bytes is refused") {
  const NoteSigner signer = Signer("k");
  const NoteVerifier key = signer.Verifier();
  std::string note = *signer.Sign("t\n");
  const std::string line = note.substr(3);
  while (note.size() < 101 * line.size()) {
    note += line;
  }
  CHECK(Mentions(OpenNote(note, std::span(&key, 1)).status(), "more than 100"));
  CHECK(Mentions(OpenNote(std::string(2U << 20U, '\n'), std::span(&key, 1)).status(), "1 MiB"));
}

}  // namespace
}  // namespace domicile::crypto

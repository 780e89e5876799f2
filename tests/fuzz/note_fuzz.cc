// Properties: no note that a known key did not sign opens, whatever surrounds it; a note that opens
// merges with itself to itself; a head that parses prints to a text that parses the same.
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "crypto/note.h"

using domicile::crypto::NoteVerifier;

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A test key of tests/golden/signed_note_checkpoint.json: only the corpus holds its signatures.
  static const NoteVerifier kKey = *NoteVerifier::Parse(
      "audit.fedres.example/test-log+3e1848c7+Afc784TGP6D3xeW1T76GXv69kJ4MfQs0aipQ3oPhc1jn");
  static std::set<std::string> opened_texts;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto opened = domicile::crypto::OpenNote(input, std::span(&kKey, 1));
  if (opened.ok()) {
    DOMICILE_CHECK(input.starts_with(opened->text));
    DOMICILE_CHECK(opened->signers.size() == 1 && opened->signers[0] == kKey.name());
    // The corpus has four texts that the key has signed, and nobody here holds the key.
    opened_texts.insert(opened->text);
    DOMICILE_CHECK(opened_texts.size() <= 4);
    DOMICILE_CHECK(*domicile::crypto::MergeNotes(input, input) == input);
  }
  const auto head = domicile::crypto::ParseCheckpoint(input);
  if (head.ok()) {
    const auto again = domicile::crypto::ParseCheckpoint(PrintCheckpoint(*head));
    DOMICILE_CHECK(again.ok() && *again == *head);
  }
  if (const auto key = NoteVerifier::Parse(input); key.ok()) {
    DOMICILE_CHECK(key->Print() == input);
  }
  return 0;
}

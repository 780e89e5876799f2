// Signatures under policies and legal facts: `FILE.sig`, a signed note beside the file, by persons
// whose keys the configuration of a program lists (docs/formats/policy-signature.md).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/toml.h"
#include "crypto/note.h"

namespace domicile::contracts {

// The text that is signed: it names the exact bytes of the document by their SHA-256.
std::string PolicySignatureText(const Digest& document);

// The names of the given keys that signed exactly these bytes, each once. Errors: kUnauthenticated,
// saying whether the note is no note, is for other bytes, or is of other keys.
StatusOr<std::vector<std::string>> VerifyPolicySignature(
    std::string_view document, std::string_view note, std::span<const crypto::NoteVerifier> keys);

// Whose signatures a program accepts under which file.
struct PolicySigners {
  bool none = false;  // said by name: files are taken unsigned
  std::vector<crypto::NoteVerifier> site;
  std::vector<crypto::NoteVerifier> federation;
  std::vector<crypto::NoteVerifier> aggregator;
  std::vector<crypto::NoteVerifier> facts;
};

// Reads `policy_signers = "none"` of `main`, or else the table [policy_signers] of `root`, which
// must name at least one key for each of `wanted` ("site", "federation", "aggregator", "facts").
// Neither is an error: what nobody signs must be said. Errors are noted in the document.
PolicySigners ReadPolicySigners(TomlTable& root, TomlTable& main,
                                std::span<const std::string_view> wanted);

}  // namespace domicile::contracts

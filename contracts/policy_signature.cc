#include "contracts/policy_signature.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "crypto/sha256.h"

namespace domicile::contracts {

namespace {

std::vector<crypto::NoteVerifier> ReadKeys(TomlTable& table, std::string_view source) {
  std::vector<crypto::NoteVerifier> keys;
  for (const std::string& text : table.Strings(source)) {
    StatusOr<crypto::NoteVerifier> key = crypto::NoteVerifier::Parse(text);
    if (!key.ok()) {
      table.Merge(source, key.status());
      return keys;
    }
    const bool known = std::any_of(keys.begin(), keys.end(),
                                   [&](const auto& other) { return other.name() == key->name(); });
    if (known) {
      table.Fail(source, "names one person twice: each signer signs with one key");
      return keys;
    }
    keys.push_back(*std::move(key));
  }
  if (keys.empty()) {
    table.Fail(source, "must name at least one key, made by `domicile ca approver`");
  }
  return keys;
}

}  // namespace

std::string PolicySignatureText(const Digest& document) {
  Json json;
  json.Set("v", 1);
  json.Set("kind", "policy-signature");
  json.Set("document", PrintHex(document));
  return PrintJson(json) + "\n";
}

StatusOr<std::vector<std::string>> VerifyPolicySignature(
    std::string_view document, std::string_view note, std::span<const crypto::NoteVerifier> keys) {
  ASSIGN_OR_RETURN(crypto::OpenedNote opened, [&]() -> StatusOr<crypto::OpenedNote> {
    StatusOr<crypto::OpenedNote> result = crypto::OpenNote(note, keys);
    return result.ok() ? std::move(result)
                       : Error(StatusCode::kUnauthenticated, Message(result.status()));
  }());
  if (opened.text != PolicySignatureText(crypto::Sha256(AsBytes(document)))) {
    return Error(StatusCode::kUnauthenticated,
                 "the signature is for other bytes than the file holds now: have it signed again");
  }
  return std::move(opened.signers);
}

PolicySigners ReadPolicySigners(TomlTable& root, TomlTable& main,
                                std::span<const std::string_view> wanted) {
  PolicySigners signers;
  if (const auto word = main.TryString("policy_signers")) {
    signers.none = *word == "none";
    if (!signers.none) {
      main.Fail("policy_signers", "must be \"none\", or absent beside a table [policy_signers]");
    }
    return signers;
  }
  std::optional<TomlTable> table = root.TryTable("policy_signers");
  if (!table) {
    main.Fail("policy_signers",
              "says nobody's keys: name those who sign policies in [policy_signers], or write "
              "policy_signers = \"none\" to take them unsigned");
    return signers;
  }
  for (const auto& [source, keys] :
       {std::pair("site", &signers.site), std::pair("federation", &signers.federation),
        std::pair("aggregator", &signers.aggregator), std::pair("facts", &signers.facts)}) {
    if (std::find(wanted.begin(), wanted.end(), source) != wanted.end()) {
      *keys = ReadKeys(*table, source);
    }
  }
  return signers;
}

}  // namespace domicile::contracts

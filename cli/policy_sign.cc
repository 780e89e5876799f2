#include "cli/policy_sign.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "base/text.h"
#include "base/toml.h"
#include "contracts/policy_signature.h"
#include "crypto/key_file.h"
#include "crypto/sha256.h"

namespace domicile::cli {

namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 20U;
constexpr std::int64_t kMostSigners = 100;

std::string SignatureFile(const std::string& file) { return file + ".sig"; }

// The text of a note, before its signatures.
std::string_view TextOf(std::string_view note) {
  const std::size_t split = note.rfind("\n\n");
  return split == std::string_view::npos ? note : note.substr(0, split + 1);
}

StatusOr<std::string> SignText(const crypto::NoteSigner& key, const std::string& text,
                               WallTime now) {
  if (key.Verifier().Kind() != crypto::NoteKeyKind::kCosigner) {
    return key.Sign(text);
  }
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  return key.Cosign(text, static_cast<std::uint64_t>(seconds));
}

struct SignOptions {
  std::string file;
  std::vector<std::string> keys;
  bool json = false;
};

StatusOr<Exit> Sign(const SignOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const std::vector<std::string> signers,
                   SignPolicyFile(options.file, options.keys, context.clock.Now()));
  const std::string path = SignatureFile(options.file);
  if (options.json) {
    ASSIGN_OR_RETURN(const std::string document, ReadFile(options.file, kLargestFile));
    Json facts;
    facts.Set("document", PrintHex(crypto::Sha256(AsBytes(document))));
    facts.Set("signature_file", path);
    facts.Set("signers", JsonArray(signers.begin(), signers.end()));
    PrintFacts(context, facts);
    return Exit::kDone;
  }
  for (const std::string& signer : signers) {
    context.out << "signed by " << signer << "\n";
  }
  context.out << "wrote " << path << "\n";
  return Exit::kDone;
}

struct VerifyOptions {
  std::string file;
  std::vector<std::string> keys;
  int threshold = 0;  // 0: as the file says
  bool json = false;
};

// `threshold` of a policy; 1 of legal facts, which have none.
StatusOr<std::size_t> ThresholdOf(const std::string& document, const std::string& file) {
  ASSIGN_OR_RETURN(TomlDocument toml, TomlDocument::Parse(document, file));
  TomlTable root = toml.Root();
  std::optional<TomlTable> policy = root.TryTable("policy");
  const std::optional<std::int64_t> threshold =
      policy ? policy->TryInt("threshold", 1, kMostSigners) : std::nullopt;
  return static_cast<std::size_t>(threshold.value_or(1));
}

StatusOr<Exit> Verify(const VerifyOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const std::string document, ReadFile(options.file, kLargestFile));
  ASSIGN_OR_RETURN(const std::string note, ReadFile(SignatureFile(options.file), kLargestFile));
  std::vector<crypto::NoteVerifier> keys;
  for (const std::string& file : options.keys) {
    ASSIGN_OR_RETURN(keys.emplace_back(), crypto::ReadNotePublicKey(file));
  }
  ASSIGN_OR_RETURN(std::size_t threshold, ThresholdOf(document, options.file));
  threshold = options.threshold > 0 ? static_cast<std::size_t>(options.threshold) : threshold;
  const StatusOr<std::vector<std::string>> signers =
      contracts::VerifyPolicySignature(document, note, keys);
  const std::size_t count = signers.ok() ? signers->size() : 0;
  const bool enough = count >= threshold;
  if (options.json) {
    Json facts;
    facts.Set("document", PrintHex(crypto::Sha256(AsBytes(document))));
    facts.Set("signers", signers.ok() ? JsonArray(signers->begin(), signers->end()) : JsonArray());
    facts.Set("threshold", static_cast<std::int64_t>(threshold));
    facts.Set("verifies", enough);
    PrintFacts(context, facts);
  } else if (!signers.ok()) {
    context.out << "not verified: " << Message(signers.status()) << "\n";
  } else {
    context.out << "signed by " << Join(*signers, ", ") << ": " << count << " of " << threshold
                << " wanted" << (enough ? "\n" : "; not enough\n");
  }
  return enough ? Exit::kDone : Exit::kNotSo;
}

void AddSign(CLI::App& group, Context& context) {
  auto options = std::make_shared<SignOptions>();  // shared with the closure that CLI11 keeps
  CLI::App* const command =
      AddCommand(group, "sign", "Sign a policy or legal facts file, as it is to the byte",
                 "domicile policy sign site.policy.toml --key dpo.key");
  command->add_option("FILE", options->file, "policy or legal facts")->required();
  command->add_option("--key", options->keys, "private key of a signer; repeatable")
      ->required()
      ->expected(1)
      ->take_all();
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context]() { return Sign(*options, context); });
}

void AddVerify(CLI::App& group, Context& context) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* const command =
      AddCommand(group, "verify", "Whether FILE.sig holds enough signatures of these keys",
                 "domicile policy verify site.policy.toml --keys dpo.pub ciso.pub");
  command->add_option("FILE", options->file, "policy or legal facts")->required();
  command->add_option("--keys", options->keys, "public key files of those who may sign")
      ->required();
  command
      ->add_option("--threshold", options->threshold,
                   "how many must have signed (default: as the policy says)")
      ->check(CLI::Range(1, static_cast<int>(kMostSigners)));
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context]() { return Verify(*options, context); });
}

}  // namespace

StatusOr<std::vector<std::string>> SignPolicyFile(const std::string& file,
                                                  std::span<const std::string> key_files,
                                                  WallTime now) {
  ASSIGN_OR_RETURN(const std::string document, ReadFile(file, kLargestFile));
  // What is no TOML at all is not signed by mistake; what it says is checked by `policy check`.
  RETURN_IF_ERROR(TomlDocument::Parse(document, file).status());
  const std::string text = contracts::PolicySignatureText(crypto::Sha256(AsBytes(document)));
  std::string note;
  const std::string path = SignatureFile(file);
  if (FileExists(path)) {
    ASSIGN_OR_RETURN(const std::string there, ReadFile(path, kLargestFile));
    note = TextOf(there) == text ? there : std::string();  // of other bytes: replaced
  }
  std::vector<std::string> signers;
  for (const std::string& key_file : key_files) {
    ASSIGN_OR_RETURN(const crypto::NoteSigner key, crypto::ReadNoteKey(key_file));
    ASSIGN_OR_RETURN(const std::string by_one, SignText(key, text, now));
    signers.push_back(key.Verifier().name());
    if (note.empty()) {
      note = by_one;
    } else {
      ASSIGN_OR_RETURN(note, crypto::MergeNotes(note, by_one));
    }
  }
  RETURN_IF_ERROR(WriteFileDurably(path, AsBytes(note), 0644));
  return signers;
}

void AddPolicySign(CLI::App& group, Context& context) {
  AddSign(group, context);
  AddVerify(group, context);
}

}  // namespace domicile::cli

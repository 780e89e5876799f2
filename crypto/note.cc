#include "crypto/note.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "crypto/internal/ed25519.h"
#include "crypto/internal/utf8.h"
#include "crypto/secret.h"
#include "crypto/sha256.h"

namespace domicile::crypto {

namespace {

constexpr std::size_t kLongestNote = std::size_t{1} << 20U;
constexpr std::size_t kMostSignatures = 100;
constexpr std::size_t kLongestName = 250;
constexpr std::string_view kDash = "\xE2\x80\x94 ";  // U+2014 and a space
constexpr std::string_view kPrivatePrefix = "PRIVATE+KEY+";
constexpr std::size_t kKeyBytes = 32;

Status Refuse(std::string_view what) {
  return Error(StatusCode::kInvalidArgument, "signed note: " + std::string(what));
}

bool IsKeyName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c <= '~' && c != '+'; });
}

std::uint32_t ReadBigEndian32(ByteSpan at) {
  return (std::uint32_t{at[0]} << 24U) | (std::uint32_t{at[1]} << 16U) |
         (std::uint32_t{at[2]} << 8U) | std::uint32_t{at[3]};
}

void AppendBigEndian(Bytes& out, std::uint64_t value, unsigned bytes) {
  for (unsigned i = bytes; i-- > 0;) {
    out.push_back(static_cast<std::uint8_t>((value >> (8 * i)) & 0xFFU));
  }
}

std::uint32_t KeyIdOf(std::string_view name, NoteKeyKind kind, ByteSpan public_key) {
  Bytes bytes = ToBytes(name);
  bytes.push_back('\n');
  bytes.push_back(static_cast<std::uint8_t>(kind));
  bytes.insert(bytes.end(), public_key.begin(), public_key.end());
  return ReadBigEndian32(Sha256(bytes).bytes);
}

std::string PrintKeyId(std::uint32_t id) {
  Bytes bytes;
  AppendBigEndian(bytes, id, 4);
  return PrintHex(bytes);
}

// The three parts of NAME+KEYID+BASE64. The base64 may itself hold '+'.
struct KeyText {
  std::string_view name;
  std::uint32_t id = 0;
  NoteKeyKind kind = NoteKeyKind::kNone;
  SecretBytes key;
};

StatusOr<KeyText> ParseKeyText(std::string_view text) {
  const std::size_t first = text.find('+');
  const std::size_t second = first == text.npos ? text.npos : text.find('+', first + 1);
  if (second == text.npos) {
    return Refuse("a key is written NAME+KEYID+BASE64");
  }
  KeyText parts;
  parts.name = text.substr(0, first);
  if (!IsKeyName(parts.name)) {
    return Refuse("a key name is printable ASCII without space and `+`");
  }
  const auto id = ParseHex(text.substr(first + 1, second - first - 1));
  if (!id.ok() || id->size() != 4) {
    return Refuse("the key id of `" + std::string(parts.name) + "` is not 8 hexadecimal digits");
  }
  parts.id = ReadBigEndian32(*id);
  auto bytes = ParseBase64(text.substr(second + 1));
  if (!bytes.ok() || bytes->size() != kKeyBytes + 1) {
    return Refuse("the key of `" + std::string(parts.name) + "` is not base64 of 33 bytes");
  }
  const std::uint8_t kind = bytes->front();
  parts.key = SecretBytes(ByteSpan(*bytes).subspan(1));
  Wipe(bytes->data(), bytes->size());
  if (kind != static_cast<std::uint8_t>(NoteKeyKind::kEd25519) &&
      kind != static_cast<std::uint8_t>(NoteKeyKind::kCosigner)) {
    return Refuse("the key of `" + std::string(parts.name) + "` is of an unknown kind");
  }
  parts.kind = static_cast<NoteKeyKind>(kind);
  return parts;
}

Status CheckNoteText(std::string_view text) {
  if (text.empty() || text.back() != '\n') {
    return Refuse("the text does not end in a newline");
  }
  const bool has_control = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n';
  });
  if (has_control) {
    return Refuse("the text holds a control character");
  }
  if (!internal::IsUtf8(text)) {
    return Refuse("the text is not UTF-8");
  }
  return OkStatus();
}

std::uint64_t ReadBigEndian64(ByteSpan at) {
  return (std::uint64_t{ReadBigEndian32(at)} << 32U) | ReadBigEndian32(at.subspan(4));
}

// The note of one signature line.
StatusOr<std::string> PrintNote(std::string_view text, std::string_view name,
                                const Bytes& payload) {
  std::string note(text);
  note += "\n" + std::string(kDash) + std::string(name) + " " + PrintBase64(payload) + "\n";
  if (note.size() > kLongestNote) {
    return Refuse("longer than 1 MiB");
  }
  return note;
}

struct SignatureLine {
  std::string_view line;  // with its newline
  std::string_view name;
  std::uint32_t id = 0;
  Bytes payload;  // after the key id
};

struct NoteParts {
  std::string_view text;
  std::vector<SignatureLine> signatures;
};

StatusOr<SignatureLine> ParseSignatureLine(std::string_view line) {
  SignatureLine parsed{.line = line, .name = {}, .id = 0, .payload = {}};
  if (!line.starts_with(kDash)) {
    return Refuse("a signature line does not begin with a dash (U+2014) and a space");
  }
  const std::string_view rest = line.substr(kDash.size(), line.size() - kDash.size() - 1);
  const std::size_t space = rest.find(' ');
  parsed.name = rest.substr(0, space);
  if (space == rest.npos || parsed.name.empty() || parsed.name.find('+') != parsed.name.npos) {
    return Refuse("a signature line is not `dash NAME BASE64`");
  }
  auto bytes = ParseBase64(rest.substr(space + 1));
  // A key id and at least one byte: what follows depends on kinds of keys we need not know.
  if (!bytes.ok() || bytes->size() < 5) {
    return Refuse("a signature is not base64 of a key id and a signature");
  }
  parsed.id = ReadBigEndian32(*bytes);
  parsed.payload.assign(bytes->begin() + 4, bytes->end());
  return parsed;
}

// The form alone: nothing is verified.
StatusOr<NoteParts> SplitNote(std::string_view note) {
  if (note.size() > kLongestNote) {
    return Refuse("longer than 1 MiB");
  }
  RETURN_IF_ERROR(CheckNoteText(note));
  // The last empty line: the text may hold empty lines of its own.
  const std::size_t split = note.rfind("\n\n");
  if (split == note.npos) {
    return Refuse("no empty line between text and signatures");
  }
  NoteParts parts;
  parts.text = note.substr(0, split + 1);
  std::string_view rest = note.substr(split + 2);
  if (rest.empty()) {
    return Refuse("no signature line");
  }
  while (!rest.empty()) {
    if (parts.signatures.size() == kMostSignatures) {
      return Refuse("more than 100 signatures");
    }
    const std::size_t end = rest.find('\n') + 1;  // the note ends in a newline
    ASSIGN_OR_RETURN(SignatureLine line, ParseSignatureLine(rest.substr(0, end)));
    parts.signatures.push_back(std::move(line));
    rest.remove_prefix(end);
  }
  return parts;
}

}  // namespace

// ---- keys
// -----------------------------------------------------------------------------------------

StatusOr<NoteVerifier> NoteVerifier::Parse(std::string_view vkey) {
  ASSIGN_OR_RETURN(const KeyText parts, ParseKeyText(vkey));
  NoteVerifier verifier;
  verifier.name_ = std::string(parts.name);
  verifier.kind_ = parts.kind;
  const ByteSpan key = parts.key.Span();
  std::copy(key.begin(), key.end(), verifier.public_key_.begin());
  verifier.key_id_ = KeyIdOf(verifier.name_, verifier.kind_, verifier.public_key_);
  if (verifier.key_id_ != parts.id) {
    return Refuse("the key id of `" + verifier.name_ + "` is not that of its name and key");
  }
  return verifier;
}

std::string NoteVerifier::Print() const {
  Bytes key = {static_cast<std::uint8_t>(kind_)};
  key.insert(key.end(), public_key_.begin(), public_key_.end());
  return name_ + "+" + PrintKeyId(key_id_) + "+" + PrintBase64(key);
}

bool NoteVerifier::Matches(std::string_view text, ByteSpan signature) const {
  switch (kind_) {
    case NoteKeyKind::kNone:
      return false;
    case NoteKeyKind::kEd25519:
      return internal::Ed25519Verifies(public_key_, AsBytes(text), signature);
    case NoteKeyKind::kCosigner: {
      if (signature.size() != 8 + internal::kEd25519SignatureBytes) {
        return false;
      }
      const std::uint64_t time = ReadBigEndian64(signature);
      return internal::Ed25519Verifies(public_key_, AsBytes(BytesToCosign(text, time)),
                                       signature.subspan(8));
    }
  }
  return false;
}

struct NoteSigner::Key {
  SecretBytes seed;
  NoteVerifier verifier;
};

NoteSigner::NoteSigner(std::unique_ptr<Key> key) : key_(std::move(key)) {}
NoteSigner::NoteSigner(NoteSigner&&) noexcept = default;
NoteSigner& NoteSigner::operator=(NoteSigner&&) noexcept = default;
NoteSigner::~NoteSigner() = default;

NoteSigner NoteSigner::FromSeed(std::string_view name, NoteKeyKind kind, SecretBytes seed) {
  auto key = std::make_unique<Key>();
  key->verifier.name_ = std::string(name);
  key->verifier.kind_ = kind;
  key->verifier.public_key_ = internal::Ed25519PublicKey(seed.Span());
  key->verifier.key_id_ = KeyIdOf(name, kind, key->verifier.public_key_);
  key->seed = std::move(seed);
  return NoteSigner(std::move(key));
}

StatusOr<NoteSigner> NoteSigner::Generate(std::string_view name, Random& random, NoteKeyKind kind) {
  if (!IsKeyName(name)) {
    return Refuse("the key name `" + Visible(name) +
                  "` is not printable ASCII without space and `+`, 1 to 250 characters");
  }
  if (kind == NoteKeyKind::kNone) {
    return Refuse("a key needs a kind");
  }
  Bytes seed(internal::kEd25519SeedBytes);
  random.Fill(seed);
  return FromSeed(name, kind, SecretBytes(std::move(seed)));
}

StatusOr<NoteSigner> NoteSigner::Parse(std::string_view skey) {
  if (!skey.starts_with(kPrivatePrefix)) {
    return Refuse("a private key begins with `PRIVATE+KEY+`");
  }
  ASSIGN_OR_RETURN(KeyText parts, ParseKeyText(skey.substr(kPrivatePrefix.size())));
  NoteSigner signer = FromSeed(parts.name, parts.kind, std::move(parts.key));
  if (signer.key_->verifier.key_id_ != parts.id) {
    return Refuse("the key id of `" + std::string(parts.name) +
                  "` is not that of its name and key");
  }
  return signer;
}

std::string NoteSigner::PrintSecret() const {
  Bytes key = {static_cast<std::uint8_t>(key_->verifier.kind_)};
  const ByteSpan seed = key_->seed.Span();
  key.insert(key.end(), seed.begin(), seed.end());
  std::string text = std::string(kPrivatePrefix) + key_->verifier.name_ + "+" +
                     PrintKeyId(key_->verifier.key_id_) + "+" + PrintBase64(key);
  Wipe(key.data(), key.size());
  return text;
}

NoteVerifier NoteSigner::Verifier() const { return key_->verifier; }

// ---- signing and opening
// --------------------------------------------------------------------------

StatusOr<std::string> NoteSigner::Finish(std::string_view text, const Bytes& prefix,
                                         std::string_view message) const {
  RETURN_IF_ERROR(CheckNoteText(text));
  Bytes payload;
  AppendBigEndian(payload, key_->verifier.key_id_, 4);
  payload.insert(payload.end(), prefix.begin(), prefix.end());
  const auto signature = internal::Ed25519Sign(key_->seed.Span(), AsBytes(message));
  payload.insert(payload.end(), signature.begin(), signature.end());
  return PrintNote(text, key_->verifier.name_, payload);
}

StatusOr<std::string> NoteSigner::Sign(std::string_view text) const {
  if (key_->verifier.kind_ != NoteKeyKind::kEd25519) {
    return Error(StatusCode::kFailedPrecondition,
                 "`" + key_->verifier.name_ + "` is a cosigner's key and signs nothing else");
  }
  return Finish(text, {}, text);
}

StatusOr<std::string> NoteSigner::Cosign(std::string_view text, std::uint64_t unix_seconds) const {
  if (key_->verifier.kind_ != NoteKeyKind::kCosigner) {
    return Error(StatusCode::kFailedPrecondition,
                 "`" + key_->verifier.name_ + "` is not a cosigner's key");
  }
  Bytes time;
  AppendBigEndian(time, unix_seconds, 8);
  return Finish(text, time, BytesToCosign(text, unix_seconds));
}

std::string BytesToCosign(std::string_view text, std::uint64_t unix_seconds) {
  return "cosignature/v1\ntime " + std::to_string(unix_seconds) + "\n" + std::string(text);
}

StatusOr<std::string> NoteFromCosignature(std::string_view text, const NoteVerifier& key,
                                          std::uint64_t unix_seconds, ByteSpan signature) {
  RETURN_IF_ERROR(CheckNoteText(text));
  if (key.Kind() != NoteKeyKind::kCosigner) {
    return Refuse("`" + key.name() + "` is not a cosigner's key");
  }
  Bytes payload;
  AppendBigEndian(payload, unix_seconds, 8);
  payload.insert(payload.end(), signature.begin(), signature.end());
  if (!key.Matches(text, payload)) {
    return Error(StatusCode::kUnauthenticated,
                 "signed note: the signature is not one of `" + key.name() + "` over these bytes");
  }
  Bytes line;
  AppendBigEndian(line, key.KeyId(), 4);
  line.insert(line.end(), payload.begin(), payload.end());
  return PrintNote(text, key.name(), line);
}

StatusOr<std::string> MergeNotes(std::string_view note, std::string_view other) {
  ASSIGN_OR_RETURN(const NoteParts into, SplitNote(note));
  ASSIGN_OR_RETURN(const NoteParts from, SplitNote(other));
  if (into.text != from.text) {
    return Refuse("the two notes sign different texts");
  }
  std::string merged(note);
  std::vector<SignatureLine> lines = into.signatures;
  for (const SignatureLine& line : from.signatures) {
    const bool known = std::any_of(lines.begin(), lines.end(),
                                   [&](const SignatureLine& l) { return l.line == line.line; });
    if (!known) {
      merged += line.line;
      lines.push_back(line);
    }
  }
  if (lines.size() > kMostSignatures || merged.size() > kLongestNote) {
    return Refuse("too many signatures for one note");
  }
  return merged;
}

StatusOr<OpenedNote> OpenNote(std::string_view note, std::span<const NoteVerifier> known) {
  ASSIGN_OR_RETURN(const NoteParts parts, SplitNote(note));
  OpenedNote opened{.text = std::string(parts.text), .signers = {}, .times = {}};
  for (const SignatureLine& line : parts.signatures) {
    for (const NoteVerifier& key : known) {
      if (key.name() != line.name || key.KeyId() != line.id) {
        continue;
      }
      if (!key.Matches(parts.text, line.payload)) {
        return Error(StatusCode::kUnauthenticated,
                     "signed note: the signature of `" + key.name() + "` does not verify");
      }
      const std::uint64_t time =
          key.Kind() == NoteKeyKind::kCosigner ? ReadBigEndian64(line.payload) : 0;
      const auto known_signer = std::find(opened.signers.begin(), opened.signers.end(), key.name());
      if (known_signer == opened.signers.end()) {
        opened.signers.push_back(key.name());
        opened.times.push_back(time);
      } else {
        std::uint64_t& latest = opened.times[static_cast<std::size_t>(
            std::distance(opened.signers.begin(), known_signer))];
        latest = std::max(latest, time);
      }
    }
  }
  if (opened.signers.empty()) {
    return Error(StatusCode::kUnauthenticated, "signed note: no signature of a known key");
  }
  return opened;
}

// ---- heads of logs
// --------------------------------------------------------------------------------

std::string PrintCheckpoint(const Checkpoint& checkpoint) {
  return checkpoint.origin + "\n" + std::to_string(checkpoint.size) + "\n" +
         PrintBase64(checkpoint.root.bytes) + "\n";
}

StatusOr<Checkpoint> ParseCheckpoint(std::string_view text) {
  RETURN_IF_ERROR(Annotate(CheckNoteText(text), "checkpoint"));
  const std::vector<std::string_view> lines = Split(text.substr(0, text.size() - 1), '\n');
  if (lines.size() < 3) {
    return Error(StatusCode::kInvalidArgument, "checkpoint: fewer than three lines");
  }
  if (std::any_of(lines.begin(), lines.end(), [](std::string_view l) { return l.empty(); })) {
    return Error(StatusCode::kInvalidArgument, "checkpoint: an empty line");
  }
  const auto size = ParseUint64(lines[1]);
  // ParseUint64 reads "08"; a size has one spelling only.
  if (!size.ok() || std::to_string(*size) != lines[1]) {
    return Error(StatusCode::kInvalidArgument,
                 "checkpoint: the size is not a decimal number below 2^64");
  }
  const auto root = ParseBase64(lines[2]);
  if (!root.ok() || root->size() != 32) {
    return Error(StatusCode::kInvalidArgument, "checkpoint: the root is not base64 of 32 bytes");
  }
  ASSIGN_OR_RETURN(const Digest digest, DigestFromBytes(*root));
  return Checkpoint{.origin = std::string(lines[0]), .size = *size, .root = digest};
}

StatusOr<Checkpoint> OpenCheckpoint(std::string_view note, const NoteVerifier& key) {
  ASSIGN_OR_RETURN(const OpenedNote opened, OpenNote(note, std::span(&key, 1)));
  ASSIGN_OR_RETURN(Checkpoint checkpoint, ParseCheckpoint(opened.text));
  if (checkpoint.origin != key.name()) {
    return Error(StatusCode::kInvalidArgument,
                 "checkpoint: the origin is not `" + key.name() + "`, whose key signed it");
  }
  return checkpoint;
}

}  // namespace domicile::crypto

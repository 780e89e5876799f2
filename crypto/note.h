// C2SP signed notes with Ed25519, and the checkpoints (heads of logs) written in them.
// Sources: C2SP signed-note, tlog-checkpoint; RFC 8032. Page: docs/formats/signed-note.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "base/status.h"
#include "crypto/secret.h"

namespace domicile::crypto {

// The signature type byte of a key. Stored in key files: append, never renumber.
enum class NoteKeyKind : std::uint8_t {
  kNone = 0,
  kEd25519 = 1,   // signs the text itself
  kCosigner = 4,  // a witness: signs "cosignature/v1\ntime N\n" and the text
};

// A public key with its name: "NAME+KEYID+BASE64". A name is printable ASCII without space and '+'.
// Immutable.
class NoteVerifier {
 public:
  // Errors: kInvalidArgument (form, key id, kind, size); the message does not repeat the key.
  static StatusOr<NoteVerifier> Parse(std::string_view vkey);
  NoteKeyKind Kind() const { return kind_; }
  const std::string& name() const { return name_; }
  std::uint32_t KeyId() const { return key_id_; }
  std::string Print() const;
  // Whether `signature` is this key's over `text`: 64 bytes, or 72 for a cosigner (time,
  // signature).
  bool Matches(std::string_view text, ByteSpan signature) const;
  friend bool operator==(const NoteVerifier&, const NoteVerifier&) = default;

 private:
  friend class NoteSigner;
  std::string name_;
  std::uint32_t key_id_ = 0;
  NoteKeyKind kind_ = NoteKeyKind::kNone;
  std::array<std::uint8_t, 32> public_key_{};
};

// A private key with its name. Wiped when destroyed. Move-only. Thread-safe once made.
class NoteSigner {
 public:
  // A key name: no white space, no '+', not empty; here FEDERATION/role/NAME[/use].
  // Errors: kInvalidArgument (the name).
  static StatusOr<NoteSigner> Generate(std::string_view name, Random& random,
                                       NoteKeyKind kind = NoteKeyKind::kEd25519);
  // From the text of a key file: "PRIVATE+KEY+NAME+KEYID+BASE64" (the Go sumdb form).
  // Errors: kInvalidArgument; the message holds nothing of the key.
  static StatusOr<NoteSigner> Parse(std::string_view skey);

  NoteSigner(NoteSigner&&) noexcept;
  NoteSigner& operator=(NoteSigner&&) noexcept;
  ~NoteSigner();

  std::string PrintSecret() const;  // for the key file, mode 0600
  NoteVerifier Verifier() const;
  // `text` must end in a newline, be UTF-8 and hold no other control character. Returns the note:
  // text, empty line, signature line. Errors: kInvalidArgument (the text), kFailedPrecondition (a
  // cosigner).
  StatusOr<std::string> Sign(std::string_view text) const;
  // Likewise for a cosigner, which states when it saw the text. Errors: kInvalidArgument (the
  // text), kFailedPrecondition (not a cosigner).
  StatusOr<std::string> Cosign(std::string_view text, std::uint64_t unix_seconds) const;

 private:
  struct Key;
  explicit NoteSigner(std::unique_ptr<Key> key);
  static NoteSigner FromSeed(std::string_view name, NoteKeyKind kind, SecretBytes seed);
  // The note over `text`, whose signature is over `message` and follows `prefix`.
  StatusOr<std::string> Finish(std::string_view text, const Bytes& prefix,
                               std::string_view message) const;

  std::unique_ptr<Key> key_;
};

// For keys that live elsewhere (a smart card): the exact bytes that Cosign signs, and the note it
// makes, from a signature of 64 bytes made over them. Errors: kInvalidArgument (the text, not a
// cosigner's key), kUnauthenticated (not this key's signature over these bytes).
std::string BytesToCosign(std::string_view text, std::uint64_t unix_seconds);
StatusOr<std::string> NoteFromCosignature(std::string_view text, const NoteVerifier& key,
                                          std::uint64_t unix_seconds, ByteSpan signature);

// Adds the signature lines of `other` (a note over the same text) to `note`, each line once, for
// approvals by several. Verifies nothing. Errors: kInvalidArgument (form, or another text).
StatusOr<std::string> MergeNotes(std::string_view note, std::string_view other);

struct OpenedNote {
  std::string text;
  std::vector<std::string> signers;  // names of the given keys that signed, each once
  // Of each signer, the latest Unix second at which it says it signed; 0 if its kind says none.
  std::vector<std::uint64_t> times;
};

// Verifies a note. The last empty line splits text and signatures; a key is known by name and key
// id. Signatures of unknown keys are ignored; a bad signature of a known key refuses all. At most 1
// MiB and 100 signatures. Errors: kInvalidArgument (form), kUnauthenticated (no known signature, or
// a bad one).
StatusOr<OpenedNote> OpenNote(std::string_view note, std::span<const NoteVerifier> known);

// The head of a log: origin, number of leaves, root.
struct Checkpoint {
  std::string origin;
  std::uint64_t size = 0;
  Digest root;
  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

std::string PrintCheckpoint(const Checkpoint& checkpoint);
// Extension lines (C2SP allows them) are part of what is signed and are read over here.
// Errors: kInvalidArgument.
StatusOr<Checkpoint> ParseCheckpoint(std::string_view text);
// Opens a note of one key whose name is the origin. Errors: as OpenNote and ParseCheckpoint, and
// kInvalidArgument if the origin is another.
StatusOr<Checkpoint> OpenCheckpoint(std::string_view note, const NoteVerifier& key);

}  // namespace domicile::crypto

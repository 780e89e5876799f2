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

namespace domicile::crypto {

// A public key with its name: "NAME+KEYID+BASE64". Immutable.
class NoteVerifier {
 public:
  static StatusOr<NoteVerifier> Parse(std::string_view vkey);
  const std::string& name() const { return name_; }  // NOLINT(readability-identifier-naming): reads as a member
  std::uint32_t KeyId() const { return key_id_; }
  std::string Print() const;
  // Whether `signature` (64 bytes) is this key's over `text`.
  bool Matches(std::string_view text, ByteSpan signature) const;
  friend bool operator==(const NoteVerifier&, const NoteVerifier&) = default;

 private:
  friend class NoteSigner;
  std::string name_;
  std::uint32_t key_id_ = 0;
  std::array<std::uint8_t, 32> public_key_{};
};

// A private key with its name. Wiped when destroyed. Move-only. Thread-safe once made.
class NoteSigner {
 public:
  // A key name: no white space, no '+', not empty; here FEDERATION/role/NAME[/use].
  static StatusOr<NoteSigner> Generate(std::string_view name, Random& random);
  // From the text of a key file: "PRIVATE+KEY+NAME+KEYID+BASE64" (the Go sumdb form).
  static StatusOr<NoteSigner> Parse(std::string_view skey);

  NoteSigner(NoteSigner&&) noexcept;
  NoteSigner& operator=(NoteSigner&&) noexcept;
  ~NoteSigner();

  std::string PrintSecret() const;  // for the key file, mode 0600
  NoteVerifier Verifier() const;
  // `text` must end in a newline. Returns the note: text, empty line, signature line.
  StatusOr<std::string> Sign(std::string_view text) const;

 private:
  struct Key;
  explicit NoteSigner(std::unique_ptr<Key> key);
  std::unique_ptr<Key> key_;
};

// Adds the signature lines of `other` (a note over the same text) to `note`, for approvals by several.
StatusOr<std::string> MergeNotes(std::string_view note, std::string_view other);

struct OpenedNote {
  std::string text;
  std::vector<std::string> signers;  // names of the given keys that signed, each once
};

// Verifies a note. Signatures of unknown keys are ignored; a bad signature of a known key refuses all.
// Errors: kInvalidArgument (form), kUnauthenticated (no known signature, or a bad one).
StatusOr<OpenedNote> OpenNote(std::string_view note, std::span<const NoteVerifier> known);

// The head of a log: origin, number of leaves, root.
struct Checkpoint {
  std::string origin;
  std::uint64_t size = 0;
  Digest root;
  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

std::string PrintCheckpoint(const Checkpoint& checkpoint);
StatusOr<Checkpoint> ParseCheckpoint(std::string_view text);
// Opens a note of one key whose name is the origin.
StatusOr<Checkpoint> OpenCheckpoint(std::string_view note, const NoteVerifier& key);

}  // namespace domicile::crypto

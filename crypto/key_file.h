// Files that hold a private key: written whole with mode 0600, refused when others could read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "crypto/note.h"
#include "crypto/secret.h"

namespace domicile::crypto {

// Durable, mode 0600. Replaces nothing: an existing file is kAlreadyExists, because a key that is
// overwritten is a key that is lost. Errors also: kPermissionDenied, kNotFound (folder),
// kResourceExhausted, kUnavailable.
Status WriteKeyFile(const std::string& path, std::string_view text);

// At most 64 KiB. Errors: kNotFound; kPermissionDenied (may not be read, or others may read or
// write it: the message says `chmod 600`); kInvalidArgument (not a regular file, too long).
StatusOr<SecretBytes> ReadKeyFile(const std::string& path);

// Note keys: one line of text in each file.
Status WriteNoteKey(const std::string& path, const NoteSigner& signer);
StatusOr<NoteSigner> ReadNoteKey(const std::string& path);
Status WriteNotePublicKey(const std::string& path, const NoteVerifier& verifier);  // mode 0644
StatusOr<NoteVerifier> ReadNotePublicKey(const std::string& path);

}  // namespace domicile::crypto

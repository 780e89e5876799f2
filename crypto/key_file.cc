#include "crypto/key_file.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

namespace domicile::crypto {

namespace {

constexpr std::size_t kLongestKeyFile = std::size_t{1} << 16U;
constexpr std::size_t kLongestPublicKey = 1024;
constexpr unsigned kSecretMode = 0600;
constexpr unsigned kPublicMode = 0644;

std::string Quoted(const std::string& path) { return "`" + path + "`"; }

}  // namespace

Status WriteKeyFile(const std::string& path, std::string_view text) {
  if (FileExists(path)) {
    return Error(StatusCode::kAlreadyExists,
                 Quoted(path) + " exists; a key is never overwritten: choose another name");
  }
  return WriteFileDurably(path, AsBytes(text), kSecretMode);
}

StatusOr<SecretBytes> ReadKeyFile(const std::string& path) {
  const FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.IsOpen()) {
    return ErrnoError(errno, "opening key file " + Quoted(path));
  }
  struct stat facts {};
  if (fstat(file.descriptor(), &facts) != 0) {
    return ErrnoError(errno, "reading key file " + Quoted(path));
  }
  if (!S_ISREG(facts.st_mode)) {
    return Error(StatusCode::kInvalidArgument, Quoted(path) + " is not a regular file");
  }
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error(StatusCode::kPermissionDenied,
                 Quoted(path) + " holds a private key and others may open it: chmod 600 it");
  }
  // One byte more than allowed, so that a file that is too long shows.
  Bytes bytes(kLongestKeyFile + 1);
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = read(file.descriptor(), bytes.data() + size, bytes.size() - size);
    if (got == 0) {
      break;
    }
    if (got < 0 && errno != EINTR) {
      const Status status = ErrnoError(errno, "reading key file " + Quoted(path));
      Wipe(bytes.data(), bytes.size());
      return status;
    }
    size += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  SecretBytes secret(ByteSpan(bytes).first(size));
  Wipe(bytes.data(), bytes.size());
  if (size > kLongestKeyFile) {
    return Error(StatusCode::kInvalidArgument, Quoted(path) + " is longer than any key");
  }
  return secret;
}

Status WriteNoteKey(const std::string& path, const NoteSigner& signer) {
  std::string text = signer.PrintSecret() + "\n";
  const Status status = WriteKeyFile(path, text);
  Wipe(text.data(), text.size());
  return status;
}

StatusOr<NoteSigner> ReadNoteKey(const std::string& path) {
  ASSIGN_OR_RETURN(const SecretBytes text, ReadKeyFile(path));
  auto signer = NoteSigner::Parse(StripWhitespace(text.Text()));
  if (!signer.ok()) {
    return Annotate(signer.status(), Quoted(path));
  }
  return signer;
}

Status WriteNotePublicKey(const std::string& path, const NoteVerifier& verifier) {
  return WriteFileDurably(path, AsBytes(verifier.Print() + "\n"), kPublicMode);
}

StatusOr<NoteVerifier> ReadNotePublicKey(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLongestPublicKey));
  auto verifier = NoteVerifier::Parse(StripWhitespace(text));
  if (!verifier.ok()) {
    return Annotate(verifier.status(), Quoted(path));
  }
  return verifier;
}

}  // namespace domicile::crypto

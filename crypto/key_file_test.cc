#include "crypto/key_file.h"

#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/random.h"

namespace domicile::crypto {
namespace {

// A folder of its own for each test, removed afterwards.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("domicile-key-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    REQUIRE(CreateFolders(path_).ok());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string File(std::string_view name) const { return JoinPath(path_, name); }

 private:
  std::string path_;
};

unsigned ModeOf(const std::string& path) {
  struct stat facts {};
  REQUIRE(stat(path.c_str(), &facts) == 0);
  return facts.st_mode & 07777U;
}

TEST_CASE("WriteKeyFile: nobody else may read the file, and an existing key is kept") {
  const Folder folder;
  const std::string path = folder.File("tls.key");

  CHECK(WriteKeyFile(path, "first").ok());
  const Status second = WriteKeyFile(path, "second");

  CHECK(ModeOf(path) == 0600);
  CHECK(second.code() == StatusCode::kAlreadyExists);
  CHECK(ReadKeyFile(path)->Text() == "first");
}

TEST_CASE("ReadKeyFile: a file that others may open is refused with what to do") {
  const Folder folder;
  const std::string path = folder.File("tls.key");
  REQUIRE(WriteKeyFile(path, "secret-text").ok());
  for (const unsigned mode : {0640U, 0604U, 0620U, 0644U}) {
    CAPTURE(mode);
    REQUIRE(chmod(path.c_str(), mode) == 0);
    const Status status = ReadKeyFile(path).status();
    CHECK(status.code() == StatusCode::kPermissionDenied);
    CHECK(Message(status).find("chmod 600") != std::string_view::npos);
    CHECK(Message(status).find("secret-text") == std::string_view::npos);
  }
  REQUIRE(chmod(path.c_str(), 0400) == 0);
  CHECK(ReadKeyFile(path).ok());
}

TEST_CASE("ReadKeyFile: missing, too long, and not a file are told apart") {
  const Folder folder;
  REQUIRE(WriteKeyFile(folder.File("long"), std::string((1U << 16U) + 1, 'x')).ok());
  CHECK(ReadKeyFile(folder.File("none")).status().code() == StatusCode::kNotFound);
  CHECK(ReadKeyFile(folder.File("long")).status().code() == StatusCode::kInvalidArgument);
  CHECK(ReadKeyFile(folder.File("")).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("Note keys: what was written is read back, and the public file is public") {
  const Folder folder;
  SystemRandom random;
  const NoteSigner signer = *NoteSigner::Generate("fed.example/roster", random);

  REQUIRE(WriteNoteKey(folder.File("roster.key"), signer).ok());
  REQUIRE(WriteNotePublicKey(folder.File("roster.pub"), signer.Verifier()).ok());
  const auto read = ReadNoteKey(folder.File("roster.key"));
  const auto verifier = ReadNotePublicKey(folder.File("roster.pub"));

  REQUIRE(read.ok());
  CHECK(read->Verifier() == signer.Verifier());
  REQUIRE(verifier.ok());
  CHECK(*verifier == signer.Verifier());
  CHECK(ModeOf(folder.File("roster.key")) == 0600);
  CHECK(ModeOf(folder.File("roster.pub")) == 0644);
  // Swapped files are refused, with the path.
  const Status swapped = ReadNotePublicKey(folder.File("roster.key")).status();
  CHECK(swapped.code() == StatusCode::kInvalidArgument);
  CHECK(Message(swapped).find("roster.key") != std::string_view::npos);
}

}  // namespace
}  // namespace domicile::crypto

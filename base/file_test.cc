#include "base/file.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace domicile {
namespace {

// A folder of its own for each test.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "domicile-file-test-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string At(std::string_view name) const { return JoinPath(path_, name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

unsigned ModeOf(const std::string& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777U;
}

TEST_CASE("WriteFileDurably: the whole content, the mode, and no temporary left") {
  const ScratchFolder folder;
  const std::string path = folder.At("state");

  REQUIRE(WriteFileDurably(path, AsBytes("first, longer"), 0640).ok());
  REQUIRE(WriteFileDurably(path, AsBytes("second")).ok());

  CHECK(ReadFile(path, 100).value() == "second");
  CHECK(ModeOf(path) == 0600);
  CHECK(ListFiles(folder.path()).value() == std::vector<std::string>{"state"});
}

TEST_CASE("WriteFileDurably: a failure leaves the old file and no temporary") {
  const ScratchFolder folder;
  const std::string target = folder.At("target");
  REQUIRE(CreateFolders(target).ok());
  REQUIRE(WriteFileDurably(JoinPath(target, "inside"), AsBytes("x")).ok());

  // A folder stands where the file should go, so the rename fails at the end.
  const Status status = WriteFileDurably(target, AsBytes("new"));

  CHECK_FALSE(status.ok());
  CHECK(Message(status).find(target) != std::string_view::npos);
  CHECK(ListFiles(folder.path()).value().empty());
  CHECK(ReadFile(JoinPath(target, "inside"), 10).value() == "x");
}

TEST_CASE("WriteFileDurably: a link planted as the temporary is not followed") {
  const ScratchFolder folder;
  REQUIRE(WriteFileDurably(folder.At("other"), AsBytes("other")).ok());
  REQUIRE(symlink(folder.At("other").c_str(), folder.At("state.tmp").c_str()) == 0);

  CHECK_FALSE(WriteFileDurably(folder.At("state"), AsBytes("new")).ok());
  CHECK(ReadFile(folder.At("other"), 10).value() == "other");
}

TEST_CASE("WriteFileDurably: a folder that is not there is kNotFound") {
  CHECK(WriteFileDurably("/nonexistent/folder/file", AsBytes("x")).code() == StatusCode::kNotFound);
}

TEST_CASE("ReadFile: limits and errors name the file") {
  const ScratchFolder folder;
  const std::string path = folder.At("data");
  REQUIRE(WriteFileDurably(path, AsBytes(std::string(100'000, 'x'))).ok());

  CHECK(ReadFile(path, 100'000).value().size() == 100'000);
  const Status too_long = ReadFile(path, 99'999).status();
  CHECK(too_long.code() == StatusCode::kInvalidArgument);
  CHECK(Message(too_long).find(path) != std::string_view::npos);
  CHECK(ReadFile(folder.At("absent"), 10).status().code() == StatusCode::kNotFound);
  CHECK(ReadFile(folder.path(), 10).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("RemoveTemporaries: only what a crash left goes") {
  const ScratchFolder folder;
  for (const char* name : {"a", "a.tmp", "b.tmp", "c.tmp.kept"}) {
    REQUIRE(WriteFileDurably(folder.At(name), AsBytes("x")).ok());
  }

  REQUIRE(RemoveTemporaries(folder.path()).ok());

  CHECK(ListFiles(folder.path()).value() == std::vector<std::string>{"a", "c.tmp.kept"});
}

TEST_CASE("CreateFolders: parents too, private, twice is fine, a file in the way is not") {
  const ScratchFolder folder;

  REQUIRE(CreateFolders(folder.At("one/two/")).ok());
  CHECK(CreateFolders(folder.At("one/two")).ok());
  CHECK(ModeOf(folder.At("one/two")) == 0700);
  REQUIRE(WriteFileDurably(folder.At("file"), AsBytes("x")).ok());
  CHECK_FALSE(CreateFolders(folder.At("file")).ok());
  CHECK_FALSE(CreateFolders(folder.At("file/inner")).ok());
}

TEST_CASE("ListFiles and RemoveFile: absent folders and files") {
  const ScratchFolder folder;

  CHECK(ListFiles(folder.At("absent")).status().code() == StatusCode::kNotFound);
  CHECK(RemoveFile(folder.At("absent")).ok());
  CHECK_FALSE(RemoveFile(folder.path()).ok());
  CHECK(FileExists(folder.path()));
  CHECK_FALSE(FileExists(folder.At("absent")));
}

TEST_CASE("JoinPath and ResolveBeside: an absolute second part stands alone") {
  CHECK(JoinPath("/a/b", "c") == "/a/b/c");
  CHECK(JoinPath("/a/b", "/c") == "/c");
  CHECK(ResolveBeside("/etc/agent.toml", "grants") == "/etc/grants");
  CHECK(ResolveBeside("agent.toml", "grants") == "./grants");
  CHECK(ResolveBeside("/etc/agent.toml", "/var/x") == "/var/x");
}

TEST_CASE("LockFile: one holder; the next hears who, and gets it when the holder is gone") {
  const ScratchFolder folder;
  const std::string path = folder.At("lock");
  {
    const StatusOr<FileHandle> first = LockFile(path, "agent");
    REQUIRE(first.ok());

    const StatusOr<FileHandle> second = LockFile(path, "agent");

    CHECK(second.status().code() == StatusCode::kFailedPrecondition);
    CHECK(Message(second.status()).find("another agent runs") != std::string_view::npos);
  }
  CHECK(LockFile(path, "agent").ok());
}

TEST_CASE("LockFile: the kernel drops the lock of a process that dies") {
  const ScratchFolder folder;
  const std::string path = folder.At("lock");
  const pid_t child = fork();
  if (child == 0) {
    const StatusOr<FileHandle> held = LockFile(path, "child");
    _exit(held.ok() ? 0 : 1);  // no destructor runs
  }
  int how = 0;
  REQUIRE(waitpid(child, &how, 0) == child);
  REQUIRE(how == 0);

  CHECK(LockFile(path, "parent").ok());
}

TEST_CASE("ErrnoError: codes say what to do") {
  struct Case {
    int error;
    StatusCode want;
  };
  const Case cases[] = {
      {ENOENT, StatusCode::kNotFound},          {EACCES, StatusCode::kPermissionDenied},
      {EROFS, StatusCode::kPermissionDenied},   {ENOSPC, StatusCode::kResourceExhausted},
      {EDQUOT, StatusCode::kResourceExhausted}, {EMFILE, StatusCode::kResourceExhausted},
      {EEXIST, StatusCode::kAlreadyExists},     {EISDIR, StatusCode::kInvalidArgument},
      {EIO, StatusCode::kUnavailable}};
  for (const Case& c : cases) {
    CAPTURE(c.error);
    CHECK(ErrnoError(c.error, "opening `x`").code() == c.want);
  }
  CHECK(Message(ErrnoError(ENOENT, "opening `x`")) == "opening `x`: No such file or directory");
}

TEST_CASE("FileHandle: closes once, by whoever holds it last") {
  int ends[2] = {-1, -1};
  REQUIRE(pipe(ends) == 0);
  FileHandle read_end(ends[0]);
  {
    FileHandle first(ends[1]);
    FileHandle second(std::move(first));
    CHECK_FALSE(first.IsOpen());  // NOLINT(bugprone-use-after-move): what a move leaves
    FileHandle third;
    third = std::move(second);
    CHECK(third.descriptor() == ends[1]);
  }
  char byte = 0;

  CHECK(read(read_end.descriptor(), &byte, 1) == 0);  // end of file: the write end is closed
}

}  // namespace
}  // namespace domicile

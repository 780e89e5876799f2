#include "site_agent/sandbox/file_reader.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <doctest/doctest.h>
#include <fcntl.h>

#include "site_agent/sandbox/lockdown.h"
#include "site_agent/sandbox/locked_child.h"

namespace domicile::site_agent {
namespace {

constexpr std::uint64_t kLargest = 1U << 20U;

struct Folder {
  std::string path;
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "domicile-reader-XXXXXX";
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string Put(const std::string& name, const std::string& text) const {
    // By a rename, as careful editors do.
    REQUIRE(WriteFileDurably(JoinPath(path, name), AsBytes(text)).ok());
    return JoinPath(path, name);
  }
};

TEST_CASE("FileReader: reads its files as they lie there now, and no other") {
  const Folder folder;
  const std::string policy = folder.Put("site.policy.toml", "version = 1");
  const std::string large = folder.Put("large.toml", std::string(kLargest, 'x'));
  const std::string gone = JoinPath(folder.path, "site.policy.toml.sig");
  const StatusOr<FileReader> reader = FileReader::Start({policy, large, gone}, kLargest);
  REQUIRE_MESSAGE(reader.ok(), Message(reader.status()));

  CHECK(reader->Read(policy).value() == "version = 1");
  folder.Put("site.policy.toml", "version = 2");
  CHECK(reader->Read(policy).value() == "version = 2");
  CHECK(reader->Read(gone).status().code() == StatusCode::kNotFound);
  folder.Put("site.policy.toml.sig", "signed");
  CHECK(reader->Read(gone).value() == "signed");
  CHECK(reader->Read(large)->size() == kLargest);
  folder.Put("large.toml", std::string(kLargest + 1, 'x'));
  CHECK_FALSE(reader->Read(large).ok());
  const std::string data = folder.Put("data.csv", "1,2");
  CHECK(reader->Read(data).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("FileReader: goes on reading when the walls around the agent shut the folder") {
  const Folder folder;
  const std::string policy = folder.Put("site.policy.toml", "version = 1");
  const std::string data = folder.Put("data.csv", "1,2");
  const int got = InChild([&] {
    const StatusOr<FileReader> reader = FileReader::Start({policy}, kLargest);
    const auto can_open = [](const std::string& path) {
      return FileHandle(open(path.c_str(), O_RDONLY | O_CLOEXEC)).IsOpen();
    };
    if (!reader.ok() || !can_open(data) || !Apply(AgentLockdown({})).ok()) {
      return 1;
    }
    if (can_open(data) || can_open(policy)) {
      return 2;
    }
    return WriteFileDurably(policy, AsBytes("version = 2")).ok() ? 3
           : reader->Read(policy).value_or("") != "version = 1"  ? 4
                                                                 : 0;
  });
  CHECK(got == 0);
}

TEST_CASE("FileReader: a folder that is not there is an error at the start") {
  const Folder folder;
  const auto reader = FileReader::Start({JoinPath(folder.path, "nowhere/site.toml")}, kLargest);
  CHECK(reader.status().code() == StatusCode::kNotFound);
}

}  // namespace
}  // namespace domicile::site_agent

#include "base/log.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"

namespace domicile {
namespace {

// What `body` writes to standard error.
template <typename Body>
std::string StandardErrorOf(Body body) {
  std::string path = (std::filesystem::temp_directory_path() / "domicile-log-test-XXXXXX").string();
  const FileHandle file(mkstemp(path.data()));
  REQUIRE(file.IsOpen());
  const FileHandle kept(dup(STDERR_FILENO));
  std::fflush(stderr);
  REQUIRE(dup2(file.descriptor(), STDERR_FILENO) >= 0);
  body();
  std::fflush(stderr);
  REQUIRE(dup2(kept.descriptor(), STDERR_FILENO) >= 0);
  std::string text = ReadFile(path, 1U << 20U).value();
  CHECK(RemoveFile(path).ok());
  return text;
}

TEST_CASE("Log: one line an entry, with time, program and level") {
  const std::string text = StandardErrorOf([] {
    StartLog("agent");
    LogInfo("connected");
    LogError("disk full");
  });

  CHECK(text.find("Z agent info    connected\n") == 24 - 1);
  CHECK(text.find(" agent error   disk full\n") != std::string::npos);
}

TEST_CASE("Log: a message cannot forge an entry or drive a terminal, and formats nothing") {
  const std::string text = StandardErrorOf([] {
    StartLog("agent");  // a second start replaces the first
    LogWarning("bad\n2026-12-01 agent info forged \x1b[2J {} %s");
  });

  CHECK(text.find("bad\\x0a2026-12-01 agent info forged \\x1b[2J {} %s\n") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

}  // namespace
}  // namespace domicile

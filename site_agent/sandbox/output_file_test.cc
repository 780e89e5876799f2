#include "site_agent/sandbox/output_file.h"

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "site_agent/sandbox/locked_child.h"

namespace domicile::site_agent {
namespace {

// Runs `body` with redirected output in a child and waits for the copying process too, which comes
// to this process when its parent ends.
void RunRedirected(const std::string& path, std::uint64_t max_bytes, const std::string& text,
                   bool crash) {
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
  const int result = InChild([&] {
    const StatusOr<FileHandle> before = RedirectOutput(path, max_bytes);
    if (!before.ok() || !before->IsOpen()) {
      return 2;
    }
    if (write(STDERR_FILENO, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      return 3;
    }
    if (crash) {
      abort();
    }
    return 0;
  });
  CHECK(result == (crash ? -1 : 0));
  while (waitpid(-1, nullptr, 0) > 0) {
  }
}

}  // namespace

TEST_CASE("RedirectOutput: keeps what fits, drops the rest, and only this user reads it") {
  std::string folder = "/tmp/domicile-output-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = JoinPath(folder, "trainer.log");

  RunRedirected(path, 1000, std::string(5000, 'a'), false);
  const StatusOr<std::string> first = ReadFile(path, 1 << 20);
  RunRedirected(path, 1000, "last words", true);
  const StatusOr<std::string> second = ReadFile(path, 1 << 20);
  const StatusOr<std::string> kept = ReadFile(path + ".1", 1 << 20);

  REQUIRE((first.ok() && second.ok() && kept.ok()));
  CHECK(*first == std::string(1000, 'a'));
  CHECK(second->starts_with("last words"));
  CHECK(*kept == *first);
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  std::system(("rm -rf '" + folder + "'").c_str());
}

TEST_CASE("RedirectOutput: a folder that is not there is an error that names the file") {
  const int result = InChild([] {
    const StatusOr<FileHandle> made = RedirectOutput("/nonexistent/trainer.log", 10);
    return !made.ok() && Message(made.status()).find("trainer.log") != std::string_view::npos ? 0
                                                                                              : 1;
  });

  CHECK(result == 0);
}

}  // namespace domicile::site_agent

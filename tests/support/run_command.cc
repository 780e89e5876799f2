#include "tests/support/run_command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <sys/wait.h>

#include "base/file.h"
#include "tests/support/federation_processes.h"

namespace domicile::test {

namespace {

constexpr std::uint64_t kLargestOutput = std::uint64_t{64} << 20U;

}  // namespace

StatusOr<CommandResult> RunCommand(const std::vector<std::string>& command) {
  const TemporaryFolder folder;
  std::string line;
  for (const std::string& word : command) {
    if (word.find('\'') != std::string::npos) {
      return Error(StatusCode::kInvalidArgument, "a quote in `" + word + "`");
    }
    line += "'" + word + "' ";
  }
  line += "2>'" + folder.In("err") + "' </dev/null";
  std::FILE* const pipe = popen(line.c_str(), "re");
  if (pipe == nullptr) {
    return ErrnoError(errno, "running `" + command.front() + "`");
  }
  CommandResult result;
  std::array<char, 4096> block{};
  for (std::size_t got = 1; got > 0;) {
    got = std::fread(block.data(), 1, block.size(), pipe);
    result.out.append(block.data(), got);
  }
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ASSIGN_OR_RETURN(result.err, ReadFile(folder.In("err"), kLargestOutput));
  return result;
}

std::string FindBytes(const std::string& folder, std::string_view bytes,
                      const std::vector<std::string>& except) {
  using Walk = std::filesystem::recursive_directory_iterator;
  for (Walk entry(folder); entry != Walk(); ++entry) {
    const std::string path = entry->path().string();
    if (std::any_of(except.begin(), except.end(),
                    [&](const std::string& end) { return path.ends_with(end); })) {
      entry.disable_recursion_pending();
      continue;
    }
    if (entry->path().filename().string().find(bytes) != std::string::npos) {
      return path;
    }
    if (entry->is_regular_file()) {
      std::ifstream file(path, std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      if (text.find(bytes) != std::string::npos) {
        return path;
      }
    }
  }
  return {};
}

}  // namespace domicile::test

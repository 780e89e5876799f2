// Every command that docs/policy.md and the pages of the starter policies show is one that runs.
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "cli/command.h"

namespace domicile::cli {
namespace {

namespace fs = std::filesystem;

const std::string kRoot = DOMICILE_SOURCE_DIR;

// The indented lines that call the program, as words; a backslash goes on in the next line.
std::vector<std::vector<std::string>> CommandsOf(const std::string& page) {
  std::vector<std::vector<std::string>> commands;
  std::istringstream lines(page);
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.starts_with("    domicile ")) {
      continue;
    }
    std::string more;
    while (line.ends_with('\\') && std::getline(lines, more)) {
      line.replace(line.size() - 1, 1, more);
    }
    std::istringstream words(line);
    std::vector<std::string> command;
    for (std::string word; words >> word;) {
      command.push_back(word);
    }
    command.erase(command.begin());  // the program's name
    commands.push_back(std::move(command));
  }
  return commands;
}

// Runs the commands of a page in a folder; returns how many there were.
std::size_t RunPage(const std::string& page, const std::string& folder) {
  CAPTURE(page);
  auto text = ReadFile(page, 1U << 20U);
  REQUIRE_MESSAGE(text.ok(), ToString(text.status()));
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  std::size_t count = 0;
  for (const std::vector<std::string>& command : CommandsOf(*text)) {
    std::string shown;
    for (const std::string& word : command) {
      shown += " " + word;
    }
    CAPTURE(shown);
    const FakeClock clock(*ParseTime("2026-12-15T00:00:00Z"));
    SeededRandom random(1);
    std::ostringstream out;
    std::ostringstream err;
    Context context{.clock = clock, .random = random, .out = out, .err = err};

    const int exit = RunProgram(command, context);

    CAPTURE(out.str());
    CAPTURE(err.str());
    // 1 is an answer too: the thing asked about is not so.
    CHECK((exit == 0 || exit == 1));
    CHECK(!out.str().empty());
    ++count;
  }
  fs::current_path(before);
  return count;
}

}  // namespace

TEST_CASE("Guide: every command of docs/policy.md runs as it stands there") {
  CHECK(RunPage(kRoot + "/docs/policy.md", kRoot) >= 8);
}

TEST_CASE("Starter policies: every command of their pages runs in their folder") {
  std::size_t pages = 0;
  for (const auto& entry : fs::directory_iterator(kRoot + "/deploy/policies")) {
    if (entry.is_directory()) {
      CHECK(RunPage(entry.path().string() + "/README.md", entry.path().string()) >= 1);
      ++pages;
    }
  }
  CHECK(pages >= 6);
}

}  // namespace domicile::cli

// Tests only: a command, run as a person at a terminal would, and what came of it.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "cli/command.h"

namespace domicile::cli {

struct Outcome {
  int exit = -1;
  std::string out;
  std::string err;

  bool Says(std::string_view text) const { return out.find(text) != std::string::npos; }
  bool Complains(std::string_view text) const { return err.find(text) != std::string::npos; }
};

inline Outcome RunAt(const Clock& clock, Random& random, const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  Context context{.clock = clock, .random = random, .out = out, .err = err};
  const int exit = RunProgram(args, context);
  return {exit, out.str(), err.str()};
}

inline Outcome RunWith(const std::vector<std::string>& args,
                       std::string_view now = "2026-12-01T00:00:00Z") {
  const FakeClock clock(ParseTime(now).value());
  SeededRandom random(1);
  return RunAt(clock, random, args);
}

// The words of a line; @NAME becomes `path_of(NAME)`.
template <typename PathOf>
std::vector<std::string> Words(const std::string& line, const PathOf& path_of) {
  std::istringstream words(line);
  std::vector<std::string> list;
  for (std::string word; words >> word;) {
    list.push_back(word.starts_with('@') ? path_of(word.substr(1)) : word);
  }
  return list;
}

}  // namespace domicile::cli

// Runs a program to its end as a person at a terminal would: what it printed, and its exit code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace domicile::test {

struct CommandResult {
  int code = -1;  // 128 + signal if one ended it
  std::string out;
  std::string err;
};

// `command`: the program's path, then its arguments, none of them with a quote. Errors:
// kUnavailable if it cannot be run at all.
StatusOr<CommandResult> RunCommand(const std::vector<std::string>& command);

// Whether any file under `folder` has these bytes in it; the first such file, or nothing. Files and
// folders whose names end in one of `except` are not looked at. Names of files count as well.
std::string FindBytes(const std::string& folder, std::string_view bytes,
                      const std::vector<std::string>& except = {});

}  // namespace domicile::test

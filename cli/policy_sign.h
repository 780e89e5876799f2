// `domicile policy sign` and `domicile policy verify`, added to the group of policy.cc.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cli/command.h"

namespace domicile::cli {

// Signs FILE as it is to the byte, by private key files, into FILE.sig: together with the
// signatures that are there for the same bytes. Returns the signers' names. Errors: those of files
// and keys; kInvalidArgument (no TOML).
StatusOr<std::vector<std::string>> SignPolicyFile(const std::string& file,
                                                  std::span<const std::string> key_files,
                                                  WallTime now);

void AddPolicySign(CLI::App& group, Context& context);

}  // namespace domicile::cli

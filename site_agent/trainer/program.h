// A foreign program that trains plans of kind `raw`: its part of trainer.toml, its digest, its
// files (docs/formats/trainer-program.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/status.h"
#include "base/toml.h"
#include "contracts/dataset.h"
#include "site_agent/sandbox/program_walls.h"
#include "site_agent/trainer/program_launcher.h"

namespace domicile::site_agent {

// `[program]` of trainer.toml.
struct ProgramConfig {
  std::string folder;  // of the configuration file: `files` lie below it
  std::vector<std::string> command;
  std::vector<std::string> files;
  std::vector<std::string> libraries;    // resolved paths
  std::vector<std::string> environment;  // NAME=value
  ProgramLimits limits;
  std::uint32_t wall_seconds = 86400;
  std::uint64_t output_bytes = std::uint64_t{16} << 20U;
  std::uint64_t scratch_bytes = std::uint64_t{64} << 20U;
};

// Errors are noted in the table. `file` is the configuration file.
ProgramConfig ReadProgram(TomlTable table, std::string_view file);

// The folder `program` in the trainer's state: what a run is given, and the two files it writes.
class ProgramFolder {
 public:
  // All its paths are absolute: the program has another working folder.
  explicit ProgramFolder(const std::string& state);

  std::string Code() const { return JoinPath(root_, "code"); }
  std::string Input() const { return JoinPath(root_, "input"); }
  std::string Task() const { return JoinPath(Input(), "task.json"); }
  std::string Model() const { return JoinPath(Input(), "model.safetensors"); }
  std::string Delta() const { return JoinPath(root_, "delta.safetensors"); }
  std::string Answer() const { return JoinPath(root_, "answer.json"); }
  std::string Scratch() const { return JoinPath(root_, "scratch"); }
  // Beside it: `program.log`.
  std::string Log() const { return root_ + ".log"; }

 private:
  std::string root_;
};

struct PreparedProgram {
  Digest digest;  // what a grant binds
  ProgramSpec spec;
  FileHandle executable;
};

// Copies the files into the state folder, hashing what it copies, and opens the executable. A
// dataset's number is its place in `descriptions`. Errors: those of reading and writing;
// kInvalidArgument (an executable that is no ELF file, a file that is none).
StatusOr<PreparedProgram> PrepareProgram(
    const ProgramConfig& config, const ProgramFolder& folder, const Digest& trainer,
    const std::vector<contracts::DatasetDescription>& descriptions);

}  // namespace domicile::site_agent

// A process beside the agent that reads a few named files for it, and does nothing else.
//
// Who replaces a policy file puts another file in its place, so reading it anew needs its folder to
// be open, with whatever else lies there: data, perhaps. This process has the folders and no
// network; the agent has the network, and of those folders the bytes of these files alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace domicile::site_agent {

// One thread at a time. The process ends with the object, or with the process that made it.
class FileReader {
 public:
  // `files`: paths; their folders must exist. Call it before the first thread and before Apply.
  // Errors: as ErrnoError; kFailedPrecondition, the walls around it cannot be put up.
  static StatusOr<FileReader> Start(std::vector<std::string> files, std::uint64_t max_bytes);
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&&) = delete;
  ~FileReader();

  // The bytes of one of the files as it lies there now. Errors: those of ReadFile;
  // kInvalidArgument, another file; kUnavailable, the process is gone.
  StatusOr<std::string> Read(const std::string& file) const;

 private:
  FileReader(std::vector<std::string> files, FileHandle socket, int process)
      : files_(std::move(files)), socket_(std::move(socket)), process_(process) {}

  std::vector<std::string> files_;
  FileHandle socket_;
  int process_;  // -1 once moved from
};

}  // namespace domicile::site_agent

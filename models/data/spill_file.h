// A file without a name that holds records until the program ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/status.h"

namespace domicile::models {

// Move-only. One thread at a time.
class SpillFile {
 public:
  // Nobody can open the file by name, and nothing of it is left after the program, however that
  // ends. Errors: those of making a file in `folder`.
  static StatusOr<SpillFile> Create(const std::string& folder, std::uint64_t max_bytes);

  // False, and the records are as before: it would exceed the bound, or the disk is full.
  bool Append(ByteSpan record);
  std::size_t NumRecords() const { return ends_.size(); }
  std::uint64_t SizeBytes() const { return ends_.empty() ? 0 : ends_.back(); }
  // False: the disk no longer gives it. The record must be there.
  bool Read(std::size_t index, Bytes& record) const;
  // Keeps the first `count` records; there must be as many.
  void Truncate(std::size_t count) { ends_.resize(count); }

 private:
  SpillFile(FileHandle file, std::uint64_t max_bytes)
      : file_(std::move(file)), max_bytes_(max_bytes) {}

  FileHandle file_;
  std::uint64_t max_bytes_;
  std::vector<std::uint64_t> ends_;  // of each record in the file
};

}  // namespace domicile::models

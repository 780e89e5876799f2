// Bytes that live as long as somebody sends them.
#pragma once

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace domicile::wire {

// A run of bytes and what keeps it alive. The bytes never change. Copies share. Thread-safe.
//
// shared_ptr: the other owners are the transfers under way. A straggler may still be fetching a
// model when the round has gone on to the next.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  ByteSpan bytes;
};

// Takes the bytes over.
SharedBytes ShareBytes(Bytes bytes);

// Maps a file read-only. The file must not be shortened while it is mapped: fit for files that are
// written once and named by their digest. Errors: as ReadFile in base/file.h.
StatusOr<SharedBytes> MapFile(const std::string& path);

}  // namespace domicile::wire

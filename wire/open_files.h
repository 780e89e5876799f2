// The limit of open files, checked at start: a connected site costs one.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace domicile::wire {

struct OpenFileLimit {
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
  std::uint64_t in_use = 0;
};

// Errors: kUnavailable if the system does not say.
StatusOr<OpenFileLimit> ReadOpenFileLimit();

// Raises the soft limit to the hard one if need be, then says whether `connections` more
// connections fit, with some room for logs and databases. Errors: kResourceExhausted, with the
// limit, what is needed and where to set it.
Status RequireOpenFiles(std::uint64_t connections);

}  // namespace domicile::wire

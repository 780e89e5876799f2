// Snapshots of a PostgreSQL query: the trainer has no network, so what a query gives is frozen into
// a file, by the site's operator and outside the trainer's walls (docs/decisions/0016).
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "contracts/dataset.h"

namespace domicile::site_agent {

struct Snapshot {
  std::string file;
  Digest digest;  // SHA-256 of the file
  std::uint64_t records = 0;
  std::uint64_t columns = 0;
};

// Runs the query of a description of source `postgresql` in one transaction that only reads, and
// writes `file` (RFC 4180) and the file of its digest beside it. Connects as libpq does, by the
// service that the description names or by the environment. Errors: kInvalidArgument (another
// source, a query that is refused, two columns of one name), kUnavailable (no connection),
// kFailedPrecondition (no libpq here), those of writing. No error quotes a cell or a password.
StatusOr<Snapshot> TakeSnapshot(const contracts::DatasetDescription& description,
                                const std::string& file);

}  // namespace domicile::site_agent

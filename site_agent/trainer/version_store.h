// Which dataset versions' statistics have been handed out, and how many records lie between them
// and another: two statistics that differ by one person are that person's row (threat F7). A file
// in the trainer's state folder (docs/formats/trainer-config.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/sqlite.h"
#include "base/status.h"

namespace domicile::site_agent {

// One thread at a time.
class VersionStore {
 public:
  // `:memory:` for tests. Errors: as Database::Open and Migrate.
  static StatusOr<VersionStore> Open(const std::string& path);

  // The fewest records between these (salted digests, any order) and any other version of the alias
  // that was handed out; empty if there is none. Versions with the very same records do not count.
  StatusOr<std::optional<std::uint64_t>> RecordsApart(const DatasetAlias& alias,
                                                      std::span<const Digest> records);

  // Durable when it returns. Again for the same commitment: nothing happens.
  Status Remember(const DatasetAlias& alias, const Digest& commitment,
                  std::span<const Digest> records, WallTime now);

 private:
  explicit VersionStore(Database database) : database_(std::move(database)) {}
  Database database_;
};

}  // namespace domicile::site_agent

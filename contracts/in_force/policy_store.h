// The lives of policy files in the database of the program that works under them
// (contracts/policy_life.h).
#pragma once

#include <string_view>

#include "base/sqlite.h"
#include "base/status.h"
#include "contracts/policy_life.h"

namespace domicile::contracts {

inline constexpr std::string_view kPolicyTables = R"sql(
  CREATE TABLE policy_version (
    source TEXT NOT NULL, waits INTEGER NOT NULL, version INTEGER NOT NULL, digest BLOB NOT NULL,
    text BLOB NOT NULL, since INTEGER NOT NULL, PRIMARY KEY (source, waits))
    STRICT, WITHOUT ROWID;
)sql";

// `source`: "site", "federation", "aggregator", "facts". Nothing known: an empty life.
StatusOr<PolicyLife> FindPolicyLife(Database& db, std::string_view source);
// Inside a transaction.
Status PutPolicyLife(Database& db, std::string_view source, const PolicyLife& life);

}  // namespace domicile::contracts

#include "contracts/in_force/policy_store.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace domicile::contracts {

namespace {

std::int64_t Seconds(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

Status Insert(Database& db, std::string_view source, bool waits, const PolicyVersion& version,
              WallTime since) {
  ASSIGN_OR_RETURN(Statement add,
                   db.Prepare("INSERT INTO policy_version VALUES (?, ?, ?, ?, ?, ?)"));
  return add.Bind(1, source)
      .Bind(2, static_cast<std::int64_t>(waits ? 1 : 0))
      .Bind(3, static_cast<std::int64_t>(version.version))
      .Bind(4, ByteSpan(version.digest.bytes))
      .Bind(5, AsBytes(version.text))
      .Bind(6, Seconds(since))
      .Run();
}

}  // namespace

StatusOr<PolicyLife> FindPolicyLife(Database& db, std::string_view source) {
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare("SELECT waits, version, digest, text, since FROM policy_version "
                              "WHERE source = ?"));
  find.Bind(1, source);
  PolicyLife life;
  while (true) {
    ASSIGN_OR_RETURN(const bool found, find.Step());
    if (!found) {
      return life;
    }
    PolicyVersion version;
    version.version = static_cast<std::uint64_t>(find.Int(1));
    ASSIGN_OR_RETURN(version.digest, DigestFromBytes(find.Blob(2)));
    version.text = std::string(AsText(find.Blob(3)));
    if (find.Int(0) != 0) {
      life.waiting = std::move(version);
      life.waiting_since = WallTime(std::chrono::seconds(find.Int(4)));
    } else {
      life.in_force = std::move(version);
    }
  }
}

Status PutPolicyLife(Database& db, std::string_view source, const PolicyLife& life) {
  ASSIGN_OR_RETURN(Statement remove, db.Prepare("DELETE FROM policy_version WHERE source = ?"));
  RETURN_IF_ERROR(remove.Bind(1, source).Run());
  if (life.in_force) {
    RETURN_IF_ERROR(Insert(db, source, false, *life.in_force, WallTime{}));
  }
  return life.waiting ? Insert(db, source, true, *life.waiting, life.waiting_since) : OkStatus();
}

}  // namespace domicile::contracts

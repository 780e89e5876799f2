#include "site_agent/trainer/use_store.h"

#include <array>
#include <string_view>
#include <utility>

namespace domicile::site_agent {

namespace {

constexpr std::uint32_t kApplicationId = 0x444F4D55;  // "DOMU"
constexpr std::array<std::string_view, 1> kMigrations = {
    "CREATE TABLE job(id TEXT PRIMARY KEY, round INTEGER NOT NULL, phase INTEGER NOT NULL, "
    "model BLOB NOT NULL, denied INTEGER NOT NULL) STRICT, WITHOUT ROWID"};

}  // namespace

StatusOr<UseStore> UseStore::Open(const std::string& path) {
  ASSIGN_OR_RETURN(Database database, Database::Open(path, Database::Mode::kCreate));
  RETURN_IF_ERROR(database.Migrate(kApplicationId, kMigrations));
  return UseStore(std::move(database));
}

StatusOr<policy::Reason> UseStore::Check(const GrantUse& use) {
  ASSIGN_OR_RETURN(Statement find,
                   database_.Prepare("SELECT round, phase, model, denied FROM job WHERE id = ?"));
  find.Bind(1, use.job.text());
  ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) {
    return policy::Reason::kNone;
  }
  if (find.Int(3) != 0) {
    return policy::Reason::kApprovalDenied;
  }
  // The phases of a round come in the order of their numbers.
  const std::pair last(find.Int(0), find.Int(1));
  const std::pair asked(static_cast<std::int64_t>(use.round), static_cast<std::int64_t>(use.phase));
  if (asked > last) {
    return policy::Reason::kNone;
  }
  ASSIGN_OR_RETURN(const Digest model, DigestFromBytes(find.Blob(2)));
  return asked == last && model == use.model ? policy::Reason::kNone : policy::Reason::kGrantUsed;
}

Status UseStore::Remember(const GrantUse& use) {
  ASSIGN_OR_RETURN(Statement put,
                   database_.Prepare("INSERT INTO job VALUES (?1, ?2, ?3, ?4, 0) ON CONFLICT DO "
                                     "UPDATE SET round = ?2, phase = ?3, model = ?4"));
  return put.Bind(1, use.job.text())
      .Bind(2, static_cast<std::int64_t>(use.round))
      .Bind(3, static_cast<std::int64_t>(use.phase))
      .Bind(4, ByteSpan(use.model.bytes))
      .Run();
}

Status UseStore::Deny(const JobId& job) {
  ASSIGN_OR_RETURN(Statement deny,
                   database_.Prepare("INSERT INTO job VALUES (?1, 0, 0, ?2, 1) ON CONFLICT DO "
                                     "UPDATE SET denied = 1"));
  return deny.Bind(1, job.text()).Bind(2, ByteSpan(Digest{}.bytes)).Run();
}

}  // namespace domicile::site_agent

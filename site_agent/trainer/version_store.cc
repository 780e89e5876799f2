#include "site_agent/trainer/version_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "site_agent/datasets/table.h"

namespace domicile::site_agent {

namespace {

constexpr std::uint32_t kApplicationId = 0x444F4D54;  // "DOMT"
constexpr std::array<std::string_view, 1> kMigrations = {
    "CREATE TABLE version(alias TEXT NOT NULL, commitment BLOB NOT NULL, handed_out TEXT NOT NULL, "
    "records BLOB NOT NULL, PRIMARY KEY(alias, commitment)) STRICT"};

StatusOr<std::vector<Digest>> Unpack(const Bytes& packed, const std::string& file) {
  std::vector<Digest> records(packed.size() / sizeof(Digest::bytes));
  if (packed.size() != records.size() * sizeof(Digest::bytes)) {
    return Error(StatusCode::kDataLoss,
                 "database `" + file + "`: record digests of a broken length");
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    std::memcpy(records[i].bytes.data(), packed.data() + i * sizeof(Digest::bytes),
                sizeof(Digest::bytes));
  }
  return records;
}

Bytes Pack(std::span<const Digest> records) {
  std::vector<Digest> sorted(records.begin(), records.end());
  std::sort(sorted.begin(), sorted.end());
  Bytes packed;
  packed.reserve(sorted.size() * sizeof(Digest::bytes));
  for (const Digest& digest : sorted) {
    packed.insert(packed.end(), digest.bytes.begin(), digest.bytes.end());
  }
  return packed;
}

}  // namespace

StatusOr<VersionStore> VersionStore::Open(const std::string& path) {
  ASSIGN_OR_RETURN(Database database, Database::Open(path, Database::Mode::kCreate));
  RETURN_IF_ERROR(database.Migrate(kApplicationId, kMigrations));
  return VersionStore(std::move(database));
}

StatusOr<std::optional<std::uint64_t>> VersionStore::RecordsApart(const DatasetAlias& alias,
                                                                  std::span<const Digest> records) {
  ASSIGN_OR_RETURN(Statement find,
                   database_.Prepare("SELECT records FROM version WHERE alias = ?"));
  find.Bind(1, alias.text());
  std::optional<std::uint64_t> nearest;
  while (true) {
    ASSIGN_OR_RETURN(const bool found, find.Step());
    if (!found) {
      return nearest;
    }
    ASSIGN_OR_RETURN(const std::vector<Digest> earlier, Unpack(find.Blob(0), database_.path()));
    const std::uint64_t apart = CountDifferingRecords(earlier, records);
    if (apart != 0) {
      nearest = std::min(nearest.value_or(apart), apart);
    }
  }
}

Status VersionStore::Remember(const DatasetAlias& alias, const Digest& commitment,
                              std::span<const Digest> records, WallTime now) {
  ASSIGN_OR_RETURN(Statement insert,
                   database_.Prepare("INSERT INTO version(alias, commitment, handed_out, records) "
                                     "VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"));
  insert.Bind(1, alias.text())
      .Bind(2, ByteSpan(commitment.bytes))
      .Bind(3, PrintTime(now))
      .Bind(4, ByteSpan(Pack(records)));
  return insert.Run();
}

}  // namespace domicile::site_agent

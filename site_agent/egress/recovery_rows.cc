// What the store keeps about a recovery: the head that others remember, and datasets that are
// spent.
#include <chrono>
#include <set>
#include <utility>

#include "site_agent/egress/site_store.h"

namespace domicile::site_agent {

StatusOr<std::optional<FoundBehind>> SiteStore::Behind() {
  ASSIGN_OR_RETURN(Statement find, db_->Prepare("SELECT note, instance, leaf FROM behind"));
  ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) {
    return std::optional<FoundBehind>();
  }
  FoundBehind behind{.note = find.Text(0), .instance = static_cast<std::uint64_t>(find.Int(1))};
  if (!find.IsNull(2)) {
    behind.leaf = static_cast<std::uint64_t>(find.Int(2));
  }
  return std::optional(std::move(behind));
}

Status SiteStore::SetBehind(const FoundBehind& found) {
  RETURN_IF_ERROR(ForgetBehind());
  ASSIGN_OR_RETURN(Statement set, db_->Prepare("INSERT INTO behind VALUES (?, ?, ?)"));
  set.Bind(1, std::string_view(found.note)).Bind(2, static_cast<std::int64_t>(found.instance));
  if (found.leaf) {
    set.Bind(3, static_cast<std::int64_t>(*found.leaf));
  }
  return set.Run();
}

Status SiteStore::ForgetBehind() {
  ASSIGN_OR_RETURN(Statement forget, db_->Prepare("DELETE FROM behind"));
  return forget.Run();
}

StatusOr<std::uint64_t> SiteStore::Witnessed() {
  ASSIGN_OR_RETURN(Statement find, db_->Prepare("SELECT witnessed FROM life"));
  ASSIGN_OR_RETURN(const bool row, find.Step());
  DOMICILE_CHECK(row);
  return static_cast<std::uint64_t>(find.Int(0));
}

Status SiteStore::SetWitnessed(std::uint64_t size) {
  ASSIGN_OR_RETURN(Statement set, db_->Prepare("UPDATE life SET witnessed = max(witnessed, ?)"));
  return set.Bind(1, static_cast<std::int64_t>(size)).Run();
}

StatusOr<bool> SiteStore::Spend(const DatasetAlias& dataset, WallTime now) {
  // A second recovery moves the time on: windows pass from the last one.
  ASSIGN_OR_RETURN(const std::optional<WallTime> before, SpentAt(dataset));
  ASSIGN_OR_RETURN(Statement add, db_->Prepare("INSERT INTO spent VALUES (?1, ?2) ON CONFLICT "
                                               "(dataset) DO UPDATE SET at = max(at, ?2)"));
  // Up: as late as the second can be.
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(now).time_since_epoch().count();
  RETURN_IF_ERROR(add.Bind(1, dataset.text()).Bind(2, std::int64_t{seconds}).Run());
  return !before;
}

StatusOr<std::optional<WallTime>> SiteStore::SpentAt(const DatasetAlias& dataset) {
  ASSIGN_OR_RETURN(Statement find, db_->Prepare("SELECT at FROM spent WHERE dataset = ?"));
  find.Bind(1, dataset.text());
  ASSIGN_OR_RETURN(const bool found, find.Step());
  return found ? std::optional(WallTime(std::chrono::seconds(find.Int(0)))) : std::nullopt;
}

StatusOr<std::vector<DatasetAlias>> SiteStore::LedgerDatasets() {
  std::set<DatasetAlias> datasets;
  ASSIGN_OR_RETURN(Statement all,
                   db_->Prepare("SELECT dataset FROM release UNION SELECT dataset FROM run UNION "
                                "SELECT dataset FROM spent"));
  while (true) {
    ASSIGN_OR_RETURN(const bool found, all.Step());
    if (!found) {
      return std::vector<DatasetAlias>(datasets.begin(), datasets.end());
    }
    ASSIGN_OR_RETURN(DatasetAlias dataset, DatasetAlias::Parse(all.Text(0)));
    datasets.insert(std::move(dataset));
  }
}

Status SiteStore::RaiseInstanceTo(std::uint64_t instance) {
  ASSIGN_OR_RETURN(Statement raise, db_->Prepare("UPDATE life SET instance = max(instance, ?)"));
  return raise.Bind(1, static_cast<std::int64_t>(instance)).Run();
}

Status SiteStore::ForgetOutbox() {
  ASSIGN_OR_RETURN(Statement forget, db_->Prepare("DELETE FROM outbox"));
  return forget.Run();
}

}  // namespace domicile::site_agent

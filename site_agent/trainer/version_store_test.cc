#include "site_agent/trainer/version_store.h"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

namespace domicile::site_agent {
namespace {

std::vector<Digest> Records(int first, int last) {
  std::vector<Digest> records;
  for (int i = first; i <= last; ++i) {
    Digest digest;
    digest.bytes[0] = static_cast<std::uint8_t>(i);
    digest.bytes[31] = 1;
    records.push_back(digest);
  }
  return records;
}

Digest Version(std::uint8_t number) {
  Digest digest;
  digest.bytes.fill(number);
  return digest;
}

std::optional<std::uint64_t> Apart(VersionStore& store, const DatasetAlias& alias,
                                   std::vector<Digest> records) {
  const auto apart = store.RecordsApart(alias, records);
  REQUIRE(apart.ok());
  return *apart;
}

}  // namespace

TEST_CASE("VersionStore: counts the records to the nearest other version, by alias") {
  StatusOr<VersionStore> store = VersionStore::Open(":memory:");
  REQUIRE(store.ok());
  const DatasetAlias heart = *DatasetAlias::Parse("heart");
  const DatasetAlias other = *DatasetAlias::Parse("other");

  CHECK_FALSE(Apart(*store, heart, Records(1, 100)).has_value());
  REQUIRE(store->Remember(heart, Version(1), Records(1, 100), WallTime{}).ok());

  CHECK(Apart(*store, heart, Records(1, 101)) == 1);
  CHECK(Apart(*store, heart, Records(21, 100)) == 20);
  CHECK(Apart(*store, heart, Records(11, 105)) == 10);  // ten gone, five new
  CHECK_FALSE(Apart(*store, other, Records(1, 101)).has_value());

  REQUIRE(store->Remember(heart, Version(2), Records(21, 100), WallTime{}).ok());
  CHECK(Apart(*store, heart, Records(22, 100)) == 1);
}

TEST_CASE("VersionStore: the same records in any order are the same question") {
  StatusOr<VersionStore> store = VersionStore::Open(":memory:");
  REQUIRE(store.ok());
  const DatasetAlias heart = *DatasetAlias::Parse("heart");
  std::vector<Digest> reversed = Records(1, 100);
  std::reverse(reversed.begin(), reversed.end());

  for (int again = 0; again < 2; ++again) {
    REQUIRE(store->Remember(heart, Version(1), Records(1, 100), WallTime{}).ok());
    CHECK_FALSE(Apart(*store, heart, reversed).has_value());
  }
  std::vector<Digest> doubled = Records(1, 100);
  doubled.push_back(doubled.front());
  CHECK(Apart(*store, heart, doubled) == 1);
}

}  // namespace domicile::site_agent

#include "cli/demo/partition.h"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

namespace domicile::cli {
namespace {

std::vector<std::uint32_t> Labels() {
  std::vector<std::uint32_t> labels;
  for (std::uint32_t row = 0; row < 1000; ++row) {
    labels.push_back(row * 7 % 10);
  }
  return labels;
}

// How many classes a site has.
std::size_t Classes(const std::vector<std::size_t>& rows) {
  std::set<std::uint32_t> classes;
  for (const std::size_t row : rows) {
    classes.insert(Labels()[row]);
  }
  return classes.size();
}

void CheckIsPartition(const Partition& partition) {
  std::vector<std::size_t> all;
  for (const std::vector<std::size_t>& rows : partition) {
    all.insert(all.end(), rows.begin(), rows.end());
  }
  std::sort(all.begin(), all.end());
  REQUIRE(all.size() == 1000);
  for (std::size_t row = 0; row < all.size(); ++row) {
    CHECK(all[row] == row);
  }
}

TEST_CASE("Split: every row is at one site, and a seed gives the same split") {
  for (int kind = 0; kind < 3; ++kind) {
    CAPTURE(kind);
    const auto split = [kind](std::uint64_t seed) {
      SeededRandom random(seed);
      return kind == 0   ? SplitEvenly(1000, 5, random)
             : kind == 1 ? SplitByDirichlet(Labels(), 5, random)
                         : SplitByClasses(Labels(), 5, random);
    };
    CheckIsPartition(split(1));
    CHECK(split(1) == split(1));
    CHECK(split(1) != split(2));
  }
}

TEST_CASE("Split: evenly dealt sites are alike, others have few classes or uneven shares") {
  SeededRandom random(7);
  for (const std::vector<std::size_t>& rows : SplitEvenly(1000, 5, random)) {
    CHECK(rows.size() == 200);
    CHECK(Classes(rows) == 10);
  }
  for (const std::vector<std::size_t>& rows : SplitByClasses(Labels(), 5, random)) {
    CHECK(rows.size() == 200);
    CHECK(Classes(rows) == 2);
  }
  std::size_t smallest = 1000;
  std::size_t largest = 0;
  for (const std::vector<std::size_t>& rows : SplitByDirichlet(Labels(), 5, random)) {
    smallest = std::min(smallest, rows.size());
    largest = std::max(largest, rows.size());
  }
  CHECK(largest > smallest + 50);
}

TEST_CASE("Split: no rows are no rows") {
  SeededRandom random(7);
  CHECK(SplitByDirichlet({}, 3, random) == Partition(3));
  CHECK(SplitEvenly(0, 3, random) == Partition(3));
}

}  // namespace
}  // namespace domicile::cli

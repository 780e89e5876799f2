#include "wire/open_files.h"

#include <doctest/doctest.h>

#include "base/file.h"

namespace domicile::wire {
namespace {

TEST_CASE("OpenFiles: an open file counts") {
  const auto before = ReadOpenFileLimit();
  REQUIRE(before.ok());
  const auto lock = LockFile(std::string(DOMICILE_BINARY_DIR) + "/open_files_test.lock", "a test");
  REQUIRE(lock.ok());

  const auto after = ReadOpenFileLimit();

  CHECK(after->in_use == before->in_use + 1);
  CHECK(after->soft <= after->hard);
}

TEST_CASE("OpenFiles: few connections fit, more than the limit do not, and the error says so") {
  CHECK(RequireOpenFiles(10).ok());
  const auto limit = ReadOpenFileLimit();
  if (limit->hard < UINT64_MAX) {
    const Status status = RequireOpenFiles(limit->hard);

    CHECK(status.code() == StatusCode::kResourceExhausted);
    CHECK(Message(status).find("LimitNOFILE") != std::string_view::npos);
  }
  CHECK(RequireOpenFiles(UINT64_MAX).code() == StatusCode::kResourceExhausted);
}

TEST_CASE("OpenFiles: the soft limit is raised to the hard one when it has to be") {
  const auto limit = ReadOpenFileLimit();
  REQUIRE(limit.ok());
  REQUIRE(limit->hard > limit->in_use + 100);

  REQUIRE(RequireOpenFiles(limit->hard - limit->in_use - 90).ok());

  CHECK(ReadOpenFileLimit()->soft == limit->hard);
}

}  // namespace
}  // namespace domicile::wire

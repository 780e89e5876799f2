// A log on a disk that is full: at every write of an append in turn, and where a page is missing.
#include "tests/support/full_disk.h"

#include <doctest/doctest.h>

#include "audit/log.h"
#include "audit/verify.h"
#include "tests/support/example_log.h"

namespace domicile::audit {
namespace {

using test::ExampleLog;
using test::Must;

// More than any append writes; a sweep that gets there has met every write.
constexpr std::uint64_t kMostWrites = 200;

// The log as others find it: every stored byte is what was written.
void CheckVerifies(const std::string& path, const ExampleLog& example, std::uint64_t leaves) {
  VerifyOptions options;
  options.key = example.signer.Verifier();
  const VerifyReport report = Must(VerifyLogFile(path, options));
  CAPTURE(PrintReport(report));
  CHECK(report.Intact());
  CHECK(report.size == leaves);
}

// What must hold after an append that found no room, and once there is some again.
void CheckGoesOn(ExampleLog& example, const std::string& path, std::uint64_t before) {
  CHECK_FALSE(example.db.InTransaction());
  CHECK(Must(example.log->Size()) == before);
  CHECK(Must(example.log->Append(test::SiteStarted())) == before);
  CHECK(Must(example.log->Head()).checkpoint.size == before + 1);
  CheckVerifies(path, example, before + 1);
}

TEST_CASE("Log: wherever a disk is full, a leaf of its own is not there and the log goes on") {
  std::uint64_t failures = 0;
  for (std::uint64_t room = 0; room < kMostWrites; ++room) {
    CAPTURE(room);
    const test::TempFolder folder;
    const std::string path = folder.File("agent.db");
    test::FullDisk disk;
    ExampleLog example(path);
    example.Append(test::SiteStory());  // with one more, the eighth leaf completes three subtrees
    example.Append(test::SiteStarted());
    Must(example.log->Head().status());
    disk.FillAfter(room);

    const StatusOr<std::uint64_t> appended = example.log->Append(test::SiteStarted());
    const bool was_full = disk.WasFull();
    disk.MakeRoom();

    if (!was_full) {
      CHECK(appended.ok());
      break;
    }
    ++failures;
    CHECK(appended.status().code() == StatusCode::kResourceExhausted);
    CHECK(Message(appended.status()).find("agent.db") != std::string::npos);
    CheckGoesOn(example, path, 7);
  }
  CHECK(failures > 1);
  CHECK(failures < kMostWrites);
}

TEST_CASE("Log: wherever a disk is full, a head is not signed before it is stored") {
  std::uint64_t failures = 0;
  for (std::uint64_t room = 0; room < kMostWrites; ++room) {
    CAPTURE(room);
    const test::TempFolder folder;
    const std::string path = folder.File("agent.db");
    test::FullDisk disk;
    ExampleLog example(path);
    example.Append(test::SiteStory());
    disk.FillAfter(room);

    const StatusOr<SignedHead> head = example.log->Head();
    const bool was_full = disk.WasFull();
    disk.MakeRoom();

    if (!was_full) {
      CHECK(head.ok());
      break;
    }
    ++failures;
    CHECK(head.status().code() == StatusCode::kResourceExhausted);
    CheckGoesOn(example, path, 6);
  }
  CHECK(failures > 1);
  CHECK(failures < kMostWrites);
}

TEST_CASE("Log: a transaction that finds no page is rolled back by SQLite itself, and said so") {
  const test::TempFolder folder;
  const std::string path = folder.File("agent.db");
  ExampleLog example(path);
  Must(example.db.Execute("CREATE TABLE state (n INTEGER NOT NULL) STRICT"));
  example.Append(test::SiteStory());
  const std::uint64_t before = 6;
  Must(example.db.Execute("PRAGMA max_page_count = 1"));  // SQLite keeps what there is

  // Appends until a page is missing, each with a row of state.
  Status failed = OkStatus();
  std::uint64_t kept = 0;
  while (failed.ok() && kept < kMostWrites) {
    Transaction transaction = Must(Transaction::Begin(example.db));
    Must(example.db.Execute("INSERT INTO state VALUES (1)"));
    failed = example.log->Append(test::SiteStarted()).status();
    if (failed.ok()) {
      Must(transaction.Commit());
      ++kept;
    }
  }

  CHECK(failed.code() == StatusCode::kResourceExhausted);
  CHECK(Must(example.log->Size()) == before + kept);
  Statement rows = Must(example.db.Prepare("SELECT count(*) FROM state"));
  REQUIRE(Must(rows.Step()));
  CHECK(rows.Int(0) == static_cast<std::int64_t>(kept));
  rows.Reset();
  Must(example.db.Execute("PRAGMA max_page_count = 1000000"));
  CheckGoesOn(example, path, before + kept);
}

}  // namespace
}  // namespace domicile::audit

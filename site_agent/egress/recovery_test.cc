// A site whose books were restored from an older copy: found, gone on from, and what is spent.
#include "audit/recovery.h"

#include <filesystem>
#include <functional>
#include <limits>

#include <doctest/doctest.h>

#include "site_agent/egress/books.h"
#include "site_agent/egress/testing.h"

namespace domicile::site_agent {
namespace {

const DatasetAlias kLung = Must(DatasetAlias::Parse("lung"));
const PhaseId kNowhere = Phase(contracts::PhaseKind::kNone, 0);
constexpr double kEverything = std::numeric_limits<double>::max();

// A copy of the books was put back after they had gone on.
struct RestoredDesk {
  RestoredDesk() {
    Must(desk.Open().Append(test::SiteStarted()).status());
    desk.Close();
    std::filesystem::copy(desk.Folder(), Folder(), std::filesystem::copy_options::recursive);
    desk.Reopen();
    for (int i = 0; i < 4; ++i) {
      Must(desk.Open().Append(test::SiteStarted()).status());
    }
    head = Must(desk.Open().HeadSince(0)).head;
    desk.Close();
    Reopen();
  }
  std::string Folder() const { return desk.Beside("copy"); }
  void Reopen() {
    books = nullptr;
    books = Must(desk.TryOpen(Folder()));
  }
  std::uint64_t Size() { return Must(books->HeadSince(0)).head.checkpoint.size; }
  double Released(const DatasetAlias& dataset) {
    return Must(
        books->With([&](SiteStore& store) { return store.ReleasedPerRecord(dataset, kNowhere); }));
  }
  Desk desk;
  audit::SignedHead head;  // of the books that are lost
  std::unique_ptr<Books> books;
};

const Books::RecoveryOrder kOrder{.operator_name = "ada", .datasets = {kHeartData}};

TEST_CASE("Recovery: a copy finds itself behind, keeps the head, and says so at every start") {
  RestoredDesk restored;
  CHECK(restored.books->CheckNotBehind().ok());

  const Status found = restored.books->CheckRemembered(restored.head.note, 3);

  CHECK(found.code() == StatusCode::kDataLoss);
  CHECK(Message(found).find("domicile site recover") != std::string_view::npos);
  restored.Reopen();
  CHECK(restored.books->CheckNotBehind().code() == StatusCode::kDataLoss);
  CHECK_FALSE(Must(restored.books->RecoveryToShow()).has_value());
}

TEST_CASE("Recovery: only what this site's own key has signed is believed") {
  RestoredDesk restored;
  const crypto::NoteSigner other = test::ExampleSigner(test::kSiteLog, 9);
  const std::string forged =
      Must(other.Sign(crypto::PrintCheckpoint({.origin = test::kSiteLog, .size = 99, .root = {}})));

  CHECK(restored.books->CheckRemembered(forged, 3).code() == StatusCode::kUnauthenticated);
  CHECK(restored.books->CheckNotBehind().ok());
  CHECK(restored.books->CheckRemembered("", 3).ok());
  const std::string own = Must(restored.books->HeadSince(0)).head.note;
  CHECK(restored.books->CheckRemembered(own, 3).ok());
}

TEST_CASE("Recovery: without a head that this log lacks there is nothing to recover") {
  RestoredDesk restored;
  const std::uint64_t before = restored.Size();

  CHECK(restored.books->Recover(kOrder).status().code() == StatusCode::kFailedPrecondition);
  CHECK(restored.books->PlanRecovery(kOrder).status().code() == StatusCode::kFailedPrecondition);
  CHECK(restored.Size() == before);
}

TEST_CASE("Recovery: leaf, spent datasets, instance and outbox change together, once") {
  RestoredDesk restored;
  const PhaseId left = Phase(contracts::PhaseKind::kTrain);
  Must(restored.books->With([&](SiteStore& store) -> Status {
    RETURN_IF_ERROR(store.AddRelease({.dataset = kLung,
                                      .dataset_commitment = {},
                                      .phase = left,
                                      .transfer = test::ExampleDigest(1),
                                      .numbers = 10,
                                      .records = 100,
                                      .bytes = 50}));
    return store.AddOutbox({.phase = left,
                            .digest = test::ExampleDigest(1),
                            .size_bytes = 50,
                            .base_model = {},
                            .policy = {},
                            .leaf = 0,
                            .numbers = 10,
                            .records = 100});
  }));
  CHECK(restored.books->CheckRemembered(restored.head.note, 40).code() == StatusCode::kDataLoss);
  const std::uint64_t before = restored.Size();
  const audit::LogRecovered planned = Must(restored.books->PlanRecovery(kOrder));
  CHECK(restored.Size() == before);
  CHECK(restored.Released(kHeartData) == 0);
  // A name that is none: nothing is changed.
  CHECK(restored.books->Recover({.operator_name = "Ada L.", .datasets = {}}).status().code() ==
        StatusCode::kInvalidArgument);
  CHECK(restored.Size() == before);

  const audit::LogRecovered done = Must(restored.books->Recover(kOrder));

  CHECK(done == planned);
  CHECK(done.instance == 41);
  CHECK(done.size == before);
  CHECK(done.remembered_size == restored.head.checkpoint.size);
  CHECK(done.datasets == std::vector<DatasetAlias>{kHeartData, kLung});
  CHECK(restored.Size() == before + 1);
  CHECK(restored.Released(kHeartData) == kEverything);
  CHECK(restored.Released(kLung) == kEverything);
  CHECK(restored.Released(Must(DatasetAlias::Parse("liver"))) == 0);
  CHECK(Must(restored.books->With([](SiteStore& store) { return store.Outbox(); })).empty());
  CHECK(restored.books->Recover(kOrder).status().code() == StatusCode::kFailedPrecondition);
  restored.Reopen();
  CHECK(restored.books->Instance() == 42);
  CHECK(restored.books->CheckNotBehind().ok());
}

TEST_CASE("Recovery: the aggregator is shown the entry until it is known to have taken it") {
  RestoredDesk restored;
  const crypto::NoteVerifier key = test::ExampleSigner(test::kSiteLog).Verifier();
  CHECK_FALSE(restored.books->CheckRemembered(restored.head.note, 1).ok());
  // The copy may have grown past what is remembered.
  SUBCASE("shorter") {}
  SUBCASE("longer") {
    for (int i = 0; i < 9; ++i) {
      Must(restored.books->Append(test::SiteStarted()).status());
    }
  }
  Must(restored.books->Recover(kOrder).status());

  const auto claim = Must(restored.books->RecoveryToShow());

  REQUIRE(claim.has_value());
  CHECK(audit::CheckRecovery(*claim, key, restored.head.checkpoint).ok());
  CHECK(restored.books->CheckRemembered(claim->head_note, 41).ok());
  CHECK_FALSE(Must(restored.books->RecoveryToShow()).has_value());
}

TEST_CASE("Recovery: a ledger of an older day under the recovered log is spent all the same") {
  RestoredDesk restored;
  CHECK_FALSE(restored.books->CheckRemembered(restored.head.note, 1).ok());
  Must(restored.books->Recover(kOrder).status());
  Must(restored.books->With([](SiteStore& store) -> Status {
    ASSIGN_OR_RETURN(Statement forget, store.Db().Prepare("DELETE FROM spent"));
    return forget.Run();
  }));
  CHECK(restored.Released(kHeartData) == 0);

  restored.Reopen();

  CHECK(restored.Released(kHeartData) == kEverything);
}

TEST_CASE("Recovery: windows pass, what counts for good stays spent") {
  RestoredDesk restored;
  const WallTime now = test::kExampleTime;
  const auto day = std::chrono::hours(24);
  Must(restored.books->With(
      [&](SiteStore& store) { return store.Spend(kHeartData, now).status(); }));
  restored.books->With([&](SiteStore& store) {
    CHECK(Must(store.RunsSince(kHeartData, now - day, kJob)) > 1'000'000'000);
    CHECK(Must(store.RunsSince(kHeartData, now + std::chrono::seconds(1), kJob)) == 0);
    CHECK(Must(store.EpsilonSpent(kHeartData, now - day, kJob)) == kEverything);
    CHECK(Must(store.EpsilonSpent(kHeartData, now + std::chrono::seconds(1), kJob)) == 0);
    CHECK(Must(store.EpsilonSpent(kHeartData, std::nullopt, kJob)) == kEverything);
    CHECK(Must(store.EpsilonSpent(kLung, std::nullopt, kJob)) == 0);
  });
}

}  // namespace
}  // namespace domicile::site_agent

#include "site_agent/egress/books.h"

#include <doctest/doctest.h>

#include "audit/records.h"
#include "site_agent/egress/testing.h"

namespace domicile::site_agent {
namespace {

TEST_CASE("Books: rows and leaf are there together or not at all") {
  Desk desk;
  const auto work = [](bool fails) {
    return [fails](SiteStore& store, std::uint64_t leaf) -> StatusOr<audit::Event> {
      CHECK(leaf == 0);
      Must(store.SetAggregatorStarts(9));
      if (fails) {
        return Error(StatusCode::kUnavailable, "no");
      }
      return test::SiteStarted();
    };
  };

  CHECK(desk.Open().Record(work(true)).status().code() == StatusCode::kUnavailable);
  CHECK(Must(desk.Open().With([](SiteStore& store) { return store.AggregatorStarts(); })) == 0);
  CHECK(desk.NumLeaves() == 0);
  CHECK(Must(desk.Open().Record(work(false))) == 0);
  CHECK(Must(desk.Open().With([](SiteStore& store) { return store.AggregatorStarts(); })) == 9);
  CHECK(desk.NumLeaves() == 1);
}

TEST_CASE("Books: the log goes on over restarts") {
  Desk desk;
  CHECK(desk.Open().Instance() == 1);
  Must(desk.Open().Append(test::SiteStarted()).status());
  const auto before = Must(desk.Open().HeadSince(0)).head;
  const auto other = [](std::uint64_t size) {
    return Must(test::ExampleSigner(test::kSiteLog)
                    .Sign(crypto::PrintCheckpoint(
                        {.origin = test::kSiteLog, .size = size, .root = ExampleDigest(1)})));
  };

  desk.Reopen();
  CHECK(desk.Open().Instance() == 2);
  CHECK(Must(desk.Open().Append(test::SiteStarted())) == 1);
  CHECK(desk.Open().CheckRemembered(before.note, 1).ok());
  CHECK(desk.Open().CheckRemembered(other(1), 1).code() == StatusCode::kDataLoss);
  // A backup that was restored: others remember more than there is.
  CHECK(desk.Open().CheckRemembered(other(5), 1).code() == StatusCode::kDataLoss);
}

TEST_CASE("Books: a log whose leaf was changed does not open") {
  Desk desk;
  for (int i = 0; i < 3; ++i) {
    Must(desk.Open().Append(test::SiteStarted()).status());
  }
  Must(desk.Open().HeadSince(0).status());
  std::string change;
  SUBCASE("another byte") {
    change =
        "UPDATE log_leaf SET bytes = CAST(replace(CAST(bytes AS TEXT), 'charite', 'charito') "
        "AS BLOB) WHERE seq = 1";
  }
  SUBCASE("a leaf removed") { change = "DELETE FROM log_leaf WHERE seq = 2"; }
  SUBCASE("a hash to go with it") {
    change = "UPDATE log_leaf SET hash = zeroblob(32) WHERE seq = 0";
  }
  Must(desk.Open().With([&](SiteStore& store) -> Status {
    ASSIGN_OR_RETURN(Statement run, store.Db().Prepare(change));
    RETURN_IF_ERROR(run.Run());
    CHECK(store.Db().Changes() == 1);
    return OkStatus();
  }));

  desk.Close();
  CHECK(desk.TryOpen(desk.Folder()).status().code() == StatusCode::kDataLoss);
}

TEST_CASE("Books: a ledger that lacks what the log says has left counts it as spent") {
  Desk desk;
  const Digest digest = ExampleDigest(4);
  const audit::EgressDecided decided = Must(audit::ReadEgressDecided(test::Decided(digest)));
  const PhaseId phase{
      .job = decided.key.job, .round = decided.key.round, .phase = contracts::PhaseKind::kTrain};
  const auto spent = [&] {
    return Must(desk.Open().With([&](SiteStore& store) {
      return store.ReleasedPerRecord(decided.dataset, Phase(contracts::PhaseKind::kNone, 0));
    }));
  };
  // The leaf as the gate writes it, with its row of the ledger ...
  Must(desk.Open()
           .Record([&](SiteStore& store, std::uint64_t) -> StatusOr<audit::Event> {
             RETURN_IF_ERROR(store.AddRelease({.dataset = decided.dataset,
                                               .dataset_commitment = ExampleDigest(7),
                                               .phase = phase,
                                               .transfer = digest,
                                               .numbers = decided.numbers,
                                               .records = 100,
                                               .bytes = decided.bytes}));
             return test::Decided(digest);
           })
           .status());
  const double once = static_cast<double>(decided.numbers) / 100;
  CHECK(spent() == doctest::Approx(once));
  desk.Reopen();
  CHECK(spent() == doctest::Approx(once));  // nothing is charged twice
  CHECK(desk.NumLeaves() == 1);

  // ... and the ledger of an older day under the log of today.
  Must(desk.Open().With([](SiteStore& store) -> Status {
    ASSIGN_OR_RETURN(Statement forget, store.Db().Prepare("DELETE FROM release"));
    return forget.Run();
  }));
  CHECK(spent() == 0);
  desk.Reopen();

  // As if one record were behind it: how many there were, only the ledger knew.
  CHECK(spent() == doctest::Approx(static_cast<double>(decided.numbers)));
  CHECK(desk.LastLeaf().type() == audit::EventType::kLedgerRestored);
  CHECK(desk.LastLeaf().Int("entries") == 1);
  desk.Reopen();
  CHECK(desk.NumLeaves() == 2);  // told once
}

TEST_CASE("Books: the aggregator's head may only grow from what was seen") {
  Desk desk;
  const crypto::NoteSigner signer = test::ExampleSigner(test::kAggregatorLog, 5);
  // A log of one leaf, then another of one leaf: a second history.
  const auto head = [&](const std::string& leaf) {
    return Must(signer.Sign(crypto::PrintCheckpoint(
        {.origin = test::kAggregatorLog, .size = 1, .root = ExampleDigest(leaf == "a" ? 1 : 2)})));
  };

  CHECK(desk.Open().WitnessPeerHead(head("a"), signer.Verifier(), {}).ok());
  CHECK(desk.LastLeaf().type() == audit::EventType::kHeadWitnessed);
  CHECK(desk.Open().WitnessPeerHead(head("a"), signer.Verifier(), {}).ok());
  CHECK(desk.NumLeaves() == 1);  // nothing new to say
  CHECK(desk.Open().WitnessPeerHead(head("b"), signer.Verifier(), {}).status().code() ==
        StatusCode::kDataLoss);
  CHECK(Must(desk.Open().LastPeerHead(test::kAggregatorLog)) == head("a"));
}

}  // namespace
}  // namespace domicile::site_agent

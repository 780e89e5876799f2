#include "site_agent/egress/books.h"

#include <doctest/doctest.h>

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
  const auto before = Must(desk.Open().HeadSince(0)).head.checkpoint;

  desk.Reopen();
  CHECK(desk.Open().Instance() == 2);
  CHECK(Must(desk.Open().Append(test::SiteStarted())) == 1);
  CHECK(desk.Open().CheckRemembered(before.size, before.root).ok());
  CHECK(desk.Open().CheckRemembered(before.size, ExampleDigest(1)).code() == StatusCode::kDataLoss);
  // A backup that was restored: others remember more than there is.
  CHECK(desk.Open().CheckRemembered(5, ExampleDigest(1)).code() == StatusCode::kDataLoss);
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

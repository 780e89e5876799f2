// The gate's last step on a disk that is full: wherever a write fails, the row, the ledger and the
// leaf are all there or none is, and the same update can be let through when there is room.
#include "tests/support/full_disk.h"

#include <doctest/doctest.h>

#include "audit/verify.h"
#include "site_agent/egress/outbox.h"
#include "site_agent/egress/testing.h"

namespace domicile::site_agent {
namespace {

using policy::Reason;

// More than an update writes; a sweep that gets there has met every write.
constexpr std::uint64_t kMostWrites = 100;
const std::string kUpdate = "an update";

Release ReleaseOf(const PhaseId& phase) {
  const Digest digest = crypto::TreeDigest(AsBytes(kUpdate));
  Release release;
  release.row = {.phase = phase,
                 .digest = digest,
                 .size_bytes = kUpdate.size(),
                 .base_model = ExampleDigest(1),
                 .policy = ExampleDigest(2),
                 .leaf = 0,
                 .numbers = 39,
                 .records = 196};
  release.decided = {.key = LogKey(phase, {1, 1}),
                     .transfer = digest,
                     .kinds = {"delta.plain"},
                     .dataset = kHeartData,
                     .from = test::kSite,
                     .to = test::kAggregator,
                     .decision = test::ExampleDecision(),
                     .bytes = kUpdate.size(),
                     .numbers = 39,
                     .capacity_bits = 39 * 34,
                     .cohort_bucket = 0,
                     .grant = ExampleDigest(3)};
  return release;
}

Reason Put(Desk& desk, const PhaseId& phase) {
  const auto put = PutInOutbox(desk.Open(), ReleaseOf(phase), AsBytes(kUpdate), std::stop_token{});
  return std::holds_alternative<Reason>(put) ? std::get<Reason>(put) : Reason::kNone;
}

// Whether all three say that the update was let through; that they agree is checked.
bool IsLetThrough(Desk& desk, const PhaseId& phase) {
  const bool has_row =
      Must(desk.Open().With([&](SiteStore& store) { return store.FindOutbox(phase); })).has_value();
  const double charged = Must(desk.Open().With([](SiteStore& store) {
    return store.ReleasedPerRecord(kHeartData, Phase(contracts::PhaseKind::kNone, 0));
  }));
  const bool has_leaf =
      desk.NumLeaves() > 0 && desk.LastLeaf().type() == audit::EventType::kEgressDecided;
  // 39 numbers over 196 records, and never less.
  CHECK(charged >= (has_row ? 39.0 / 196 : 0.0));
  CHECK(charged <= (has_row ? 0.2 : 0.0));
  CHECK(has_leaf == has_row);
  return has_row;
}

void CheckLog(const Desk& desk) {
  const auto report = Must(audit::VerifyLogFile(desk.Folder() + "/agent.db", {}));
  CHECK_MESSAGE(report.Intact(), audit::PrintReport(report));
}

}  // namespace

TEST_CASE("PutInOutbox: wherever a disk is full, nothing is let through, and later it can be") {
  const PhaseId phase = Phase(contracts::PhaseKind::kTrain);
  std::uint64_t failures = 0;
  for (std::uint64_t room = 0; room < kMostWrites; ++room) {
    CAPTURE(room);
    test::FullDisk disk;
    Desk desk;
    desk.PutJob(HeartPlan(), ZeroModel(HeartPlan()));
    Must(desk.Open().Append(test::SiteStarted()).status());
    disk.FillAfter(room);

    const Reason reason = Put(desk, phase);
    const bool was_full = disk.WasFull();
    disk.MakeRoom();

    CHECK(reason == (was_full ? Reason::kDiskFull : Reason::kNone));
    CHECK(IsLetThrough(desk, phase) == !was_full);
    if (was_full) {
      ++failures;
      CHECK(Put(desk, phase) == Reason::kNone);
      CHECK(IsLetThrough(desk, phase));
    }
    CheckLog(desk);
    desk.Reopen();  // what was let through is still there, and an orphan's file is not in the way
    CHECK(IsLetThrough(desk, phase));
    if (!was_full) {
      break;
    }
  }
  CHECK(failures > 1);
  CHECK(failures < kMostWrites);
}

TEST_CASE("SettleCommit: wherever a disk is full, the outcome is not known yet, and later it is") {
  const PhaseId phase = Phase(contracts::PhaseKind::kTrain);
  const SiteId self = Must(SiteId::Parse("charite"));
  const Digest digest = crypto::TreeDigest(AsBytes(kUpdate));
  std::uint64_t failures = 0;
  for (std::uint64_t room = 0; room < kMostWrites; ++room) {
    CAPTURE(room);
    test::FullDisk disk;
    Desk desk;
    desk.PutJob(HeartPlan(), ZeroModel(HeartPlan()));
    REQUIRE(Put(desk, phase) == Reason::kNone);
    const auto commit = Commit(phase, ExampleDigest(9), {{self, digest, 196}});
    const auto settle = [&] { return SettleCommit(desk.Open(), self, phase, 10, commit); };
    disk.FillAfter(room);

    const Status settled = settle();
    const bool was_full = disk.WasFull();
    disk.MakeRoom();

    CHECK(settled.ok() == !was_full);
    if (was_full) {
      ++failures;
      CHECK(settled.code() == StatusCode::kResourceExhausted);
      CHECK(IsLetThrough(desk, phase));
      CHECK(desk.FindJob().train_commits == 0);
      Must(settle());
    }
    CHECK(desk.LastLeaf().type() == audit::EventType::kUpdateCounted);
    CHECK(desk.FindJob().train_commits == 1);
    CheckLog(desk);
    if (!was_full) {
      break;
    }
  }
  CHECK(failures > 1);
  CHECK(failures < kMostWrites);
}

}  // namespace domicile::site_agent

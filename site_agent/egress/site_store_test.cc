#include "site_agent/egress/site_store.h"

#include <chrono>

#include <doctest/doctest.h>

#include "site_agent/egress/testing.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;

struct Folder {
  test::TempFolder parent;
  std::string path = parent.File("state");
  StatusOr<SiteStore> Open() const { return SiteStore::Open(path); }
};

OutboxRow Row(const PhaseId& phase, std::uint8_t fill) {
  return {.phase = phase,
          .digest = ExampleDigest(fill),
          .size_bytes = 512,
          .base_model = ExampleDigest(2),
          .policy = ExampleDigest(3),
          .leaf = 7,
          .numbers = 17,
          .records = 196};
}

ReleaseRow Left(const DatasetAlias& dataset, const PhaseId& phase, const Digest& transfer,
                std::uint64_t numbers, std::uint64_t records) {
  return {.dataset = dataset,
          .dataset_commitment = ExampleDigest(7),
          .phase = phase,
          .transfer = transfer,
          .numbers = numbers,
          .records = records,
          .bytes = 512};
}

TEST_CASE("SiteStore: each start has a greater instance number") {
  const Folder folder;
  for (std::uint64_t start = 1; start <= 3; ++start) {
    CHECK(Must(folder.Open()).Instance() == start);
  }
}

TEST_CASE("SiteStore: a second agent on the same folder is refused") {
  const Folder folder;
  {
    const SiteStore first = Must(folder.Open());
    const auto second = folder.Open();
    CHECK_FALSE(second.ok());
    CHECK(std::string(Message(second.status())).find("agent") != std::string::npos);
    CHECK(first.Instance() == 1);
  }
  CHECK(Must(folder.Open()).Instance() == 2);  // the refused one raised nothing
}

TEST_CASE("SiteStore: a database of another kind is refused and left alone") {
  const Folder folder;
  Must(CreateFolders(folder.path));
  const std::string path = JoinPath(folder.path, "agent.db");
  {
    Database other = Must(Database::Open(path, Database::Mode::kCreate));
    const std::array<std::string_view, 1> tables = {"CREATE TABLE mine (x INTEGER) STRICT;"};
    Must(other.Migrate(0x12345678, tables));
  }

  CHECK(folder.Open().status().code() == StatusCode::kFailedPrecondition);
  Database other = Must(Database::Open(path, Database::Mode::kCreate));
  CHECK(other.Prepare("SELECT x FROM mine").ok());
}

TEST_CASE("SiteStore: what is no database is refused") {
  const Folder folder;
  Must(CreateFolders(folder.path));
  Must(WriteFileDurably(JoinPath(folder.path, "agent.db"), AsBytes(std::string(5000, 'x'))));

  CHECK(folder.Open().status().code() == StatusCode::kDataLoss);
}

TEST_CASE("SiteStore: starts of the aggregator only grow") {
  const Folder folder;
  SiteStore store = Must(folder.Open());

  Must(store.SetAggregatorStarts(3));
  Must(store.SetAggregatorStarts(2));
  CHECK(Must(store.AggregatorStarts()) == 3);
}

TEST_CASE("SiteStore: a job and an outbox row come back as they were, over a restart") {
  const Folder folder;
  const JobRow job{.job = kJob,
                   .plan = "{}",
                   .base_model = ExampleDigest(1),
                   .base_model_bytes = 1234,
                   .last_model = ExampleDigest(2),
                   .train_commits = 5,
                   .statistics_committed = true,
                   .committed_model = ExampleDigest(3),
                   .committed_leaf = 99};
  const OutboxRow row = Row(Phase(PhaseKind::kTrain, 3), 0xAB);
  {
    SiteStore store = Must(folder.Open());
    Must(store.PutJob(job));
    Must(store.AddOutbox(row));
  }
  SiteStore store = Must(folder.Open());

  const JobRow read = Must(store.FindJob(kJob)).value();
  CHECK(read.plan == job.plan);
  CHECK(read.base_model == job.base_model);
  CHECK(read.base_model_bytes == 1234);
  CHECK(read.last_model == job.last_model);
  CHECK(read.train_commits == 5);
  CHECK(read.statistics_committed);
  CHECK(read.committed_model == job.committed_model);
  CHECK(read.committed_leaf == 99);
  const OutboxRow out = Must(store.FindOutbox(row.phase)).value();
  CHECK(out.digest == row.digest);
  CHECK(out.size_bytes == 512);
  CHECK(out.base_model == row.base_model);
  CHECK(out.policy == row.policy);
  CHECK(out.leaf == 7);
  CHECK(out.numbers == 17);
  CHECK(out.records == 196);
  CHECK_FALSE(Must(store.FindOutbox(Phase(PhaseKind::kTrain, 4))).has_value());
  CHECK_FALSE(Must(store.FindJob(Must(JobId::Parse("heart-2")))).has_value());
}

TEST_CASE("SiteStore: one row a phase in outbox and ledger") {
  const Folder folder;
  SiteStore store = Must(folder.Open());
  const PhaseId phase = Phase(PhaseKind::kTrain);
  Must(store.AddOutbox(Row(phase, 1)));
  Must(store.AddRelease(Left(kHeartData, phase, ExampleDigest(1), 17, 196)));

  CHECK_FALSE(store.AddOutbox(Row(phase, 2)).ok());
  CHECK_FALSE(store.AddRelease(Left(kHeartData, phase, ExampleDigest(2), 17, 196)).ok());
}

TEST_CASE("SiteStore: the ledger adds numbers per record over jobs, one dataset at a time") {
  const Folder folder;
  const JobId other = Must(JobId::Parse("heart-2"));
  const DatasetAlias lung = Must(DatasetAlias::Parse("lung"));
  const PhaseId first = Phase(PhaseKind::kTrain, 1);
  {
    SiteStore store = Must(folder.Open());
    Must(store.AddRelease(Left(kHeartData, first, ExampleDigest(1), 17, 196)));
    Must(
        store.AddRelease(Left(kHeartData, Phase(PhaseKind::kTrain, 2), ExampleDigest(2), 17, 196)));
    Must(store.AddRelease(
        Left(kHeartData, Phase(PhaseKind::kTrain, 1, other), ExampleDigest(3), 100, 50)));
    Must(store.AddRelease(Left(lung, Phase(PhaseKind::kTrain, 9), ExampleDigest(4), 1000, 10)));
  }
  SiteStore store = Must(folder.Open());

  const PhaseId none = Phase(PhaseKind::kEvaluate, 40);
  CHECK(Must(store.ReleasedPerRecord(kHeartData, none)) ==
        doctest::Approx(17.0 / 196 * 2 + 2).epsilon(1e-8));
  // Without what the phase itself has released: a resend is decided as the first sending was.
  CHECK(Must(store.ReleasedPerRecord(kHeartData, first)) ==
        doctest::Approx(17.0 / 196 + 2).epsilon(1e-8));
  CHECK(Must(store.ReleasedPerRecord(lung, none)) == doctest::Approx(100));
  // Rounded up: three times a third is never less than one.
  const DatasetAlias third = Must(DatasetAlias::Parse("third"));
  for (RoundNumber round = 20; round < 23; ++round) {
    Must(store.AddRelease(Left(third, Phase(PhaseKind::kTrain, round), ExampleDigest(5), 1, 3)));
  }
  CHECK(Must(store.ReleasedPerRecord(third, none)) >= 1);
  CHECK(Must(store.ReleasedPerRecord(third, none)) <= 1.00000001);
}

TEST_CASE("SiteStore: the ledger adds epsilon over jobs, in its window, rounded up") {
  const Folder folder;
  const JobId other = Must(JobId::Parse("heart-2"));
  const WallTime now = test::kExampleTime;
  const auto left = [&](const PhaseId& phase, std::uint64_t epsilon_micro, WallTime at) {
    ReleaseRow row = Left(kHeartData, phase, ExampleDigest(1), 17, 196);
    row.epsilon_micro = epsilon_micro;
    row.at = at;
    return row;
  };
  {
    SiteStore store = Must(folder.Open());
    Must(store.AddRelease(left(Phase(PhaseKind::kTrain, 1), 700'000, now)));
    Must(store.AddRelease(left(Phase(PhaseKind::kTrain, 2), 0, now)));
    Must(store.AddRelease(left(Phase(PhaseKind::kTrain, 1, other), 100'000, now)));
    Must(store.AddRelease(
        left(Phase(PhaseKind::kTrain, 2, other), 200'000, now - std::chrono::hours(48))));
  }
  SiteStore store = Must(folder.Open());
  const JobId third = Must(JobId::Parse("heart-3"));
  const DatasetAlias lung = Must(DatasetAlias::Parse("lung"));

  CHECK(Must(store.EpsilonOfJob(kJob)) == 700'000);
  CHECK(Must(store.EpsilonOfJob(third)) == 0);
  const double all = Must(store.EpsilonSpent(kHeartData, std::nullopt, third));
  CHECK(all >= 1.0);  // three charges of tenths, that doubles would not add up to one
  CHECK(all <= 1.000000001);
  CHECK(Must(store.EpsilonSpent(kHeartData, now - std::chrono::hours(24), third)) ==
        doctest::Approx(0.8));
  // Without what the job itself was charged: that is in the plan's own number.
  CHECK(Must(store.EpsilonSpent(kHeartData, std::nullopt, kJob)) == doctest::Approx(0.3));
  CHECK(Must(store.EpsilonSpent(lung, std::nullopt, third)) == 0);
}

TEST_CASE("SiteStore: a job is one run a dataset, whatever its restarts") {
  const Folder folder;
  SiteStore store = Must(folder.Open());
  const WallTime now = test::kExampleTime;
  const JobId other = Must(JobId::Parse("heart-2"));
  Must(store.AddRun(kJob, kHeartData, now));
  Must(store.AddRun(kJob, kHeartData, now + std::chrono::hours(1)));

  const auto since = [&](WallTime time, const JobId& job) {
    return Must(store.RunsSince(kHeartData, time, job));
  };
  CHECK(since(now - std::chrono::hours(1), other) == 1);
  CHECK(since(now - std::chrono::hours(1), kJob) == 0);
  CHECK(since(now + std::chrono::hours(2), other) == 0);
}

TEST_CASE("SiteStore: statistics are kept once for a version and its columns") {
  const Folder folder;
  SiteStore store = Must(folder.Open());
  const StatisticsRow row{.question = ExampleDigest(1), .numbers = {1, 2, 3}, .rows = 196};
  Must(store.AddStatistics(ExampleDigest(8), ExampleDigest(9), row));

  CHECK(Must(store.FindStatistics(ExampleDigest(8), ExampleDigest(9))) == row);
  CHECK_FALSE(Must(store.FindStatistics(ExampleDigest(9), ExampleDigest(9))).has_value());
  CHECK_FALSE(Must(store.FindStatistics(ExampleDigest(8), ExampleDigest(8))).has_value());
  CHECK_FALSE(store.AddStatistics(ExampleDigest(8), ExampleDigest(9), row).ok());
}

TEST_CASE("SiteStore: a phase is closed by its commit, or when its update has gone") {
  const Folder folder;
  SiteStore store = Must(folder.Open());
  const PhaseId committed = Phase(PhaseKind::kTrain, 1);
  const PhaseId sent = Phase(PhaseKind::kTrain, 2);
  CHECK_FALSE(Must(store.IsClosed(committed)));

  CHECK(Must(store.AddCommit(committed, 5)));
  CHECK_FALSE(Must(store.AddCommit(committed, 5)));
  CHECK(Must(store.IsClosed(committed)));

  Must(store.AddRelease(Left(kHeartData, sent, ExampleDigest(1), 17, 196)));
  Must(store.AddOutbox(Row(sent, 1)));
  CHECK_FALSE(Must(store.IsClosed(sent)));  // its bytes may be sent again
  Must(store.RemoveOutbox(sent));
  CHECK(Must(store.IsClosed(sent)));
}

TEST_CASE("SiteStore: models that no job names go at the start, the others stay") {
  const Folder folder;
  const Digest named = ExampleDigest(1);
  const Digest orphan = ExampleDigest(2);
  {
    SiteStore store = Must(folder.Open());
    Must(store.WriteModel(named, AsBytes("named")));
    Must(store.WriteModel(orphan, AsBytes("orphan")));
    Must(store.PutJob({.job = kJob,
                       .plan = "{}",
                       .base_model = named,
                       .base_model_bytes = 5,
                       .last_model = named,
                       .train_commits = 0,
                       .statistics_committed = false,
                       .committed_model = {},
                       .committed_leaf = 0}));
    Must(store.RemoveModel(named));  // named: kept
  }
  SiteStore store = Must(folder.Open());

  CHECK(Must(store.ReadModel(named)) == "named");
  CHECK(store.ReadModel(orphan).status().code() == StatusCode::kNotFound);
}

}  // namespace
}  // namespace domicile::site_agent

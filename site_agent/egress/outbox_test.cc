#include "site_agent/egress/outbox.h"

#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include "base/log.h"
#include "site_agent/egress/gate.h"
#include "site_agent/egress/testing.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;
using policy::Reason;

const SiteId kSelf = Must(SiteId::Parse("charite"));
const Digest kCommitment = ExampleDigest(0xC0);

std::vector<SiteId> Sites(const std::vector<std::string>& names) {
  std::vector<SiteId> sites;
  for (const std::string& name : names) {
    sites.push_back(Must(SiteId::Parse(name)));
  }
  return sites;
}

Release ReleaseOf(const PhaseId& phase, const std::string& bytes) {
  const Digest digest = crypto::TreeDigest(AsBytes(bytes));
  return {.row = {.phase = phase,
                  .digest = digest,
                  .size_bytes = bytes.size(),
                  .base_model = ExampleDigest(1),
                  .policy = ExampleDigest(2),
                  .leaf = 0,
                  .numbers = 39,
                  .records = 196},
          .decided = {.key = LogKey(phase, {1, 1}),
                      .transfer = digest,
                      .kinds = {"delta.plain"},
                      .dataset = kHeartData,
                      .from = test::kSite,
                      .to = test::kAggregator,
                      .decision = test::ExampleDecision(),
                      .bytes = bytes.size(),
                      .numbers = 39,
                      .capacity_bits = 39 * 34,
                      .cohort_bucket = 0,
                      .grant = ExampleDigest(3)},
          .question = std::nullopt,
          .answer = {}};
}

Release StatisticsRelease(const contracts::Plan& plan, const PhaseId& phase,
                          const std::vector<std::string>& sites, const std::string& bytes,
                          std::int64_t sum = 5) {
  Release release = ReleaseOf(phase, bytes);
  release.question = QuestionOf(plan, kCommitment, Sites(sites));
  release.answer.count.assign(plan.NumInputs(), 196);
  release.answer.sum.assign(plan.NumInputs(), sum);
  release.answer.sum_squares.assign(plan.NumInputs(), 7);
  return release;
}

Reason Put(Desk& desk, const Release& release, const std::string& bytes,
           const std::stop_token& stop = {}) {
  const auto put = PutInOutbox(desk.Open(), release, AsBytes(bytes), stop);
  return std::holds_alternative<Reason>(put) ? std::get<Reason>(put) : Reason::kNone;
}

std::vector<std::string> OutboxFiles(const Desk& desk) {
  return Must(ListFiles(desk.Folder() + "/outbox"));
}

std::vector<OutboxRow> Rows(Desk& desk) {
  return Must(desk.Open().With([](SiteStore& store) { return store.Outbox(); }));
}

double Ledger(Desk& desk) {
  return Must(desk.Open().With([](SiteStore& store) {
    return store.ReleasedPerRecord(kHeartData, Phase(PhaseKind::kNone, 0));
  }));
}

TEST_CASE("PutInOutbox: file, row, ledger and leaf, that say the same") {
  Desk desk;
  desk.PutJob(HeartPlan(), ZeroModel(HeartPlan()));
  const PhaseId phase = Phase(PhaseKind::kTrain);

  const auto put =
      PutInOutbox(desk.Open(), ReleaseOf(phase, "update"), AsBytes("update"), std::stop_token{});

  REQUIRE(std::holds_alternative<OutboxRow>(put));
  const auto& row = std::get<OutboxRow>(put);
  const auto rows = Rows(desk);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].digest == row.digest);
  CHECK(rows[0].leaf == row.leaf);
  const auto decided = Must(audit::ReadEgressDecided(desk.Leaf(row.leaf)));
  CHECK(decided.transfer == row.digest);
  CHECK(decided.key == LogKey(phase, {1, 1}));
  CHECK(OutboxFiles(desk) == std::vector<std::string>{PrintHex(row.digest)});
  CHECK(Ledger(desk) == doctest::Approx(39.0 / 196).epsilon(1e-8));
}

TEST_CASE("PutInOutbox: the epsilon of a run is charged whole, with its first release") {
  Desk desk;
  desk.PutJob(HeartPlan(), ZeroModel(HeartPlan()));
  const auto put = [&](const PhaseId& phase, const std::string& bytes) {
    Release release = ReleaseOf(phase, bytes);
    release.decided.epsilon_micro = MicroEpsilon(0.5000001);
    REQUIRE(Put(desk, release, bytes) == Reason::kNone);
    return Must(audit::ReadEgressDecided(desk.LastLeaf())).epsilon_micro;
  };
  const JobId other = Must(JobId::Parse("heart-2"));

  CHECK(put(Phase(PhaseKind::kTrain, 1), "one") == 500'001);
  CHECK(put(Phase(PhaseKind::kTrain, 2), "two") == 0);
  CHECK(put(Phase(PhaseKind::kTrain, 1, other), "three") == 500'001);
  const auto spent = [&](const JobId& job) {
    return Must(desk.Open().With(
        [&](SiteStore& store) { return store.EpsilonSpent(kHeartData, std::nullopt, job); }));
  };
  CHECK(spent(kJob) == doctest::Approx(0.500001));
  // What the leaves say comes back into a ledger that has lost it, at the time they say.
  Must(desk.Open().With([](SiteStore& store) -> Status {
    ASSIGN_OR_RETURN(Statement forget, store.Db().Prepare("DELETE FROM release"));
    return forget.Run();
  }));
  CHECK(spent(kJob) == 0);
  desk.Reopen();
  CHECK(spent(kJob) == doctest::Approx(0.500001));
  CHECK(Must(desk.Open().With([&](SiteStore& store) {
          return store.EpsilonSpent(kHeartData, test::kExampleTime - std::chrono::hours(1), kJob);
        })) == doctest::Approx(0.500001));
}

TEST_CASE("PutInOutbox: the gate runs once for a phase") {
  Desk desk;
  desk.PutJob(HeartPlan(), ZeroModel(HeartPlan()));
  const PhaseId phase = Phase(PhaseKind::kTrain);
  REQUIRE(Put(desk, ReleaseOf(phase, "one"), "one") == Reason::kNone);
  const std::uint64_t leaves = desk.NumLeaves();

  SUBCASE("while its bytes wait") {
    CHECK(Put(desk, ReleaseOf(phase, "two"), "two") == Reason::kLogUnavailable);
    CHECK(Rows(desk).size() == 1);
  }
  SUBCASE("after its commit") {
    Must(SettleCommit(desk.Open(), kSelf, phase, 10, Commit(phase, ExampleDigest(9), {})));
    CHECK(Put(desk, ReleaseOf(phase, "two"), "two") == Reason::kStaleRound);
    CHECK(OutboxFiles(desk).empty());
    CHECK(desk.NumLeaves() == leaves + 1);  // the outcome's alone
  }
  SUBCASE("after the job's end") {
    Must(SettleJobEnd(desk.Open(), kJob));
    CHECK(Put(desk, ReleaseOf(phase, "two"), "two") == Reason::kStaleRound);
    CHECK(OutboxFiles(desk).empty());
  }
  CHECK(Ledger(desk) ==
        doctest::Approx(39.0 / 196).epsilon(1e-8));  // charged once, and not given back
}

TEST_CASE("PutInOutbox: work that was stopped leaves nothing behind") {
  Desk desk;
  desk.PutJob(HeartPlan(), ZeroModel(HeartPlan()));
  std::stop_source stop;
  stop.request_stop();

  CHECK(Put(desk, ReleaseOf(Phase(PhaseKind::kTrain), "late"), "late", stop.get_token()) ==
        Reason::kCancelled);

  CHECK(Rows(desk).empty());
  CHECK(OutboxFiles(desk).empty());
  CHECK(desk.NumLeaves() == 0);
  CHECK(Ledger(desk) == 0);
}

TEST_CASE("PutInOutbox: statistics asked again by the same participants are charged once") {
  const contracts::Plan plan = HeartPlan();
  Desk desk;
  const JobId second = Must(JobId::Parse("heart-2"));
  desk.PutJob(plan, ZeroModel(plan));
  desk.PutJob(plan, ZeroModel(plan), second);
  const PhaseId first_phase = Phase(PhaseKind::kStatistics);
  const PhaseId again = Phase(PhaseKind::kStatistics, 1, second);

  REQUIRE(Put(desk, StatisticsRelease(plan, first_phase, {"a", "charite"}, "s1"), "s1") ==
          Reason::kNone);
  CHECK(Ledger(desk) == doctest::Approx(39.0 / 196).epsilon(1e-8));
  CHECK(Put(desk, StatisticsRelease(plan, again, {"a", "charite"}, "s2"), "s2") == Reason::kNone);
  CHECK(Ledger(desk) == doctest::Approx(39.0 / 196).epsilon(1e-8));
}

TEST_CASE("PutInOutbox: other statistics of the same columns never get in") {
  const contracts::Plan plan = HeartPlan();
  Desk desk;
  const JobId second = Must(JobId::Parse("heart-2"));
  desk.PutJob(plan, ZeroModel(plan));
  desk.PutJob(plan, ZeroModel(plan), second);
  const PhaseId again = Phase(PhaseKind::kStatistics, 1, second);
  REQUIRE(Put(desk, StatisticsRelease(plan, Phase(PhaseKind::kStatistics), {"a", "charite"}, "s1"),
              "s1") == Reason::kNone);

  SUBCASE("other participants") {
    CHECK(Put(desk, StatisticsRelease(plan, again, {"charite"}, "s2"), "s2") ==
          Reason::kStatDifference);
  }
  SUBCASE("other numbers") {
    CHECK(Put(desk, StatisticsRelease(plan, again, {"a", "charite"}, "s2", 6), "s2") ==
          Reason::kStatDifference);
  }
  CHECK(Rows(desk).size() == 1);
  CHECK(OutboxFiles(desk).size() == 1);
  CHECK(desk.NumLeaves() == 1);
}

TEST_CASE("SettleCommit: counted, or not, and the bytes go") {
  Desk desk;
  desk.PutJob(HeartPlan(), ZeroModel(HeartPlan()));
  const PhaseId phase = Phase(PhaseKind::kTrain);
  const Release release = ReleaseOf(phase, "update");
  REQUIRE(Put(desk, release, "update") == Reason::kNone);
  std::vector<audit::Contributor> contributors;
  std::string want = "update.not_counted";

  SUBCASE("listed with these bytes") {
    contributors = {{.site = kSelf, .digest = release.row.digest, .weight = 1}};
    want = "update.counted";
  }
  SUBCASE("not listed") {}
  SUBCASE("listed with other bytes") {
    contributors = {{.site = kSelf, .digest = ExampleDigest(8), .weight = 1}};
  }
  SUBCASE("its bytes under another name") {
    contributors = {{.site = Must(SiteId::Parse("a")), .digest = release.row.digest, .weight = 1}};
  }
  Must(SettleCommit(desk.Open(), kSelf, phase, 42, Commit(phase, ExampleDigest(9), contributors)));

  CHECK(audit::TypeName(desk.LastLeaf().type()) == want);
  CHECK(desk.LastLeaf().Int("commit_seq") == 42);
  CHECK(Rows(desk).empty());
  CHECK(OutboxFiles(desk).empty());
  CHECK(desk.FindJob().committed_model == ExampleDigest(9));
  CHECK(desk.FindJob().train_commits == 1);
}

TEST_CASE("SettleCommit: told again is applied once; told otherwise is an error") {
  Desk desk;
  desk.PutJob(HeartPlan(), ZeroModel(HeartPlan()));
  const PhaseId phase = Phase(PhaseKind::kTrain);
  const auto settle = [&](std::uint64_t leaf) {
    return SettleCommit(desk.Open(), kSelf, phase, leaf, Commit(phase, ExampleDigest(9), {}));
  };

  REQUIRE(settle(10).ok());
  desk.Reopen();
  CHECK(settle(10).ok());
  CHECK(desk.FindJob().train_commits == 1);
  CHECK(settle(11).code() == StatusCode::kDataLoss);
  CHECK(desk.FindJob().train_commits == 1);
}

TEST_CASE("SettleCommit: rounds that the plan does not have give no steps") {
  Desk desk;
  desk.PutJob(HeartPlan(), ZeroModel(HeartPlan()));
  for (const PhaseId& phase :
       {Phase(PhaseKind::kTrain, 41), Phase(PhaseKind::kTrain, 0), Phase(PhaseKind::kEvaluate, 1),
        Phase(PhaseKind::kStatistics, 2), Phase(PhaseKind::kNone, 1)}) {
    CHECK(SettleCommit(desk.Open(), kSelf, phase, 10, Commit(phase, ExampleDigest(9), {})).code() ==
          StatusCode::kDataLoss);
  }
  CHECK(desk.FindJob().train_commits == 0);
  CHECK(desk.FindJob().committed_model.IsZero());
}

TEST_CASE("SettleCommit: statistics allow the constants to change once; order is the log's") {
  Desk desk;
  desk.PutJob(HeartPlan(), ZeroModel(HeartPlan()));
  const PhaseId train = Phase(PhaseKind::kTrain);
  const PhaseId statistics = Phase(PhaseKind::kStatistics);

  Must(SettleCommit(desk.Open(), kSelf, train, 20, Commit(train, ExampleDigest(9), {})));
  Must(SettleCommit(desk.Open(), kSelf, statistics, 10, Commit(statistics, ExampleDigest(8), {})));

  CHECK(desk.FindJob().statistics_committed);
  CHECK(desk.FindJob().committed_model == ExampleDigest(9));
}

TEST_CASE("SettleJobEnd: what waits for this job goes, and nothing else") {
  Desk desk;
  const JobId other = Must(JobId::Parse("heart-2"));
  desk.PutJob(HeartPlan(), ZeroModel(HeartPlan()));
  desk.PutJob(HeartPlan(), ZeroModel(HeartPlan()), other);
  REQUIRE(Put(desk, ReleaseOf(Phase(PhaseKind::kTrain), "one"), "one") == Reason::kNone);
  REQUIRE(Put(desk, ReleaseOf(Phase(PhaseKind::kTrain, 1, other), "two"), "two") == Reason::kNone);

  Must(SettleJobEnd(desk.Open(), kJob));

  REQUIRE(Rows(desk).size() == 1);
  CHECK(Rows(desk)[0].phase.job == other);
  CHECK(OutboxFiles(desk).size() == 1);
  CHECK(desk.LastLeaf().Text("reason") == "SUPERSEDED");
}

// What a kill leaves: a copy of the folder as it is at that point, opened by the next start.
struct Killed {
  explicit Killed(Desk& desk, const std::string& name) : folder(desk.Beside(name)) {
    std::filesystem::copy(desk.Folder(), folder, std::filesystem::copy_options::recursive);
    books = Must(desk.TryOpen(folder));
  }
  std::string folder;
  std::unique_ptr<Books> books;

  // Rows and files name the same digests, and every file is what its name says.
  void CheckWhole() {
    std::vector<std::string> named;
    for (const OutboxRow& row :
         Must(books->With([](SiteStore& store) { return store.Outbox(); }))) {
      named.push_back(PrintHex(row.digest));
      const auto bytes = ReadFile(folder + "/outbox/" + named.back(), 1000);
      REQUIRE(bytes.ok());
      CHECK(crypto::TreeDigest(AsBytes(*bytes)) == row.digest);
      CHECK(Must(audit::ReadEgressDecided(
                     Must(audit::ParseLeaf(Must(books->LeafWithProof(row.leaf)).leaf)).event))
                .transfer == row.digest);
    }
    std::sort(named.begin(), named.end());
    auto files = Must(ListFiles(folder + "/outbox"));
    std::sort(files.begin(), files.end());
    CHECK(files == named);
  }
};

TEST_CASE("Outbox: killed at any point, orphans are removed and nothing named is missing") {
  Desk desk;
  desk.PutJob(HeartPlan(), ZeroModel(HeartPlan()));
  REQUIRE(Put(desk, ReleaseOf(Phase(PhaseKind::kTrain), "one"), "one") == Reason::kNone);

  // Half a file, then the file without its row.
  const Release second = ReleaseOf(Phase(PhaseKind::kTrain, 2), "two");
  const std::string path = desk.Folder() + "/outbox/" + PrintHex(second.row.digest);
  Must(WriteFileDurably(path + ".part", AsBytes("t")));
  std::filesystem::rename(path + ".part", path + ".tmp");
  Killed half(desk, "half");
  half.CheckWhole();
  Must(WriteFileDurably(path, AsBytes("two")));
  Killed orphan(desk, "orphan");
  orphan.CheckWhole();
  // The transaction under way: its rows are there for itself alone.
  std::unique_ptr<Killed> within;
  const auto recorded = desk.Open().Record([&](SiteStore& store, std::uint64_t leaf) {
    OutboxRow row = second.row;
    row.leaf = leaf;
    Must(store.AddOutbox(row));
    Must(store.AddRelease({.dataset = second.decided.dataset,
                           .dataset_commitment = {},
                           .phase = row.phase,
                           .transfer = row.digest,
                           .numbers = row.numbers,
                           .records = row.records,
                           .bytes = row.size_bytes}));
    within = std::make_unique<Killed>(desk, "within");
    return ToEvent(second.decided);
  });
  REQUIRE(recorded.ok());
  within->CheckWhole();
  CHECK(Must(within->books->HeadSince(0)).head.checkpoint.size == 1);
  Killed after(desk, "after");
  after.CheckWhole();
  CHECK(Must(after.books->HeadSince(0)).head.checkpoint.size == 2);
  // The row is gone, the file not yet.
  Must(desk.Open().With([&](SiteStore& store) { return store.RemoveOutbox(second.row.phase); }));
  Killed settled(desk, "settled");
  settled.CheckWhole();
  CHECK(Must(ListFiles(settled.folder + "/outbox")).size() == 1);
}

}  // namespace
}  // namespace domicile::site_agent

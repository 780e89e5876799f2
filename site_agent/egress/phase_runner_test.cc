#include "site_agent/egress/phase_runner.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include <doctest/doctest.h>

#include "site_agent/egress/testing.h"
#include "site_agent/egress/testing_gate.h"
#include "site_agent/egress/wire_words.h"
#include "site_agent/trainer/server.h"
#include "tests/support/example_approval.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;
using policy::Reason;

const SiteId kSelf = Must(SiteId::Parse("budapest"));

bool Await(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// A trainer behind all its walls that answers with fixed numbers.
class FakeTrainer final : public TaskHandler {
 public:
  explicit FakeTrainer(const std::string& path) : listener_(Must(ListenUnix(path, 0600))) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      ServeTrainer(listener_, *this, {}, stop).IgnoreError();
    });
  }
  HelloMessage Hello() const override {
    return {.versions = {kTrainerProtocol},
            .trainer = ExampleDigest(0x71),
            .datasets = {{.alias = kHeartData, .commitment = ExampleDigest(0xDA)}},
            .sandbox = {SandboxLayer::kNetworkNamespace, SandboxLayer::kNoNewPrivileges,
                        SandboxLayer::kLandlock, SandboxLayer::kSystemCalls,
                        SandboxLayer::kNoCoreFiles},
            .landlock_abi = 1,
            .canary = 1};
  }
  std::optional<FailedMessage> Admit(const TaskMessage&, std::uint64_t) override {
    return std::nullopt;
  }
  std::variant<ResultMessage, FailedMessage> Run(const TaskMessage& task, const ProgressSink&,
                                                 std::stop_token) override {
    ++runs;
    ResultMessage result;
    result.phase = task.phase;
    result.rows = 196;
    if (task.phase == PhaseKind::kStatistics) {
      result.records_apart = records_apart;
      for (const char* name : {"count", "sum", "sum_squares"}) {
        result.arrays.push_back({.name = name, .values = {}});
        result.arrays.back().values.assign(13, name == std::string("count") ? 196 : 0);
      }
      return result;
    }
    Model delta = ZeroModel(HeartPlan());
    delta.resize(2);  // without the constants
    delta[0].values[0] = 0.25F;
    result.examples = 196;
    result.loss_sum_micro = 130'000'000;
    result.tensors = models::PrintSafetensors(delta);
    return result;
  }

  std::atomic<int> runs = 0;
  std::optional<std::uint64_t> records_apart;

 private:
  FileHandle listener_;
  std::jthread thread_;
};

enum class Answer { kReceipt, kOtherDigest, kOtherEpoch, kLost, kRefusal };

// An aggregator's end of one connection, with a log of its own. Thread-safe.
class FakeAggregator final : public wire::FederationClient {
 public:
  explicit FakeAggregator(const std::string& folder)
      : books_(Must(Books::Open(folder, signer_, clock_, random_))) {}
  crypto::NoteVerifier LogKey() const { return signer_.Verifier(); }
  crypto::PeerIdentity Server() const override { return {}; }
  std::unique_ptr<wire::ControlStream> OpenControl(wire::ControlListener&) override {
    return nullptr;
  }
  Status FetchBlob(const v1::BlobRef&, std::span<std::uint8_t> destination,
                   std::uint64_t& have_bytes, const wire::CallLimits&) override {
    DOMICILE_CHECK(destination.size() == model.size());
    std::copy(model.begin(), model.end(), destination.begin());
    have_bytes = model.size();
    return OkStatus();
  }
  StatusOr<wire::SubmitAnswer> SubmitUpdate(const v1::UpdateHeader& header,
                                            const wire::SharedBytes& update,
                                            const std::function<void(std::uint64_t)>& progress,
                                            const wire::CallLimits&) override {
    progress(update.bytes.size());
    {
      const MutexLock lock(mutex_);
      uploads_.emplace_back(update.bytes.begin(), update.bytes.end());
    }
    if (answer == Answer::kLost) {
      return Error(StatusCode::kUnavailable, "gone");
    }
    if (answer == Answer::kRefusal) {
      v1::Refusal refusal;
      refusal.set_reason(static_cast<std::uint32_t>(Reason::kNorm));
      return wire::SubmitAnswer(refusal);
    }
    Digest digest = Must(DigestFromBytes(AsBytes(header.update().digest())));
    if (answer == Answer::kOtherDigest) {
      digest.bytes[0] ^= 1U;
    }
    Epoch epoch = EpochFrom(header.epoch());
    epoch.attempt += answer == Answer::kOtherEpoch ? 1 : 0;
    const audit::IngressReceived received{
        .key = site_agent::LogKey(Must(PhaseFrom(header.phase())), epoch),
        .site = kSelf,
        .jurisdiction = "HU",
        .digest = digest,
        .bytes = update.bytes.size(),
        .kinds = {"delta.plain"},
        .capacity_bits = 100,
        .decision = test::ExampleDecision()};
    const std::uint64_t index = Must(books_->Append(ToEvent(received)));
    const audit::ProvenLeaf proven = Must(books_->LeafWithProof(index));
    v1::Receipt receipt;
    receipt.mutable_leaf()->set_index(proven.index);
    receipt.mutable_leaf()->set_leaf(proven.leaf);
    receipt.mutable_leaf()->set_head(proven.head.note);
    for (const Digest& node : proven.proof) {
      receipt.mutable_leaf()->add_proof(Raw(node));
    }
    return wire::SubmitAnswer(receipt);
  }
  StatusOr<v1::ProveConsistencyResponse> ProveConsistency(std::uint64_t,
                                                          const wire::CallLimits&) override {
    return Error(StatusCode::kUnimplemented, "not asked for");
  }
  std::vector<Bytes> Uploads() {
    const MutexLock lock(mutex_);
    return uploads_;
  }

  Bytes model;
  std::atomic<Answer> answer = Answer::kReceipt;

 private:
  crypto::NoteSigner signer_ = test::ExampleSigner(test::kAggregatorLog, 5);
  FakeClock clock_{test::kExampleTime};
  SeededRandom random_{8};
  std::unique_ptr<Books> books_;
  Mutex mutex_;
  std::vector<Bytes> uploads_ GUARDED_BY(mutex_);
};

// What the site says on its control stream. Thread-safe.
class FakeControl final : public wire::ControlStream {
 public:
  Status Send(const v1::SiteMessage& message) override {
    const MutexLock lock(mutex_);
    reasons_.push_back(ReasonFrom(message.phase_reply().refusal()));
    return OkStatus();
  }
  void Close() override {}
  std::vector<Reason> Declined() {
    const MutexLock lock(mutex_);
    return reasons_;
  }

 private:
  Mutex mutex_;
  std::vector<Reason> reasons_ GUARDED_BY(mutex_);
};

// A site with one approved job, its trainer and its connection.
struct Bench {
  Desk desk;
  contracts::Plan plan = HeartPlan();
  Model base = ZeroModel(plan);
  JobRow job = desk.PutJob(plan, base);
  std::string socket = desk.Beside("trainer.sock");
  FakeTrainer trainer{socket};
  TrainerLink link{socket};
  AgentConfig config;
  contracts::Identity identity;
  CurrentConnection current;
  FakeClock clock{kPolicyNow};
  std::shared_ptr<Connection> connection = std::make_shared<Connection>();
  FakeAggregator* aggregator = nullptr;
  FakeControl* control = nullptr;
  std::unique_ptr<Site> site;
  std::unique_ptr<PhaseRunner> runner;

  Bench() {
    Must(link.Connect());
    identity.certificate.spiffe.federation = "demo";
    auto client = std::make_unique<FakeAggregator>(desk.Beside("aggregator"));
    aggregator = client.get();
    aggregator->model = models::PrintSafetensors(base);
    auto stream = std::make_unique<FakeControl>();
    control = stream.get();
    const JobBorder border = HeartBorder();
    connection->terms = {.starts = 1,
                         .roster = border.roster,
                         .site = border.site,
                         .aggregator = border.aggregator,
                         .aggregator_log = aggregator->LogKey(),
                         .policies = HeartPolicies(),
                         .clock_skew = std::chrono::milliseconds(0)};
    connection->client = std::move(client);
    connection->control = std::move(stream);
    current.Set(connection);
    const crypto::NoteSigner approver = test::ExamplePerson("operator-budapest", 3);
    config.grants = desk.Beside("grants");
    config.approval.approvers = {test::ApproverOf(approver)};
    Start();
    contracts::GrantBody body = WantedGrant(*site, connection->terms, job, plan, trainer.Hello());
    body.not_after = kPolicyNow + std::chrono::hours(24);
    Must(CreateFolders(config.grants));
    Must(WriteFileDurably(config.grants + "/a.grant",
                          AsBytes(test::GrantBy(approver, body, kPolicyNow))));
  }
  void Start() {
    site = std::make_unique<Site>(Site{.config = config,
                                       .identity = identity,
                                       .id = kSelf,
                                       .books = desk.Open(),
                                       .trainer = link,
                                       .current = current,
                                       .clock = clock});
    runner = std::make_unique<PhaseRunner>(*site);
  }
  // As after a kill: what was in memory is gone.
  void Restart() {
    runner = nullptr;
    site = nullptr;
    desk.Reopen();
    Start();
  }
  void Begin(const PhaseId& phase, std::uint32_t attempt,
             const std::vector<std::string>& participants = {"budapest", "cleveland"}) const {
    OpenedPhase opened{.id = phase,
                       .epoch = {1, attempt},
                       .model = DigestOfModel(base),
                       .model_bytes = aggregator->model.size(),
                       .participants = {},
                       .deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1)};
    for (const std::string& name : participants) {
      opened.participants.push_back(Must(SiteId::Parse(name)));
    }
    runner->Begin(std::move(opened));
  }
  // Leaves from `first` on, by their names.
  std::vector<std::string> Leaves(std::uint64_t first = 0) {
    std::vector<std::string> names;
    for (std::uint64_t i = first; i < desk.NumLeaves(); ++i) {
      names.emplace_back(audit::TypeName(desk.Leaf(i).type()));
    }
    return names;
  }
  bool AwaitLeaf(const std::string& name) {
    return Await([&] { return !Leaves().empty() && Leaves().back() == name; });
  }
};

const PhaseId kTrain = Phase(PhaseKind::kTrain);
const PhaseId kStatistics = Phase(PhaseKind::kStatistics);

TEST_CASE("PhaseRunner: each step is a leaf before the next one is taken") {
  Bench bench;

  bench.Begin(kTrain, 1);

  REQUIRE(bench.AwaitLeaf("egress.done"));
  CHECK(bench.Leaves() == std::vector<std::string>{"model.intake", "data.opened", "train.started",
                                                   "train.ended", "egress.decided", "egress.intent",
                                                   "egress.done"});
  CHECK(bench.control->Declined().empty());
  REQUIRE(bench.aggregator->Uploads().size() == 1);
  const Digest sent = crypto::TreeDigest(bench.aggregator->Uploads()[0]);
  CHECK(Must(audit::ReadEgressDecided(bench.desk.Leaf(4))).transfer == sent);
  CHECK(bench.desk.LastLeaf().Int("receipt_seq") == 0);
  // Received is not counted: the bytes stay until the commit.
  CHECK(Must(bench.desk.Open().With([](SiteStore& s) { return s.Outbox(); })).size() == 1);
}

TEST_CASE("PhaseRunner: a receipt for anything else is not believed") {
  for (const Answer answer : {Answer::kOtherDigest, Answer::kOtherEpoch}) {
    Bench bench;
    bench.aggregator->answer = answer;

    bench.Begin(kTrain, 1);

    REQUIRE(bench.AwaitLeaf("egress.aborted"));
    CHECK(bench.desk.LastLeaf().Text("reason") == "LOG-HEAD");
    CHECK(Await([&] { return bench.control->Declined() == std::vector{Reason::kLogHead}; }));
  }
}

TEST_CASE("PhaseRunner: a refusal is logged and told") {
  Bench bench;
  bench.aggregator->answer = Answer::kRefusal;

  bench.Begin(kTrain, 1);

  REQUIRE(bench.AwaitLeaf("egress.aborted"));
  CHECK(bench.desk.LastLeaf().Text("reason") == "NORM");
}

TEST_CASE("PhaseRunner: a new epoch, and a killed agent, send the same bytes, trained once") {
  Bench bench;
  bench.aggregator->answer = Answer::kLost;
  bench.Begin(kTrain, 1);
  REQUIRE(bench.AwaitLeaf("egress.aborted"));
  CHECK(bench.desk.LastLeaf().Text("reason") == "CONNECTION-LOST");
  std::uint64_t next = bench.desk.NumLeaves();

  bench.aggregator->answer = Answer::kReceipt;
  SUBCASE("a new epoch") {}
  SUBCASE("a killed agent") { bench.Restart(); }
  bench.Begin(kTrain, 2);

  REQUIRE(bench.AwaitLeaf("egress.done"));
  CHECK(bench.Leaves(next) == std::vector<std::string>{"egress.intent", "egress.done"});
  CHECK(bench.desk.LastLeaf().Phase().epoch == Epoch{1, 2});
  const auto uploads = bench.aggregator->Uploads();
  REQUIRE(uploads.size() == 2);
  CHECK(uploads[0] == uploads[1]);
  CHECK(bench.trainer.runs == 1);
}

TEST_CASE("PhaseRunner: a resend is decided again, and a grant that was taken away stops it") {
  Bench bench;
  bench.aggregator->answer = Answer::kLost;
  bench.Begin(kTrain, 1);
  REQUIRE(bench.AwaitLeaf("egress.aborted"));

  Must(RemoveFile(bench.config.grants + "/a.grant"));
  bench.Begin(kTrain, 2);

  CHECK(Await([&] { return bench.control->Declined() == std::vector{Reason::kApprovalMissing}; }));
  CHECK(bench.aggregator->Uploads().size() == 1);
}

TEST_CASE("PhaseRunner: without a grant no model is fetched and nobody trains") {
  Bench bench;
  Must(RemoveFile(bench.config.grants + "/a.grant"));

  bench.Begin(kTrain, 1);

  CHECK(Await([&] { return bench.control->Declined() == std::vector{Reason::kApprovalMissing}; }));
  CHECK(bench.desk.NumLeaves() == 0);
  CHECK(bench.trainer.runs == 0);
}

TEST_CASE(
    "PhaseRunner: whatever is opened, a job that is not approved, or not any more, gives nothing") {
  struct Case {
    const char* name;
    std::function<void(Bench&)> change;
    Reason want;
  };
  const auto grant_for = [](Bench& bench,
                            const std::function<void(contracts::GrantBody&)>& change) {
    contracts::GrantBody body = WantedGrant(*bench.site, bench.connection->terms, bench.job,
                                            bench.plan, bench.trainer.Hello());
    body.not_after = kPolicyNow + std::chrono::hours(24);
    change(body);
    Must(WriteFileDurably(
        bench.config.grants + "/a.grant",
        AsBytes(test::GrantBy(test::ExamplePerson("operator-budapest", 3), body, kPolicyNow))));
  };
  const Case cases[] = {
      {"never approved", [](Bench& b) { Must(RemoveFile(b.config.grants + "/a.grant")); },
       Reason::kApprovalMissing},
      {"approved for another site",
       [&](Bench& b) {
         grant_for(b, [](auto& body) { body.site = Must(SiteId::Parse("cleveland")); });
       },
       Reason::kGrantDataset},
      {"approved for another job",
       [&](Bench& b) { grant_for(b, [](auto& body) { body.job = Must(JobId::Parse("other")); }); },
       Reason::kApprovalMissing},
      {"approved for another plan",
       [&](Bench& b) { grant_for(b, [](auto& body) { body.plan = ExampleDigest(9); }); },
       Reason::kApprovalMissing},
      {"expired", [](Bench& b) { b.clock.SetWall(kPolicyNow + std::chrono::hours(25)); },
       Reason::kGrantExpired},
      {"signed by one whom the site policy does not name",
       [](Bench& b) { b.connection->terms.policies.approver_keys = {"dpo-budapest"}; },
       Reason::kGrantSignature},
      {"taken back, by a file",
       [](Bench& b) { Must(WriteFileDurably(b.config.grants + "/" + kJob.text() + ".deny", {})); },
       Reason::kApprovalDenied},
      {"taken back, by the books",
       [](Bench& b) {
         Must(b.desk.Open().With(
             [](SiteStore& store) { return store.CloseJob(kJob, Reason::kApprovalDenied); }));
       },
       Reason::kApprovalDenied},
      {"replayed after the run",
       [](Bench& b) {
         Must(b.desk.Open().With(
             [](SiteStore& store) { return store.CloseJob(kJob, Reason::kGrantUsed); }));
       },
       Reason::kGrantUsed},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Bench bench;
    c.change(bench);

    bench.Begin(kTrain, 1);

    REQUIRE(Await([&] { return !bench.control->Declined().empty(); }));
    CHECK(bench.control->Declined() == std::vector<Reason>{c.want});
    CHECK(bench.aggregator->Uploads().empty());
    CHECK(bench.Leaves().empty());  // no data opened, nothing decided, nothing begun
  }
}

TEST_CASE("PhaseRunner: a phase whose commit is known is not worked on again") {
  Bench bench;
  Must(SettleCommit(bench.desk.Open(), kSelf, kTrain, 3,
                    Commit(kTrain, DigestOfModel(bench.base), {})));

  bench.Begin(kTrain, 2);

  CHECK(Await([&] { return bench.control->Declined() == std::vector{Reason::kStaleRound}; }));
  CHECK(bench.trainer.runs == 0);
  CHECK(bench.aggregator->Uploads().empty());
}

TEST_CASE("PhaseRunner: statistics again, to the same participants or to nobody") {
  Bench bench;
  bench.aggregator->answer = Answer::kLost;
  bench.Begin(kStatistics, 1);
  REQUIRE(bench.AwaitLeaf("egress.aborted"));
  bench.aggregator->answer = Answer::kReceipt;

  SUBCASE("the same") {
    bench.Begin(kStatistics, 2);
    REQUIRE(bench.AwaitLeaf("egress.done"));
    CHECK(bench.aggregator->Uploads().size() == 2);
  }
  SUBCASE("one site absent") {
    bench.Begin(kStatistics, 2, {"budapest"});
    CHECK(Await([&] { return bench.control->Declined() == std::vector{Reason::kStatDifference}; }));
    CHECK(bench.aggregator->Uploads().size() == 1);
  }
  CHECK(bench.trainer.runs == 1);
}

TEST_CASE("PhaseRunner: a version too close to an earlier one gives no statistics") {
  Bench bench;
  bench.trainer.records_apart = 9;

  bench.Begin(kStatistics, 1);

  CHECK(Await([&] { return bench.control->Declined() == std::vector{Reason::kStatDifference}; }));
  CHECK(bench.trainer.runs == 1);
  CHECK(bench.aggregator->Uploads().empty());
}

}  // namespace
}  // namespace domicile::site_agent

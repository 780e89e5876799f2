// The coordinator with real keys, policies, store and log, and sites that are values.
#include "aggregator/coordinator/coordinator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <numeric>

#include <doctest/doctest.h>

#include "base/file.h"
#include "cli/authority.h"
#include "crypto/tree_digest.h"
#include "policy/language/parse.h"
#include "policy/language/statement.h"
#include "updates/encoding.h"
#include "updates/plan_sections.h"
#include "updates/update.h"

namespace domicile::aggregator {
namespace {

const std::string kExamples = DOMICILE_SOURCE_DIR "/deploy/examples/heart/";
constexpr std::array<std::string_view, 4> kSites = {"budapest", "cleveland", "long-beach",
                                                    "zurich-basel"};

std::string Read(const std::string& path) { return ReadFile(path, 1U << 22U).value(); }

// The heart job without normalisation and with two rounds: train, then train and evaluate.
std::string ShortJob() {
  std::string job = Read(kExamples + "job.toml");
  std::string kept;
  bool in_normalisation = false;
  for (std::size_t begin = 0; begin < job.size();) {
    const std::size_t end = std::min(job.find('\n', begin), job.size());
    const std::string line = job.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("[")) {
      in_normalisation = line.starts_with("[normalisation]");
    }
    if (!in_normalisation && !line.starts_with("offset") && !line.starts_with("range")) {
      kept += (line == "count = 40" ? "count = 2" : line) + "\n";
    }
  }
  return kept;
}

// Keeps what is pushed.
class FakePort final : public SitePort {
 public:
  void Push(const ToSite& message) override { pushed.push_back(message); }
  void End(const Refusal& why) override { ended = why.reason; }

  template <typename T>
  const T* Last() const {
    for (auto message = pushed.rbegin(); message != pushed.rend(); ++message) {
      if (const auto* found = std::get_if<T>(&*message)) {
        return found;
      }
    }
    return nullptr;
  }

  std::vector<ToSite> pushed;
  policy::Reason ended = policy::Reason::kNone;
};

// A site as the coordinator sees it: a certificate, a log, a port.
struct FakeSite {
  FakeSite(contracts::Identity loaded, std::string policy_statement, const Clock& clock,
           Random& random)
      : identity(std::move(loaded)),
        id(SiteId::Parse(identity.Name().name).value()),
        statement(std::move(policy_statement)),
        db(Database::Open(":memory:", Database::Mode::kCreate).value()) {
    const std::array<std::string_view, 1> tables = {audit::kLogTables};
    REQUIRE(db.Migrate(1, tables).ok());
    log.emplace(audit::Log::Open(db, *identity.log_key, clock, random).value());
  }

  SiteHello Hello(std::uint64_t start) {
    SiteHello hello;
    hello.instance = start;
    hello.datasets = {DatasetAlias::Parse("heart").value()};
    hello.policy_statement = statement;
    hello.own_head = log->Head().value().note;
    return hello;
  }

  contracts::Identity identity;
  SiteId id;
  std::string statement;
  Database db;
  std::optional<audit::Log> log;
  std::shared_ptr<FakePort> port = std::make_shared<FakePort>();
  std::uint64_t instance = 1;
};

struct SentUpdate {
  UpdateHead head;
  Bytes bytes;
};

// A federation of four sites in a temporary folder; the job runs as soon as all have accepted.
class Federation {
 public:
  Federation() {
    std::string pattern = (std::filesystem::temp_directory_path() / "coordinator-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    cli::Authority authority = cli::Authority::Create(folder_ + "/ca", "hearts.example",
                                                      std::chrono::days(30), clock_.Now(), random_)
                                   .value();
    Issue(authority, crypto::Role::kAggregator, "main", "IE", "federation-office");
    for (const auto& [site, place, organisation] : {std::tuple("budapest", "HU", "a"),
                                                    {"cleveland", "US-OH", "cleveland-clinic"},
                                                    {"long-beach", "US-CA", "va-long-beach"},
                                                    {"zurich-basel", "CH", "d"}}) {
      Issue(authority, crypto::Role::kSite, site, place, organisation);
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().filename() != "ca") {
        REQUIRE(WriteFileDurably(entry.path().string() + "/roster.note",
                                 AsBytes(authority.RosterNote()))
                    .ok());
      }
    }
    for (const std::string_view name : kSites) {
      const std::string file = kExamples + "site." + std::string(name) + ".policy.toml";
      const policy::Policy policy =
          policy::ParsePolicy(Read(file), file, policy::PolicySource::kSite).value();
      sites.push_back(
          std::make_unique<FakeSite>(contracts::LoadIdentity(folder_ + "/" + std::string(name),
                                                             crypto::Role::kSite, clock_.Now())
                                         .value(),
                                     policy::StatementText(policy), clock_, random_));
    }
    Restart();
  }
  ~Federation() {
    coordinator.reset();
    std::filesystem::remove_all(folder_);
  }

  // Opens the coordinator on the same folder, as after a kill, and connects every site.
  void Restart() {
    coordinator.reset();
    coordinator =
        Coordinator::Open(
            {.state_folder = folder_ + "/state", .max_update_bytes = 1U << 20U, .version = "test"},
            contracts::LoadIdentity(folder_ + "/main", crypto::Role::kAggregator, clock_.Now())
                .value(),
            ReadPolicies(kExamples + "federation.policy.toml", kExamples + "aggregator.policy.toml",
                         kExamples + "legal-facts.toml")
                .value(),
            clock_, random_)
            .value();
    for (const auto& site : sites) {
      site->port = std::make_shared<FakePort>();
      REQUIRE(std::holds_alternative<Welcome>(coordinator->Connect(
          site->identity.certificate, site->Hello(site->instance), site->port)));
      coordinator->Joined(site->id, {});
    }
  }

  void SubmitAndAccept() {
    const StatusOr<JobView> view = coordinator->Submit("demo", ShortJob(), "job.toml");
    REQUIRE_MESSAGE(view.ok(), Message(view.status()));
    job = view->job;
    plan = contracts::PlanFromText(view->plan).value();
    plan_digest = view->plan_digest;
    for (const auto& site : sites) {
      OfferReply reply;
      reply.job = job;
      reply.plan = plan_digest;
      reply.answer = Answer::kAccept;
      reply.min_contributors = 3;
      reply.effective_policy = PolicyOf(*site);
      coordinator->ReplyToOffer(site->id, reply);
    }
  }

  Digest PolicyOf(const FakeSite& site) const {
    const PolicyFiles files =
        ReadPolicies(kExamples + "federation.policy.toml", kExamples + "aggregator.policy.toml",
                     kExamples + "legal-facts.toml")
            .value();
    return MeetStatement(files, site.statement, site.identity.entry).value().digests.effective;
  }

  // An update for the phase that is open, whose delta is `values` repeated.
  SentUpdate Update(FakeSite& site, const std::vector<float>& values, std::int64_t weight) {
    const auto* open = site.port->Last<OpenMessage>();
    REQUIRE(open != nullptr);
    const auto specs = updates::SectionsOf(plan, open->key.phase).value();
    updates::UpdateManifest manifest;
    manifest.job = job;
    manifest.plan = plan_digest;
    manifest.round = open->key.round;
    manifest.phase = static_cast<updates::UpdatePhase>(open->key.phase);
    manifest.base_model = open->model.digest;
    manifest.policy = PolicyOf(site);
    manifest.weight = weight;
    std::vector<Bytes> payloads;
    for (const updates::SectionSpec& spec : specs) {
      manifest.sections.push_back(spec.info);
      if (spec.info.encoding == updates::Encoding::kF32) {
        std::vector<float> delta(spec.info.count);
        for (std::size_t i = 0; i < delta.size(); ++i) {
          delta[i] = values[i % values.size()];
        }
        payloads.push_back(updates::EncodeF32(delta));
      } else {
        payloads.push_back(updates::EncodeI64(std::vector<std::int64_t>(spec.info.count, 0)));
      }
    }
    const std::vector<ByteSpan> spans(payloads.begin(), payloads.end());
    SentUpdate sent;
    sent.bytes = updates::EncodeUpdate(manifest, spans).value();
    FillHead(site, *open, sent);
    return sent;
  }

  // The header, with the site's own decision over its log key.
  void FillHead(FakeSite& site, const OpenMessage& open, SentUpdate& sent) {
    sent.head.job = job;
    sent.head.key = open.key;
    sent.head.epoch = open.epoch;
    sent.head.digest = crypto::TreeDigest(sent.bytes);
    sent.head.size_bytes = sent.bytes.size();
    sent.head.base_model = open.model.digest;
    sent.head.effective_policy = PolicyOf(site);
    sent.head.instance = site.instance;
    const audit::EgressDecided decided{
        .key = LogKey(job, open.key, open.epoch),
        .transfer = sent.head.digest,
        .kinds = {"delta.plain"},
        .dataset = plan.dataset,
        .from = {.party = "site/" + site.id.text(),
                 .jurisdiction = site.identity.entry.jurisdiction},
        .to = {.party = "aggregator/main", .jurisdiction = "IE"},
        .decision = {.result = "allow",
                     .reasons = {"PERMITTED"},
                     .rules = {},
                     .policies = {.effective = sent.head.effective_policy,
                                  .federation = {},
                                  .aggregator = {},
                                  .site = {},
                                  .facts = {}}},
        .bytes = sent.bytes.size(),
        .numbers = 1,
        .capacity_bits = 1,
        .cohort_bucket = 0,
        .grant = sent.head.digest};
    const std::uint64_t index = site.log->Append(audit::ToEvent(decided).value()).value();
    const audit::ProvenLeaf leaf = site.log->LeafWithProof(index).value();
    sent.head.decision_index = leaf.index;
    sent.head.decision_leaf = leaf.leaf;
    sent.head.decision_proof = leaf.proof;
    sent.head.decision_head = leaf.head.note;
  }

  // Begin and finish; kNone for a receipt.
  policy::Reason Send(const SiteId& site, const SentUpdate& sent, Refusal* refusal = nullptr) {
    const auto begun = coordinator->BeginUpdate(site, sent.head);
    if (std::holds_alternative<UpdateReceipt>(begun)) {
      return policy::Reason::kNone;
    }
    std::variant<UpdateReceipt, Refusal> answer = Refusal{};
    if (const auto* refused = std::get_if<Refusal>(&begun)) {
      answer = *refused;
    } else {
      answer = coordinator->FinishUpdate(site, sent.head, sent.bytes);
    }
    if (const auto* refused = std::get_if<Refusal>(&answer)) {
      if (refusal != nullptr) {
        *refusal = *refused;
      }
      return refused->reason;
    }
    return policy::Reason::kNone;
  }

  std::string ModelBytes() const {
    return Read(folder_ + "/state/models/" + PrintHex(coordinator->Show(job)->model.digest) +
                ".safetensors");
  }
  const std::string& Folder() const { return folder_; }

  std::vector<std::unique_ptr<FakeSite>> sites;
  std::unique_ptr<Coordinator> coordinator;
  JobId job;
  contracts::Plan plan;
  Digest plan_digest;

 private:
  void Issue(cli::Authority& authority, crypto::Role role, const std::string& name,
             const std::string& place, const std::string& organisation) {
    cli::IssueRequest request;
    request.role = role;
    request.name = name;
    request.jurisdiction = place;
    request.organisation = organisation;
    request.control = {place.substr(0, 2)};
    request.days = 10;
    if (role == crypto::Role::kAggregator) {
      request.hosts = {"localhost"};
    }
    REQUIRE(authority.Issue(request, folder_ + "/" + name, clock_.Now(), random_).ok());
  }

  // The example policies are in force on this day, whenever the test runs.
  FakeClock clock_{ParseTime("2026-12-01T09:00:00Z").value()};
  SystemRandom random_;
  std::string folder_;
};

// Numbers whose float sums depend on the order, on the grid of 2^-32.
const std::array<std::vector<float>, 4> kDeltas = {
    std::vector<float>{0x1.fffffep-3F, -0x1.000002p-7F},
    {0x1.0p-30F, 0x1.5p-2F, -0x1.1p-9F},
    {-0x1.fffffcp-3F, 0x1.8p-31F},
    {0x1.23456p-5F}};
const std::array<std::int64_t, 4> kWeights = {196, 202, 134, 82};

TEST_CASE("Coordinator: the same submissions in any order give one model, byte for byte") {
  std::array<std::size_t, 4> order = {0, 1, 2, 3};
  std::string first;
  // Six of the 24 orders, each starting elsewhere.
  for (const int turn : {0, 5, 9, 14, 18, 23}) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int i = 0; i < turn; ++i) {
      std::next_permutation(order.begin(), order.end());
    }
    Federation federation;
    federation.SubmitAndAccept();

    for (const std::size_t site : order) {
      const SentUpdate sent =
          federation.Update(*federation.sites[site], kDeltas[site], kWeights[site]);
      REQUIRE(federation.Send(federation.sites[site]->id, sent) == policy::Reason::kNone);
    }

    REQUIRE(federation.coordinator->Show(federation.job)->rounds_committed == 1);
    const std::string model = federation.ModelBytes();
    if (first.empty()) {
      first = model;
    }
    CHECK(model == first);
  }
}

TEST_CASE("Coordinator: what does not fit is refused with its reason and changes nothing") {
  Federation federation;
  federation.SubmitAndAccept();
  FakeSite& a = *federation.sites[0];
  FakeSite& b = *federation.sites[1];
  const SentUpdate good = federation.Update(a, kDeltas[0], 10);
  Refusal refusal;

  SUBCASE("another site's decision and instance") {
    SentUpdate sent = good;
    sent.head.effective_policy = federation.PolicyOf(b);
    CHECK(federation.Send(b.id, sent) == policy::Reason::kLogHead);
  }
  SUBCASE("a job that is not there") {
    SentUpdate sent = good;
    sent.head.job = JobId::Parse("nowhere").value();
    CHECK(federation.Send(a.id, sent) == policy::Reason::kJobUnknown);
  }
  SUBCASE("an older instance") {
    SentUpdate sent = good;
    sent.head.instance = 0;
    CHECK(federation.Send(a.id, sent) == policy::Reason::kInstance);
  }
  SUBCASE("another policy") {
    SentUpdate sent = good;
    sent.head.effective_policy = crypto::Sha256(AsBytes("other"));
    CHECK(federation.Send(a.id, sent) == policy::Reason::kPolicyDigestMismatch);
  }
  SUBCASE("a round that is not open, with the one that is") {
    SentUpdate sent = good;
    const OpenMessage open = *a.port->Last<OpenMessage>();
    OpenMessage later = open;
    later.key.round = 2;
    federation.FillHead(a, later, sent);
    CHECK(federation.Send(a.id, sent, &refusal) == policy::Reason::kRoundNotOpen);
    CHECK(refusal.open_phase == open.key);
    CHECK(refusal.open_model == open.model.digest);
  }
  SUBCASE("longer than the plan allows") {
    SentUpdate sent = good;
    sent.bytes.resize(100'000);
    federation.FillHead(a, *a.port->Last<OpenMessage>(), sent);
    CHECK(federation.Send(a.id, sent, &refusal) == policy::Reason::kTooLarge);
    CHECK(refusal.found == 100'000);
  }
  SUBCASE("not finite: tensor and index are named") {
    std::vector<float> values(14, 0.25F);
    values[5] = std::numeric_limits<float>::quiet_NaN();
    CHECK(federation.Send(a.id, federation.Update(a, values, 10), &refusal) ==
          policy::Reason::kNotFinite);
    CHECK(refusal.tensor == "weight");
    CHECK(refusal.index == 5);
  }
  SUBCASE("beyond the grid") {
    CHECK(federation.Send(a.id, federation.Update(a, {5.0F, 0.0F}, 10)) ==
          policy::Reason::kOutOfRange);
  }
  SUBCASE("off the grid") {
    CHECK(federation.Send(a.id, federation.Update(a, {0x1p-40F}, 10)) ==
          policy::Reason::kWrongEncoding);
  }
  SUBCASE("over the norm") {
    CHECK(federation.Send(a.id, federation.Update(a, {2.0F}, 10)) == policy::Reason::kNorm);
  }
  SUBCASE("a weight over the cap") {
    CHECK(federation.Send(a.id, federation.Update(a, kDeltas[0], 10'001)) ==
          policy::Reason::kWeight);
  }

  // Whatever was refused: the site may still send the right one, and the round is as if nothing
  // was.
  for (std::size_t i = 0; i < 4; ++i) {
    FakeSite& site = *federation.sites[i];
    CHECK(federation.Send(site.id, i == 0 ? good : federation.Update(site, kDeltas[i], 10)) ==
          policy::Reason::kNone);
  }
  CHECK(federation.coordinator->Show(federation.job)->rounds_committed == 1);
}

TEST_CASE(
    "Coordinator: one update of a site counts, its repeat gets the receipt, another is refused") {
  Federation federation;
  federation.SubmitAndAccept();
  FakeSite& site = *federation.sites[2];
  const SentUpdate first = federation.Update(site, kDeltas[2], 134);
  const SentUpdate other = federation.Update(site, kDeltas[3], 134);

  CHECK(federation.Send(site.id, first) == policy::Reason::kNone);
  CHECK(std::holds_alternative<UpdateReceipt>(
      federation.coordinator->BeginUpdate(site.id, first.head)));
  CHECK(federation.Send(site.id, other) == policy::Reason::kAlreadyReceived);
}

TEST_CASE("Coordinator: after a restart the same bytes give the same model as undisturbed") {
  Federation undisturbed;
  undisturbed.SubmitAndAccept();
  for (std::size_t i = 0; i < 4; ++i) {
    FakeSite& site = *undisturbed.sites[i];
    REQUIRE(undisturbed.Send(site.id, undisturbed.Update(site, kDeltas[i], kWeights[i])) ==
            policy::Reason::kNone);
  }

  Federation federation;
  federation.SubmitAndAccept();
  for (const std::size_t i : {1, 3}) {
    FakeSite& site = *federation.sites[i];
    REQUIRE(federation.Send(site.id, federation.Update(site, kDeltas[i], kWeights[i])) ==
            policy::Reason::kNone);
  }
  for (const auto& site : federation.sites) {
    ++site->instance;
  }
  federation.Restart();
  for (std::size_t i = 0; i < 4; ++i) {
    FakeSite& site = *federation.sites[i];
    REQUIRE(site.port->Last<OpenMessage>() != nullptr);
    CHECK(site.port->Last<OpenMessage>()->epoch.starts == 2);
    CHECK(federation.Send(site.id, federation.Update(site, kDeltas[i], kWeights[i])) ==
          policy::Reason::kNone);
  }

  CHECK(federation.coordinator->Show(federation.job)->rounds_committed == 1);
  CHECK(federation.ModelBytes() == undisturbed.ModelBytes());
}

TEST_CASE(
    "Coordinator: a site that starts again while its old stream still hangs gets the open phase") {
  Federation federation;
  federation.SubmitAndAccept();
  FakeSite& site = *federation.sites[0];
  const std::shared_ptr<FakePort> old = site.port;
  site.port = std::make_shared<FakePort>();
  site.instance = 2;

  REQUIRE(std::holds_alternative<Welcome>(federation.coordinator->Connect(
      site.identity.certificate, site.Hello(site.instance), site.port)));
  federation.coordinator->Joined(site.id, {});
  federation.coordinator->Disconnected(site.id, old.get());

  CHECK(old->ended == policy::Reason::kSuperseded);
  REQUIRE(site.port->Last<OpenMessage>() != nullptr);
  CHECK(federation.Send(site.id, federation.Update(site, kDeltas[0], 196)) ==
        policy::Reason::kNone);
}

TEST_CASE("Coordinator: no number of an update can be read in its folder") {
  Federation federation;
  federation.SubmitAndAccept();
  const std::vector<float> canary = {0x1.234566p-4F, 0x1.654322p-5F};
  FakeSite& site = *federation.sites[0];
  REQUIRE(federation.Send(site.id, federation.Update(site, canary, 196)) == policy::Reason::kNone);
  const Bytes needle = updates::EncodeF32(canary);

  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(federation.Folder())) {
    if (entry.is_regular_file()) {
      ++files;
      CHECK(Read(entry.path().string()).find(AsText(needle)) == std::string::npos);
    }
  }
  CHECK(files > 10);
}

TEST_CASE("Coordinator: a copy, a restored copy and a policy for another place are turned away") {
  Federation federation;
  FakeSite& site = *federation.sites[1];
  const auto connect = [&](const SiteHello& hello) {
    const auto answer = federation.coordinator->Connect(site.identity.certificate, hello,
                                                        std::make_shared<FakePort>());
    const auto* refusal = std::get_if<Refusal>(&answer);
    return refusal == nullptr ? policy::Reason::kNone : refusal->reason;
  };

  CHECK(connect(site.Hello(1)) == policy::Reason::kAlreadyConnected);
  CHECK(connect(site.Hello(0)) == policy::Reason::kInstance);
  SiteHello elsewhere = site.Hello(2);
  elsewhere.policy_statement = federation.sites[0]->statement;
  CHECK(connect(elsewhere) == policy::Reason::kJurisdictionMismatch);
  SiteHello unsigned_head = site.Hello(2);
  unsigned_head.own_head = federation.sites[0]->Hello(2).own_head;
  CHECK(connect(unsigned_head) == policy::Reason::kLogHead);
  SiteHello garbled = site.Hello(2);
  garbled.policy_statement += " ";
  CHECK(connect(garbled) == policy::Reason::kMalformed);
  CHECK(connect(site.Hello(2)) == policy::Reason::kNone);
  CHECK(site.port->ended == policy::Reason::kSuperseded);
}

}  // namespace
}  // namespace domicile::aggregator

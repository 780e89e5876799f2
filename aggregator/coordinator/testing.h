// What the tests of this folder share: a coordinator with real keys, policies, store and log, and
// sites that are values.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "aggregator/coordinator/config.h"
#include "aggregator/coordinator/coordinator.h"
#include "aggregator/coordinator/fake_site.h"
#include "base/file.h"
#include "cli/authority.h"
#include "crypto/tree_digest.h"
#include "policy/language/parse.h"
#include "policy/language/statement.h"
#include "updates/encoding.h"
#include "updates/plan_sections.h"
#include "updates/update.h"

namespace domicile::aggregator {

// A federation of four sites in a temporary folder; the job runs as soon as all have accepted.
class Federation {
 public:
  Federation() {
    std::string pattern = (FastestFolder() / "domicile-coordinator-XXXXXX").string();
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
    config_.policy_signers.none = true;
    REQUIRE(CreateFolders(folder_ + "/policies").ok());
    for (const auto& [name, file] :
         {std::pair("federation.policy.toml", &config_.federation_policy),
          {"aggregator.policy.toml", &config_.aggregator_policy},
          {"legal-facts.toml", &config_.legal_facts}}) {
      *file = folder_ + "/policies/" + name;
      WritePolicy(*file, Read(kExamples + name));
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
    coordinator = Coordinator::Open({.state_folder = folder_ + "/state",
                                     .max_update_bytes = 1U << 20U,
                                     .version = "test",
                                     .policies = PolicyFilesOf(config_, "IE")},
                                    contracts::LoadIdentity(folder_ + "/main",
                                                            crypto::Role::kAggregator, clock_.Now())
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

  void SubmitAndAccept(const std::string& job_file = ShortJob()) {
    const StatusOr<JobView> view = coordinator->Submit("demo", job_file, "job.toml");
    REQUIRE_MESSAGE(view.ok(), Message(view.status()));
    job = view->job;
    plan = contracts::PlanFromText(view->plan).value();
    plan_digest = view->plan_digest;
    for (const auto& site : sites) {
      Accept(*site);
    }
  }
  // The site accepts the job under the policies that lie in the files.
  void Accept(const FakeSite& site) {
    OfferReply reply;
    reply.job = job;
    reply.plan = plan_digest;
    reply.answer = Answer::kAccept;
    reply.min_contributors = 3;
    reply.effective_policy = PolicyOf(site);
    coordinator->ReplyToOffer(site.id, reply);
  }

  // A new connection of a site: also what makes the timers look at the clock again.
  void Rejoin(FakeSite& site) {
    ++site.instance;
    site.port = std::make_shared<FakePort>();
    REQUIRE(std::holds_alternative<Welcome>(
        coordinator->Connect(site.identity.certificate, site.Hello(site.instance), site.port)));
    coordinator->Joined(site.id, {});
  }

  Digest PolicyOf(const FakeSite& site) const {
    OwnPolicies own;
    for (const contracts::PolicyFile& file : PolicyFilesOf(config_, "IE").files) {
      REQUIRE(contracts::TakePolicyText(Read(file.file), file.file, file.kind, "IE", own).ok());
    }
    return MeetStatement(own, site.statement, site.identity.entry).value().digests.effective;
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
    return Read(folder_ + "/state/models/" +
                PrintHex(coordinator->Show("alice", job)->model.digest) + ".safetensors");
  }
  const Config& Configuration() const { return config_; }
  static void WritePolicy(const std::string& file, const std::string& text) {
    REQUIRE(WriteFileDurably(file, AsBytes(text)).ok());
  }
  const std::string& Folder() const { return folder_; }
  void Advance(std::chrono::nanoseconds by) { clock_.Advance(by); }

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
  MovedClock clock_{ParseTime("2026-12-01T09:00:00Z").value()};
  SystemRandom random_;
  std::string folder_;
  Config config_;  // of its policies, which are in the folder
};

// What the log says, of one type, in order.
inline std::vector<audit::Event> LeavesOf(const Federation& federation, audit::EventType type) {
  Database db =
      Database::Open(federation.Folder() + "/state/aggregator.db", Database::Mode::kReadOnly)
          .value();
  Statement rows = db.Prepare("SELECT bytes FROM log_leaf ORDER BY seq").value();
  std::vector<audit::Event> found;
  while (rows.Step().value()) {
    audit::Leaf leaf = audit::ParseLeaf(AsText(rows.Blob(0))).value();
    if (leaf.event.type() == type) {
      found.push_back(std::move(leaf.event));
    }
  }
  return found;
}

// Numbers whose float sums depend on the order, on the grid of 2^-32.
inline const std::array<std::vector<float>, 4> kDeltas = {
    std::vector<float>{0x1.fffffep-3F, -0x1.000002p-7F},
    {0x1.0p-30F, 0x1.5p-2F, -0x1.1p-9F},
    {-0x1.fffffcp-3F, 0x1.8p-31F},
    {0x1.23456p-5F}};
inline const std::array<std::int64_t, 4> kWeights = {196, 202, 134, 82};

}  // namespace domicile::aggregator

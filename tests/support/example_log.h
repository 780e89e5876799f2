// Logs for tests: keys, events of one training phase as a site and an aggregator write them, leaves
// and databases made of them.
#pragma once

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "audit/log.h"
#include "audit/records.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/sqlite.h"
#include "crypto/note.h"

namespace domicile::test {

// A folder that is removed with all it holds.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "domicile-test-XXXXXX";
    DOMICILE_CHECK(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

template <typename T>
T Must(StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", ToString(value.status()).c_str());
    std::abort();
  }
  return *std::move(value);
}

inline void Must(const Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", ToString(status).c_str());
    std::abort();
  }
}

inline crypto::NoteSigner ExampleSigner(const std::string& name, std::uint64_t seed = 1) {
  SeededRandom random(seed);
  return Must(crypto::NoteSigner::Generate(name, random));
}

inline Digest ExampleDigest(std::uint8_t fill) {
  Digest digest;
  digest.bytes.fill(fill);
  return digest;
}

inline const char* kSiteLog = "demo/site/charite/log";
inline const char* kAggregatorLog = "demo/aggregator/main/log";
inline const WallTime kExampleTime = WallTime(std::chrono::seconds(1796000000));

inline audit::PhaseKey ExamplePhase(std::uint32_t attempt = 1) {
  return {Must(JobId::Parse("heart-1")), 1, "train", {1, attempt}};
}

inline audit::DecisionRecord ExampleDecision(const std::string& result = "allow") {
  return {.result = result,
          .reasons = {result == "allow" ? "PERMITTED" : "VIEW"},
          .rules = {"site/charite-2026/S-1"},
          .policies = {.effective = ExampleDigest(0xE1),
                       .federation = ExampleDigest(0xE2),
                       .aggregator = {},
                       .site = ExampleDigest(0xE3),
                       .facts = {}}};
}

inline const audit::PartyPlace kSite{"site/charite", "DE"};
inline const audit::PartyPlace kAggregator{"aggregator/main", "IE"};
inline constexpr std::uint64_t kUpdateBytes = 1000;

inline audit::Event SiteStarted() {
  return Must(audit::EventBuilder(audit::EventType::kAgentStarted)
                  .Set("site", Json("charite"))
                  .Set("jurisdiction", Json("DE"))
                  .Set("instance", Json(1))
                  .Set("version", Json("0.1.0"))
                  .Build());
}

inline audit::Event AggregatorStarted() {
  return Must(audit::EventBuilder(audit::EventType::kAggregatorStarted)
                  .Set("aggregator", Json("main"))
                  .Set("jurisdiction", Json("IE"))
                  .Set("starts", Json(1))
                  .Set("version", Json("0.1.0"))
                  .Build());
}

inline audit::Event Decided(const Digest& digest, const audit::PhaseKey& key = ExamplePhase()) {
  return Must(ToEvent(audit::EgressDecided{.key = key,
                                           .transfer = digest,
                                           .kinds = {"delta.clipped", "metrics.aggregate"},
                                           .dataset = Must(DatasetAlias::Parse("heart")),
                                           .from = kSite,
                                           .to = kAggregator,
                                           .decision = ExampleDecision(),
                                           .bytes = kUpdateBytes,
                                           .numbers = 16,
                                           .capacity_bits = 384,
                                           .cohort_bucket = 200,
                                           .grant = ExampleDigest(0x9A)}));
}

inline audit::Event Step(audit::EventType type, const Digest& digest, std::uint64_t bytes,
                         std::uint64_t receipt_seq = 0,
                         const audit::PhaseKey& key = ExamplePhase()) {
  audit::EgressStep step{
      .key = key, .digest = digest, .bytes = bytes, .receipt_seq = std::nullopt, .reason = {}};
  if (type == audit::EventType::kEgressDone) {
    step.receipt_seq = receipt_seq;
  }
  if (type == audit::EventType::kEgressAborted) {
    step.reason = "CONNECTION-LOST";
  }
  return Must(ToEvent(type, step));
}

inline audit::Event Received(const Digest& digest, std::uint64_t bytes = kUpdateBytes,
                             const std::string& site = "charite",
                             const audit::PhaseKey& key = ExamplePhase()) {
  return Must(ToEvent(audit::IngressReceived{.key = key,
                                             .site = Must(SiteId::Parse(site)),
                                             .jurisdiction = site == "charite" ? "DE" : "FR",
                                             .digest = digest,
                                             .bytes = bytes,
                                             .kinds = {"delta.clipped", "metrics.aggregate"},
                                             .capacity_bits = 384,
                                             .decision = ExampleDecision()}));
}

inline audit::Event NotReceived(audit::EventType type, const Digest& digest, std::uint64_t bytes) {
  return Must(audit::EventBuilder(type)
                  .Phase(ExamplePhase())
                  .Set("site", Json("charite"))
                  .Set("digest", digest)
                  .Set("bytes", Json(bytes))
                  .Set("reason", Json("CONNECTION-LOST"))
                  .Build());
}

inline audit::Event Committed(const std::vector<std::pair<std::string, Digest>>& contributors,
                              const audit::PhaseKey& key = ExamplePhase()) {
  audit::PhaseCommitted record{.key = key, .contributors = {}, .model = ExampleDigest(0xBB)};
  for (const auto& [site, digest] : contributors) {
    record.contributors.push_back({Must(SiteId::Parse(site)), digest, 100});
  }
  return Must(ToEvent(record));
}

inline audit::Event Counted(const Digest& digest, std::uint64_t commit_seq,
                            const audit::PhaseKey& key = ExamplePhase()) {
  return Must(audit::EventBuilder(audit::EventType::kUpdateCounted)
                  .Phase(key)
                  .Set("digest", digest)
                  .Set("commit_seq", Json(commit_seq))
                  .Build());
}

inline audit::Event NotCounted(const Digest& digest) {
  return Must(audit::EventBuilder(audit::EventType::kUpdateNotCounted)
                  .Phase(ExamplePhase())
                  .Set("digest", digest)
                  .Set("reason", Json("SUPERSEDED"))
                  .Build());
}

inline audit::Event Model(audit::EventType type, const Digest& model) {
  return Must(ToEvent(type, audit::ModelTransfer{.key = ExamplePhase(),
                                                 .model = model,
                                                 .bytes = 500,
                                                 .kind = "model.global",
                                                 .from = kAggregator,
                                                 .to = kSite,
                                                 .decision = ExampleDecision()}));
}

// One whole phase. The aggregator's `ingress.received` of the site is leaf 2, its commit leaf 4.
inline std::vector<audit::Event> SiteStory() {
  const Digest update = ExampleDigest(0x11);
  return {SiteStarted(),
          Model(audit::EventType::kModelIntake, ExampleDigest(0xAA)),
          Decided(update),
          Step(audit::EventType::kEgressIntent, update, kUpdateBytes),
          Step(audit::EventType::kEgressDone, update, kUpdateBytes, 2),
          Counted(update, 4)};
}

inline std::vector<audit::Event> AggregatorStory() {
  return {AggregatorStarted(), Model(audit::EventType::kModelSent, ExampleDigest(0xAA)),
          Received(ExampleDigest(0x11)), Received(ExampleDigest(0x22), kUpdateBytes, "lyon"),
          Committed({{"charite", ExampleDigest(0x11)}, {"lyon", ExampleDigest(0x22)}})};
}

// Leaves a second apart, as a log would number them.
inline std::vector<audit::Leaf> LeavesOf(const std::string& origin,
                                         const std::vector<audit::Event>& events) {
  std::vector<audit::Leaf> leaves;
  for (std::uint64_t seq = 0; seq < events.size(); ++seq) {
    leaves.push_back({.frame = {.origin = origin,
                                .seq = seq,
                                .time = kExampleTime + std::chrono::seconds(seq),
                                .mono_us = 1000000 * seq,
                                .boot = std::string(32, 'b')},
                      .event = events[seq]});
  }
  return leaves;
}

inline std::vector<std::string> LinesOf(const std::vector<audit::Leaf>& leaves) {
  std::vector<std::string> lines;
  for (const audit::Leaf& leaf : leaves) {
    lines.push_back(Must(audit::PrintLeaf(leaf.frame, leaf.event)));
  }
  return lines;
}

inline std::string JoinLines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

// A party's database with its log. The parts are where they were made: not to be moved.
struct ExampleLog {
  explicit ExampleLog(const std::string& path = ":memory:", const std::string& name = kSiteLog)
      : db(Must(Database::Open(path, Database::Mode::kCreate))), signer(ExampleSigner(name)) {
    const std::array<std::string_view, 1> steps = {audit::kLogTables};
    Must(db.Migrate(0x646F6D31, steps));
    log = std::make_unique<audit::Log>(Must(audit::Log::Open(db, signer, clock, random)));
  }
  ExampleLog(const ExampleLog&) = delete;
  ExampleLog& operator=(const ExampleLog&) = delete;
  ~ExampleLog() = default;

  void Append(const audit::Event& event) {
    clock.Advance(std::chrono::milliseconds(20));
    Must(log->Append(event).status());
  }
  void Append(const std::vector<audit::Event>& events) {
    for (const audit::Event& event : events) {
      Append(event);
    }
  }

  Database db;
  crypto::NoteSigner signer;
  FakeClock clock{kExampleTime};
  SeededRandom random{7};
  std::unique_ptr<audit::Log> log;  // destroyed first
};

}  // namespace domicile::test

// Tests only: an office without a network, with the folders of an agent and two officers' keys.
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "cli/plan_words.h"
#include "cli/testing_outcome.h"
#include "contracts/grant.h"
#include "crypto/key_file.h"

namespace domicile::cli {

inline const WallTime kNow = *ParseTime("2026-12-01T00:00:00Z");

inline std::string HeartJob() {
  return std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/heart/job.toml";
}

inline Digest Filled(std::uint8_t byte) {
  Digest digest;
  digest.bytes.fill(byte);
  return digest;
}

class Office {
 public:
  Office() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "domicile-grant-test-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    body.federation = "fed.example";
    body.site = SiteId::Parse("charite").value();
    body.job = JobId::Parse("heart-1").value();
    body.plan = contracts::PlanDigest(ReadPlan(HeartJob()).value());
    body.trainer = Filled(2);
    body.base_model = Filled(3);
    body.dataset = DatasetAlias::Parse("heart").value();
    body.dataset_commitment = Filled(4);
    body.effective_policy = Filled(5);
    body.not_after = kNow + std::chrono::days(30);
    AddKey("officer", 1);
    AddKey("head", 2);
    Write("request", contracts::GrantText(body));
  }
  Office(const Office&) = delete;
  Office& operator=(const Office&) = delete;
  ~Office() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string Path(std::string_view name) const { return JoinPath(folder_, name); }
  void Write(std::string_view name, std::string_view text) {
    REQUIRE(WriteFileDurably(Path(name), AsBytes(text)).ok());
  }
  std::string Read(std::string_view name) { return ReadFile(Path(name), 1U << 20U).value(); }
  bool Has(std::string_view name) const { return FileExists(Path(name)); }

  void AddKey(const std::string& name, std::uint64_t seed, const std::string& file = {}) {
    SeededRandom random(seed);
    const crypto::NoteSigner signer =
        crypto::NoteSigner::Generate("fed.example/site/charite/" + name, random,
                                     crypto::NoteKeyKind::kCosigner)
            .value();
    REQUIRE(crypto::WriteNoteKey(Path((file.empty() ? name : file) + ".key"), signer).ok());
    verifiers.push_back(signer.Verifier());
  }

  // `args` with @NAME standing for a path in the folder.
  Outcome Run(const std::string& args) {
    return RunAt(clock_, random_,
                 Words(args, [this](std::string_view name) { return Path(name); }));
  }

  // As the agent does: `body` and its plan into the folder of requests.
  void Ask(const std::string& job_file = {}) {
    REQUIRE(CreateFolders(Path("requests")).ok());
    REQUIRE(CreateFolders(Path("grants")).ok());
    Write("requests/" + body.job.text() + ".request", contracts::GrantText(body));
    Write("requests/" + body.job.text() + ".plan.json",
          contracts::PlanText(ReadPlan(job_file.empty() ? HeartJob() : Path(job_file)).value()));
  }
  contracts::GrantCheck Verify(std::uint32_t persons, WallTime now,
                               std::string_view file = "grant") {
    contracts::ApprovalRules rules;
    for (const crypto::NoteVerifier& key : verifiers) {
      rules.approvers.push_back(
          {.role = policy::ApprovalRole::kDpo, .organisation = "charite", .key = key});
    }
    rules.persons = persons;
    return contracts::VerifyGrant(Read(file), rules, body, now);
  }

  contracts::GrantBody body;
  std::vector<crypto::NoteVerifier> verifiers;

 private:
  std::string folder_;
  FakeClock clock_{kNow};
  SystemRandom random_;
};

}  // namespace domicile::cli

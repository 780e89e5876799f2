// What the tests of this folder share.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "audit/records.h"
#include "base/file.h"
#include "contracts/normalisation.h"
#include "contracts/plan.h"
#include "crypto/tree_digest.h"
#include "models/safetensors.h"
#include "site_agent/egress/books.h"
#include "site_agent/egress/model_intake.h"
#include "tests/support/example_log.h"

namespace domicile::site_agent {

using test::ExampleDigest;
using test::Must;

inline const std::string kHeart = DOMICILE_SOURCE_DIR "/deploy/examples/heart/";

inline std::string HeartText(const std::string& name) {
  return Must(ReadFile(kHeart + name, std::uint64_t{1} << 20U));
}

// 13 inputs, a logistic model of 14 weights, clip norm 4, 40 rounds with statistics.
inline contracts::Plan HeartPlan() {
  return Must(contracts::PlanFromJobFile(HeartText("job.toml"), "job.toml"));
}

inline const JobId kJob = Must(JobId::Parse("heart-1"));
inline const DatasetAlias kHeartData = Must(DatasetAlias::Parse("heart"));

inline PhaseId Phase(contracts::PhaseKind kind, RoundNumber round = 1, const JobId& job = kJob) {
  return {.job = job, .round = round, .phase = kind};
}

using Model = std::vector<models::NamedTensor>;

// All weights zero, constants 0 and 1.
inline Model ZeroModel(const contracts::Plan& plan) {
  Model model;
  for (const contracts::TensorSpec& spec : plan.Tensors()) {
    model.push_back({.name = spec.name, .shape = spec.shape});
    model.back().values.assign(spec.Size(), 0);
  }
  for (const char* name : {contracts::kMeanTensor, contracts::kDeviationTensor}) {
    model.push_back({.name = name, .shape = {plan.NumInputs()}});
    model.back().values.assign(plan.NumInputs(),
                               name == std::string(contracts::kMeanTensor) ? 0 : 1);
  }
  return model;
}

inline Digest DigestOfModel(const Model& model) {
  return crypto::TreeDigest(models::PrintSafetensors(model));
}

// A site's folder with its books open; Reopen is a restart.
class Desk {
 public:
  Desk() { Reopen(); }
  std::string Folder() const { return folder_.File("state"); }
  StatusOr<std::unique_ptr<Books>> TryOpen(const std::string& state) {
    return Books::Open(state, signer_, clock_, random_);
  }
  void Close() { books_ = nullptr; }
  void Reopen() {
    Close();
    books_ = Must(TryOpen(Folder()));
  }
  Books& Open() { return *books_; }
  std::string Beside(const std::string& name) const { return folder_.File(name); }

  // The job as offered.
  JobRow PutJob(const contracts::Plan& plan, const Model& base, const JobId& job = kJob) {
    JobRow row{.job = job,
               .plan = contracts::PlanText(plan),
               .base_model = DigestOfModel(base),
               .base_model_bytes = models::PrintSafetensors(base).size(),
               .last_model = {},
               .train_commits = 0,
               .statistics_committed = false,
               .committed_model = {},
               .committed_leaf = 0};
    Must(books_->With([&](SiteStore& store) { return store.PutJob(row); }));
    return row;
  }
  JobRow FindJob(const JobId& job = kJob) {
    return Must(books_->With([&](SiteStore& store) { return store.FindJob(job); })).value();
  }
  std::uint64_t NumLeaves() { return Must(books_->HeadSince(0)).head.checkpoint.size; }
  audit::Event Leaf(std::uint64_t index) {
    return Must(audit::ParseLeaf(Must(books_->LeafWithProof(index)).leaf)).event;
  }
  audit::Event LastLeaf() { return Leaf(NumLeaves() - 1); }

 private:
  test::TempFolder folder_;
  crypto::NoteSigner signer_ = test::ExampleSigner(test::kSiteLog);
  FakeClock clock_{test::kExampleTime};
  SeededRandom random_{7};
  std::unique_ptr<Books> books_;
};

inline audit::PhaseCommitted Commit(const PhaseId& phase, const Digest& model,
                                    std::vector<audit::Contributor> contributors) {
  return {.key = {.job = phase.job,
                  .round = phase.round,
                  .phase = std::string(contracts::PhaseName(phase.phase)),
                  .epoch = {1, 1}},
          .contributors = std::move(contributors),
          .model = model};
}

}  // namespace domicile::site_agent

// Tests only: the heart job of deploy/examples, approved by a person of a site.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "base/random.h"
#include "contracts/grant.h"
#include "contracts/normalisation.h"
#include "contracts/plan.h"
#include "crypto/note.h"
#include "crypto/sha256.h"
#include "crypto/tree_digest.h"
#include "models/safetensors.h"
#include "site_agent/trainer/protocol.h"

namespace domicile::site_agent {

inline std::string ExampleFile(std::string_view name) {
  return std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/heart/" + std::string(name);
}

struct ApprovedJob {
  ApprovedJob() {
    const StatusOr<std::string> job = ReadFile(ExampleFile("job.toml"), 1 << 20);
    REQUIRE(job.ok());
    StatusOr<contracts::Plan> parsed = contracts::PlanFromJobFile(*job, "job.toml");
    REQUIRE(parsed.ok());
    plan = *std::move(parsed);
    body.federation = "heart.example";
    body.site = *SiteId::Parse("cleveland");
    body.job = *JobId::Parse("heart-1");
    body.plan = crypto::Sha256(AsBytes(contracts::PlanText(plan)));
    body.trainer.bytes.fill(1);
    body.base_model = crypto::TreeDigest(FirstModel());
    body.dataset = plan.dataset;
    body.dataset_commitment.bytes.fill(2);
    body.effective_policy.bytes.fill(3);
    body.not_after = now + std::chrono::hours(24);
  }

  // Another job; its first model and plan are approved with it.
  void Become(const contracts::Plan& other) {
    plan = other;
    body.plan = crypto::Sha256(AsBytes(contracts::PlanText(plan)));
    body.base_model = crypto::TreeDigest(FirstModel());
  }

  // Zeros, and the identity as normalisation.
  Bytes FirstModel() const {
    std::vector<models::NamedTensor> tensors;
    for (const contracts::TensorSpec& spec : plan.Tensors()) {
      models::NamedTensor tensor;
      tensor.name = spec.name;
      tensor.shape = spec.shape;
      tensor.values.assign(spec.Size(), 0.0F);
      tensors.push_back(std::move(tensor));
    }
    if (plan.NumInputs() == 0) {
      return models::PrintSafetensors(tensors);  // kind `raw`
    }
    for (const auto& [name, value] :
         {std::pair(contracts::kMeanTensor, 0.0F), std::pair(contracts::kDeviationTensor, 1.0F)}) {
      models::NamedTensor tensor;
      tensor.name = name;
      tensor.shape = {plan.NumInputs()};
      tensor.values.assign(plan.NumInputs(), value);
      tensors.push_back(std::move(tensor));
    }
    return models::PrintSafetensors(tensors);
  }

  std::string Grant(const std::function<void(contracts::GrantBody&)>& change = {}) const {
    contracts::GrantBody changed = body;
    if (change) {
      change(changed);
    }
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
    return *approver.Cosign(contracts::GrantText(changed), static_cast<std::uint64_t>(seconds));
  }

  TaskMessage Task(RoundNumber round, contracts::PhaseKind phase) const {
    TaskMessage task;
    task.job = body.job;
    task.round = round;
    task.phase = phase;
    task.grant = Grant();
    task.plan = contracts::PlanText(plan);
    task.effective_policy = body.effective_policy;
    task.base_model = body.base_model;
    task.model_file = FirstModel();
    task.model = crypto::TreeDigest(task.model_file);
    return task;
  }

  SystemRandom random;
  crypto::NoteSigner approver = *crypto::NoteSigner::Generate("heart.example/site/dpo", random,
                                                              crypto::NoteKeyKind::kCosigner);
  WallTime now = WallTime(std::chrono::hours(24 * 365 * 56));
  contracts::Plan plan;
  contracts::GrantBody body;  // change dataset_commitment and trainer to those of a real service
};

}  // namespace domicile::site_agent

#include "site_agent/trainer/task_check.h"

#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "site_agent/trainer/approved_job.h"
#include "tests/support/example_approval.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;
using policy::Reason;

OwnFacts FactsFor(const ApprovedJob& job) {
  OwnFacts own;
  own.federation = job.body.federation;
  own.site = job.body.site;
  own.trainer = job.body.trainer;
  own.datasets = {{job.body.dataset, job.body.dataset_commitment}};
  own.approval.approvers = {test::ApproverOf(job.approver)};
  own.model_bytes = 1 << 20;
  return own;
}

Reason Check(const TaskMessage& task, const OwnFacts& own, WallTime now) {
  return CheckTask(task, task.model_file.size(), own, now).reason;
}

}  // namespace

TEST_CASE("CheckTask: every phase of the approved plan may run") {
  const ApprovedJob job;
  const OwnFacts own = FactsFor(job);

  for (RoundNumber round = 1; round <= job.plan.rounds.count; ++round) {
    for (const PhaseKind phase : job.plan.Phases(round)) {
      CHECK(Check(job.Task(round, phase), own, job.now) == Reason::kNone);
    }
  }
  CHECK(CheckTask(job.Task(1, PhaseKind::kStatistics), 1, own, job.now).plan == job.plan);
}

TEST_CASE("CheckTask: what the grant does not say is refused") {
  const ApprovedJob job;
  const TaskMessage good = job.Task(1, PhaseKind::kStatistics);
  struct Case {
    const char* name;
    std::function<void(TaskMessage&)> change;
    Reason want;
  };
  const auto granted = [&job](const std::function<void(contracts::GrantBody&)>& change) {
    return [&job, change](TaskMessage& t) { t.grant = job.Grant(change); };
  };
  const Case cases[] = {
      {"no grant", [](TaskMessage& t) { t.grant.clear(); }, Reason::kGrantSignature},
      {"plan changed",
       [&job](TaskMessage& t) {
         contracts::Plan changed = job.plan;
         changed.training.local_steps += 1;
         t.plan = contracts::PlanText(changed);
       },
       Reason::kGrantPlan},
      {"plan with a blank", [](TaskMessage& t) { t.plan += " "; }, Reason::kMalformed},
      {"other site", granted([](auto& b) { b.site = *SiteId::Parse("budapest"); }),
       Reason::kGrantDataset},
      {"other federation", granted([](auto& b) { b.federation = "other.example"; }),
       Reason::kGrantDataset},
      {"other commitment", granted([](auto& b) { b.dataset_commitment.bytes[5] ^= 1U; }),
       Reason::kGrantDataset},
      {"other trainer", granted([](auto& b) { b.trainer.bytes[5] ^= 1U; }), Reason::kGrantTrainer},
      {"expired", granted([&job](auto& b) { b.not_after = job.now; }), Reason::kGrantExpired},
      {"other policy", [](TaskMessage& t) { t.effective_policy.bytes[5] ^= 1U; },
       Reason::kGrantPolicy},
      {"other base model", [](TaskMessage& t) { t.base_model.bytes[5] ^= 1U; },
       Reason::kGrantBaseModel},
      {"first model is another", [](TaskMessage& t) { t.model.bytes[5] ^= 1U; },
       Reason::kGrantBaseModel},
      {"no such round", [](TaskMessage& t) { t.round = 41; }, Reason::kRoundNotOpen},
      {"no such phase", [](TaskMessage& t) { t.phase = PhaseKind::kEvaluate; },
       Reason::kRoundNotOpen},
      {"no statistics later", [](TaskMessage& t) { t.round = 2; }, Reason::kRoundNotOpen},
      {"no model", [](TaskMessage& t) { t.model_file.clear(); }, Reason::kModelShape},
      {"model too long", [](TaskMessage& t) { t.model_file.resize(1 << 19); }, Reason::kTooLarge},
  };
  CHECK(Check(good, FactsFor(job), job.now) == Reason::kNone);
  for (const Case& c : cases) {
    CAPTURE(c.name);
    TaskMessage task = good;
    c.change(task);
    CHECK(Check(task, FactsFor(job), job.now) == c.want);
  }
}

TEST_CASE("CheckTask: what the trainer knows by itself decides, not what the agent says") {
  const ApprovedJob job;
  const TaskMessage task = job.Task(1, PhaseKind::kStatistics);

  OwnFacts stranger = FactsFor(job);
  stranger.approval.approvers = {
      test::ApproverOf(test::ExamplePerson("heart.example/site/x", 2), policy::ApprovalRole::kDpo)};
  CHECK(Check(task, stranger, job.now) == Reason::kGrantSignature);

  OwnFacts two = FactsFor(job);
  two.approval.approvers.push_back(stranger.approval.approvers[0]);
  CHECK(Check(task, two, job.now) == Reason::kNone);
  two.approval.persons = 2;
  CHECK(Check(task, two, job.now) == Reason::kGrantSignature);

  OwnFacts officer = FactsFor(job);
  officer.approval.needs = {
      {.role = policy::ApprovalRole::kDpo, .count = 1, .distinct_org = false}};
  CHECK(Check(task, officer, job.now) == Reason::kApprovalMissing);

  OwnFacts fresh = FactsFor(job);
  fresh.approval.max_age = std::chrono::hours(1);
  CHECK(Check(task, fresh, job.now) == Reason::kNone);
  CHECK(Check(task, fresh, job.now + std::chrono::hours(2)) == Reason::kApprovalExpired);

  OwnFacts nothing = FactsFor(job);
  nothing.datasets.clear();
  CHECK(Check(task, nothing, job.now) == Reason::kDatasetUnknown);

  OwnFacts small = FactsFor(job);
  small.model_bytes = 100;
  CHECK(Check(task, small, job.now) == Reason::kTooLarge);
  CHECK(Check(task, FactsFor(job), job.body.not_after) == Reason::kGrantExpired);
}

}  // namespace domicile::site_agent

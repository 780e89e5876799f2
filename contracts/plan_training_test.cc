// The settings of training: optimizers, schedules, batches, stages.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "contracts/plan.h"
#include "contracts/plan_facts.h"
#include "contracts/testing_jobs.h"

namespace domicile::contracts {
namespace {

std::string JobWith(std::string_view training) {
  return JobOf(kTwoNumbers, kThreeClasses, kMlp, training);
}

TEST_CASE("Training: every setting is read, printed and read again") {
  const Plan plan = MustPlan(JobWith(R"(optimizer = "adamw"
learning_rate = 0.001
weight_decay = 0.01
beta1 = 0.8
beta2 = 0.99
epsilon = 1e-6
l2 = 0.5
clip_norm = 2
schedule = "cosine"
warmup_steps = 7
warmup_from = 0.25
base_batch = 16
local_epochs = 3
batch = 64
last_batch = "drop"
shuffle_seed = 9
frozen = ["layer0.*"]
[training.early_stopping]
patience = 2
min_improvement = 0.001
validation_share = 0.25
[[training.stage]]
from_round = 2
learning_rate = 0.1
)"));
  TrainingPlan wanted;
  wanted.optimizer = OptimizerKind::kAdamW;
  wanted.learning_rate = 0.001;
  wanted.weight_decay = 0.01;
  wanted.beta1 = 0.8;
  wanted.beta2 = 0.99;
  wanted.epsilon = 1e-6;
  wanted.l2 = 0.5;
  wanted.clip_norm = 2;
  wanted.schedule = ScheduleKind::kCosine;
  wanted.warmup_steps = 7;
  wanted.warmup_from = 0.25;
  wanted.base_batch = 16;
  wanted.local_epochs = 3;
  wanted.batch = 64;
  wanted.last_batch = LastBatch::kDrop;
  wanted.shuffle = true;
  wanted.shuffle_seed = 9;
  wanted.frozen = {"layer0.*"};
  wanted.early_stopping = {true, 2, 0.001, 0.25};
  wanted.stages = {{2, {}, 0.1}};

  CHECK(plan.training == wanted);
  CHECK(PlanFromText(PlanText(plan)).value() == plan);
}

TEST_CASE("Training: defaults follow the optimizer and the batch") {
  const TrainingPlan sgd = MustPlan(JobWith(kSgd)).training;
  const TrainingPlan adam =
      MustPlan(JobWith("optimizer = \"adam\"\nlearning_rate = 0.1\nlocal_steps = 4\n")).training;

  CHECK(sgd.last_batch == LastBatch::kKeep);
  CHECK(sgd.shuffle);
  CHECK(sgd.shuffle_seed == 0);
  CHECK(sgd.base_batch == 0);
  CHECK(sgd.beta1 == 0);
  CHECK(adam.beta1 == 0.9);
  CHECK(adam.beta2 == 0.999);
  CHECK(adam.epsilon == 1e-8);
  CHECK(adam.last_batch == LastBatch::kNone);
  CHECK_FALSE(adam.shuffle);
}

TEST_CASE("Training: an epoch counts as one step, the least it can be anywhere") {
  const Plan steps = MustPlan(JobWith(kSgd));
  const Plan epochs = MustPlan(Replaced(JobWith(kSgd), "local_steps = 4", "local_epochs = 2"));

  CHECK(FactsOf(steps).local_steps == 4);
  CHECK(FactsOf(epochs).local_steps == 2);
  CHECK(epochs.training.local_steps == 0);
}

std::string StoppingJob(std::string_view keys = "patience = 3\n") {
  return Replaced(Replaced(JobWith(kSgd), "local_steps = 4", "local_epochs = 4"), "[rounds]",
                  "[training.early_stopping]\n" + std::string(keys) + "[rounds]");
}

TEST_CASE("Training: where a site stops early, one epoch is the least it may send") {
  const Plan plan = MustPlan(StoppingJob());

  CHECK(plan.training.early_stopping == EarlyStoppingPlan{true, 3, 0, 0.1});
  CHECK(PlanFromText(PlanText(plan)).value() == plan);
  CHECK(FactsOf(plan).local_steps == 1);
  CHECK(MustPlan(StoppingJob("patience = 10000\nmin_improvement = 1e6\nvalidation_share = 0.5\n"))
            .training.early_stopping == EarlyStoppingPlan{true, 10'000, 1e6, 0.5});
}

TEST_CASE("Job file: early stopping has three keys, and is of epochs") {
  const Refusal cases[] = {
      {"of steps", "local_epochs = 4", "local_steps = 4",
       "`training.early_stopping` needs `local_epochs` of at least 2"},
      {"of one epoch", "local_epochs = 4", "local_epochs = 1",
       "`training.early_stopping` needs `local_epochs` of at least 2"},
      {"no patience", "patience = 3", "", "`training.early_stopping.patience` is missing"},
      {"patience of nothing", "patience = 3", "patience = 0",
       "`training.early_stopping.patience` must be a whole number from 1 to 10000"},
      {"patience beyond all epochs", "patience = 3", "patience = 10001",
       "`training.early_stopping.patience` must be a whole number from 1 to 10000"},
      {"patience of half an epoch", "patience = 3", "patience = 1.5",
       "`training.early_stopping.patience` must be"},
      {"improvement below 0", "patience = 3", "patience = 3\nmin_improvement = -0.1",
       "`training.early_stopping.min_improvement` must be"},
      {"improvement that is none", "patience = 3", "patience = 3\nmin_improvement = nan",
       "`training.early_stopping.min_improvement` must be"},
      {"improvement without an end", "patience = 3", "patience = 3\nmin_improvement = 2e6",
       "`training.early_stopping.min_improvement` must be"},
      {"nothing held out", "patience = 3", "patience = 3\nvalidation_share = 0",
       "`training.early_stopping.validation_share` must be above 0"},
      {"more held out than left", "patience = 3", "patience = 3\nvalidation_share = 0.51",
       "`training.early_stopping.validation_share` must be"},
      {"a word", "patience = 3", "patience = 3\nvalidation_share = \"half\"",
       "`training.early_stopping.validation_share` must be"},
      {"another key", "patience = 3", "patience = 3\nmode = \"min\"",
       "unknown key `training.early_stopping.mode`"},
      {"no table", "[training.early_stopping]\npatience = 3\n", "[training.stop_early]\n",
       "unknown key `training.stop_early`"},
  };
  CheckRefusals(StoppingJob(), cases);
}

TEST_CASE("PlanFromText: early stopping is there with all its keys, or not at all") {
  const std::string text = PlanText(MustPlan(StoppingJob()));
  const struct {
    const char* name;
    const char* from;
    const char* to;
    const char* want;
  } cases[] = {
      {"a default left out", "\"min_improvement\":\"0\",", "", "every default"},
      {"another spelling", "\"min_improvement\":\"0\"", "\"min_improvement\":\"-0\"",
       "every default"},
      {"a number", "\"validation_share\":\"0.1\"", "\"validation_share\":0", "validation_share"},
      {"too much held out", "\"validation_share\":\"0.1\"", "\"validation_share\":\"0.6\"",
       "`plan.training.early_stopping.validation_share` must be a decimal"},
      {"nothing held out", "\"validation_share\":\"0.1\"", "\"validation_share\":\"0\"",
       "`training.early_stopping.validation_share` must be above 0"},
      {"no patience", "\"patience\":3", "\"patience\":0", "patience"},
      {"one epoch", "\"local_epochs\":4", "\"local_epochs\":1", "needs `local_epochs`"},
      {"of a list", "{\"min_improvement\":\"0\",\"patience\":3,\"validation_share\":\"0.1\"}", "[]",
       "early_stopping"},
  };
  REQUIRE(PlanFromText(text).ok());
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const Status status = PlanFromText(Replaced(text, c.from, c.to)).status();
    CHECK(status.code() == StatusCode::kInvalidArgument);
    const std::string message(Message(status));
    CAPTURE(message);
    CHECK(message.find(c.want) != std::string::npos);
  }
}

TEST_CASE("Job file: settings of training that do not hold together are refused") {
  const Refusal cases[] = {
      {"steps and epochs", "batch = 2", "batch = 2\nlocal_epochs = 1",
       "`training.local_steps` cannot stand beside `local_epochs`"},
      {"neither", "local_steps = 4\n", "", "`training.local_steps` is missing"},
      {"no epoch", "local_steps = 4", "local_epochs = 0", "`training.local_epochs` must be"},
      {"nesterov alone", "batch = 2", "batch = 2\nnesterov = true",
       "`training.nesterov` needs `momentum`"},
      {"beta of sgd", "batch = 2", "batch = 2\nbeta1 = 0.9",
       "`training.beta1` has no use with `sgd`"},
      {"decay of adam", "optimizer = \"sgd\"", "optimizer = \"adam\"\nweight_decay = 0.1",
       "`training.weight_decay` has no use with `adam`; take `l2`, or `adamw`"},
      {"nesterov of adamw", "optimizer = \"sgd\"", "optimizer = \"adamw\"\nnesterov = true",
       "`training.nesterov` has no use with `adamw`"},
      {"decay below 0", "batch = 2", "batch = 2\nweight_decay = -1",
       "`training.weight_decay` must be"},
      {"beta 1", "optimizer = \"sgd\"", "optimizer = \"adam\"\nbeta2 = 1",
       "`training.beta2` must be below 1"},
      {"epsilon 0", "optimizer = \"sgd\"", "optimizer = \"adam\"\nepsilon = 0",
       "`training.epsilon` must be above 0"},
      {"clip below 0", "batch = 2", "batch = 2\nclip_norm = -1", "`training.clip_norm` must be"},
      {"schedule", "batch = 2", "batch = 2\nschedule = \"cosin\"", "(did you mean `cosine`?)"},
      {"warm-up without steps", "batch = 2", "batch = 2\nwarmup_from = 0.1",
       "`training.warmup_from` has no use where `warmup_steps` is 0"},
      {"warm-up longer than the job", "batch = 2",
       "batch = 2\nschedule = \"cosine\"\nwarmup_steps = 20",
       "`training.warmup_steps` must be below the steps of the whole job"},
      {"last of all rows", "batch = 2", "last_batch = \"drop\"",
       "`training.last_batch` has no use where `batch` is 0"},
      {"last batch", "batch = 2", "batch = 2\nlast_batch = \"pad\"",
       "`training.last_batch` must be one of `keep`, `drop`"},
      {"seed of an order", "batch = 2", "batch = 2\nshuffle = false\nshuffle_seed = 1",
       "`training.shuffle_seed` has no use where `shuffle` is false"},
      {"base of all rows", "batch = 2", "base_batch = 2",
       "`training.base_batch` has no use where `batch` is 0"},
      {"pattern of nothing", "batch = 2", "batch = 2\nfrozen = [\"conv*\"]",
       "`training.frozen` has the pattern `conv*`, which no tensor"},
      {"odd pattern", "batch = 2", "batch = 2\nfrozen = [\"lay er\"]",
       "`training.frozen` must be patterns"},
      {"all frozen", "batch = 2", "batch = 2\nfrozen = [\"*\"]",
       "`training.frozen` leaves nothing to train"},
      {"stage from no round", "[rounds]", "[[training.stage]]\nfrom_round = 0\n[rounds]",
       "`training.stage[0].from_round` must be"},
      {"stage behind the end", "[rounds]", "[[training.stage]]\nfrom_round = 6\n[rounds]",
       "`training.stage[0].from_round` must be from 1 to `rounds.count`"},
      {"stages out of order", "[rounds]",
       "[[training.stage]]\nfrom_round = 3\n[[training.stage]]\nfrom_round = 3\n[rounds]",
       "`training.stage[1].from_round` must be above"},
      {"all frozen in a stage", "[rounds]",
       "[[training.stage]]\nfrom_round = 2\nfrozen = [\"*\"]\n[rounds]",
       "`training.stage[0].frozen` leaves nothing to train"},
      {"stage of no rate", "[rounds]",
       "[[training.stage]]\nfrom_round = 2\nlearning_rate = 0\n[rounds]",
       "`training.stage[0].learning_rate` must be above 0"},
      {"unknown key of a stage", "[rounds]",
       "[[training.stage]]\nfrom_round = 2\nmomentum = 0.9\n[rounds]",
       "unknown key `training.stage.momentum`"},
  };
  CheckRefusals(JobWith(kSgd), cases);
}

TEST_CASE("PlanFromText: a plan names every setting its kinds use, and no other") {
  struct Case {
    std::string name;
    std::string job;
    const char* from;
    const char* to;
    const char* want;
  };
  const std::string conv = JobOf(kGreyPicture, kThreeClasses, kConvNet, kSgd);
  const std::string encoder = JobOf(kShortText, kTwoClasses, kEncoder, kSgd);
  const std::string number = JobOf(kTwoNumbers, kNumberLabel, "kind = \"linear\"\n", kSgd);
  const Case cases[] = {
      {"steps and epochs", conv, "\"local_steps\":4", "\"local_epochs\":1,\"local_steps\":4",
       "cannot stand beside"},
      {"a default left out", conv, ",\"nesterov\":false", "", "every default"},
      {"a block's default left out", conv, ",\"stride\":1", "", "every default"},
      {"an unknown key of a block", conv, ",\"stride\":1", ",\"stride\":1,\"stripe\":1",
       "unknown key `stripe`"},
      {"groups of no norm", conv, "\"filters\":6", "\"filters\":6,\"groups\":2", "groups"},
      {"stages as no list", conv, "\"stages\":[]", "\"stages\":{}", "must be a list"},
      {"a stage's default left out", conv, "\"stages\":[]",
       "\"stages\":[{\"from_round\":2,\"learning_rate\":\"0.1\"}]", "every default"},
      {"no mean", conv, ",\"mean\":[\"0\"]", "", "every default"},
      {"a number as mean", conv, "\"mean\":[\"0\"]", "\"mean\":[0]", "plan"},
      {"two inputs", conv, "\"image\":{", "\"features\":[],\"image\":{", "unknown key `features`"},
      {"another spelling of a digest", encoder, "07eced", "07ECED", "must be a SHA-256"},
      {"no pooling", encoder, ",\"pooling\":\"first\"", "", "every default"},
      {"alpha without a rank", encoder, "\"lora_rank\":0", "\"lora_alpha\":\"1\",\"lora_rank\":0",
       "lora_alpha"},
      {"no scale", number, ",\"scale\":\"4\"", "", "every default"},
      {"classes beside", number, "\"column\":\"label\"",
       "\"classes\":[\"a\",\"b\"],\"column\":\"label\"", "unknown key `classes`"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::string text = PlanText(MustPlan(c.job));
    REQUIRE(PlanFromText(text).ok());
    const StatusOr<Plan> plan = PlanFromText(Replaced(text, c.from, c.to));
    CHECK(plan.status().code() == StatusCode::kInvalidArgument);
    const std::string message(Message(plan.status()));
    CAPTURE(message);
    CHECK(message.find(c.want) != std::string::npos);
  }
}

}  // namespace
}  // namespace domicile::contracts

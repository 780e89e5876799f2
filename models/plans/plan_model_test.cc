#include "models/plans/plan_model.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "contracts/testing_jobs.h"
#include "crypto/sha256.h"
#include "models/initial.h"

namespace domicile::models {
namespace {

using namespace contracts;  // NOLINT(google-build-using-namespace): the jobs of its tests

std::string AdapterModel() { return std::string(kEncoder) + std::string(kAdapters); }

std::string Mean(std::string text) { return Replaced(std::move(text), "\"first\"", "\"mean\""); }

std::vector<contracts::Plan> PlansOfEveryKind() {
  const std::string sgd(kSgd);
  std::string norms(kConvNet);
  norms = Replaced(norms, "norm = \"batch\"", "norm = \"frozen_batch\"");
  return {MustPlan(JobOf(kTwoNumbers, kTwoClasses, "kind = \"logistic\"\n", sgd)),
          MustPlan(JobOf(kTwoNumbers, kThreeClasses, "kind = \"logistic\"\n", sgd)),
          MustPlan(JobOf(kTwoNumbers, kNumberLabel, "kind = \"linear\"\n", sgd)),
          MustPlan(JobOf(kGreyPicture, kThreeClasses, kMlp, sgd)),
          MustPlan(JobOf(kTwoNumbers, kNumberLabel, kMlp, sgd)),
          MustPlan(JobOf(kGreyPicture, kThreeClasses, kConvNet, sgd)),
          MustPlan(JobOf(kGreyPicture, kTwoClasses, norms, sgd)),
          MustPlan(JobOf(kShortText, kTwoClasses, kEncoder, sgd)),
          MustPlan(JobOf(kShortText, kThreeClasses, Mean(std::string(kEncoder)), sgd)),
          MustPlan(JobOf(kShortText, kTwoClasses, AdapterModel(), sgd)),
          MustPlan(JobOf(kShortText, kTwoClasses, kEncoder,
                         sgd + "frozen = [\"embeddings.*\", \"*LayerNorm.bias\"]\n"))};
}

TEST_CASE("Plan: its tensors are those its model trains, by name, shape and order") {
  for (const contracts::Plan& plan : PlansOfEveryKind()) {
    CAPTURE(contracts::PlanText(plan));
    ParameterLayout layout = LayoutOf(SpecOf(plan));
    layout.Freeze(plan.training.frozen);
    std::vector<contracts::TensorSpec> trained;
    for (const ParameterView& view : layout.Views()) {
      if (view.trainable) {
        trained.push_back({view.name, view.shape});
      }
    }

    CHECK(CheckSpec(SpecOf(plan)).ok());
    CHECK(plan.Tensors() == trained);
    CHECK(NumInputs(SpecOf(plan)) == (plan.schema.text ? 0 : plan.NumInputs()));
  }
}

TEST_CASE("Plan: what travels comes back, and only that") {
  const contracts::Plan plan =
      MustPlan(JobOf(kShortText, kTwoClasses, AdapterModel(), std::string(kSgd)));
  const std::vector<float> first = FirstParameters(plan, {}).value();
  std::vector<NamedTensor> tensors = TravellingTensors(plan, first);
  REQUIRE(tensors.size() == plan.Tensors().size());
  CHECK(tensors.back().name == "classifier.bias");

  tensors.back().values[0] = 7;
  std::vector<float> other = first;
  CHECK(ReadTravelling(plan, tensors, other).ok());
  CHECK(other.back() == 7);
  other.back() = first.back();
  CHECK(other == first);

  tensors.back().shape = {2};
  CHECK(Message(ReadTravelling(plan, tensors, other)).find("`classifier.bias`") !=
        std::string_view::npos);
  tensors.pop_back();
  CHECK(Message(ReadTravelling(plan, tensors, other)).find("has no tensor `classifier.bias`") !=
        std::string_view::npos);
}

TEST_CASE("Plan: a stage, a batch and a round give the settings of the steps") {
  contracts::Plan plan = MustPlan(JobOf(
      kTwoNumbers, kThreeClasses, kMlp,
      "optimizer = \"adamw\"\nlearning_rate = 0.1\nbeta1 = 0.8\nweight_decay = 0.01\nl2 = 0.5\n"
      "clip_norm = 3\nschedule = \"cosine\"\nwarmup_steps = 2\nwarmup_from = 0.5\n"
      "base_batch = 8\nbatch = 32\nlocal_steps = 4\nfrozen = [\"layer0.*\"]\n"
      "[[training.stage]]\nfrom_round = 3\nlearning_rate = 0.2\n"));

  const TrainingSpec first = TrainingOf(plan, 1, 4);
  const TrainingSpec third = TrainingOf(plan, 3, 4);

  CHECK(first.optimizer.kind == OptimizerKind::kAdamW);
  CHECK(first.optimizer.learning_rate == doctest::Approx(0.4));  // four times the rows
  CHECK(first.optimizer.beta1 == 0.8);
  CHECK(first.optimizer.beta2 == 0.999);
  CHECK(first.optimizer.weight_decay == 0.01);
  CHECK(first.l2 == 0.5);
  CHECK(first.clip_norm == 3);
  CHECK(first.frozen == std::vector<std::string>{"layer0.*"});
  CHECK(first.schedule.kind == ScheduleKind::kCosine);
  CHECK(first.schedule.warmup_steps == 2);
  CHECK(first.schedule.warmup_from == 0.5);
  CHECK(first.schedule.total_steps == 20);
  CHECK(first.schedule_step == 0);
  CHECK(third.schedule_step == 8);
  CHECK(third.optimizer.learning_rate == doctest::Approx(0.8));
  CHECK(third.frozen.empty());
  CHECK(first.seed != third.seed);
  // A site with few rows: its job may be shorter than the warm-up, and is still a schedule.
  CHECK(CheckSchedule(TrainingOf(plan, 1, 0).schedule).ok());
}

TEST_CASE("Plan: a pretrained model is found by its digest, and what is not trained is its own") {
  std::string path = DOMICILE_BINARY_DIR "/pretrained_test.safetensors";
  EncoderSpec spec =
      std::get<EncoderSpec>(SpecOf(MustPlan(JobOf(kShortText, kTwoClasses, kEncoder, kSgd))));
  spec.num_outputs = 0;
  const std::vector<float> weights = InitialParameters(spec, 77);
  const Bytes file = PrintSafetensors(ToTensors(spec, weights));
  REQUIRE(WriteFileDurably(path, file).ok());
  const std::string digest = PrintHex(crypto::Sha256(file));
  const std::string named = "pretrained = \"" + digest + "\"\n";
  const contracts::Plan whole =
      MustPlan(JobOf(kShortText, kTwoClasses, std::string(kEncoder) + named, kSgd));
  const contracts::Plan head =
      MustPlan(JobOf(kShortText, kTwoClasses, std::string(kEncoder) + named,
                     std::string(kSgd) + "frozen = [\"e*\", \"pooler.*\"]\n"));

  CHECK(FirstParameters(head, {}).status().code() == StatusCode::kNotFound);
  const PretrainedModels models = PretrainedModels::Read({&path, 1}).value();
  const std::vector<float> first = FirstParameters(head, models).value();

  CHECK(std::equal(weights.begin(), weights.end(), first.begin()));
  CHECK(TravelsPretrained(whole));
  CHECK_FALSE(TravelsPretrained(head));
  CHECK(TravellingTensors(head, first).size() == 2);
  // Whoever makes the first model of such a job needs no file.
  contracts::Plan without = head;
  without.model.encoder.pretrained.reset();
  CHECK(TravellingTensors(without, FirstParameters(without, {}).value()) ==
        TravellingTensors(head, first));

  path += ".not";
  CHECK_FALSE(PretrainedModels::Read({&path, 1}).ok());
  REQUIRE(WriteFileDurably(path, ByteSpan(file).first(file.size() - 1)).ok());
  CHECK(Message(PretrainedModels::Read({&path, 1}).status()).find(path) != std::string_view::npos);
}

}  // namespace
}  // namespace domicile::models

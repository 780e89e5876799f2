// Models and inputs of every kind: what they are made of, and what is refused.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "contracts/plan.h"
#include "contracts/plan_facts.h"
#include "contracts/testing_jobs.h"

namespace domicile::contracts {
namespace {

std::string ConvJob() { return JobOf(kGreyPicture, kThreeClasses, kConvNet, kSgd); }
std::string EncoderJob() { return JobOf(kShortText, kTwoClasses, kEncoder, kSgd); }
std::string AdapterJob() {
  return JobOf(kShortText, kTwoClasses, std::string(kEncoder) + std::string(kAdapters), kSgd);
}

std::vector<std::string> NamesOf(const Plan& plan) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : plan.Tensors()) {
    names.push_back(tensor.name);
  }
  return names;
}

TEST_CASE("Plan: a model of pictures has the shapes that its blocks leave") {
  const Plan plan = MustPlan(ConvJob());

  // 12 x 10, pooled to 6 x 5, by a kernel of 3 in steps of 2 to 2 x 2.
  CHECK(plan.Tensors() == std::vector<TensorSpec>{{"conv0.weight", {4, 1, 3, 3}},
                                                  {"conv0.bias", {4}},
                                                  {"norm0.weight", {4}},
                                                  {"norm0.bias", {4}},
                                                  {"conv1.weight", {6, 4, 3, 3}},
                                                  {"conv1.bias", {6}},
                                                  {"norm1.weight", {6}},
                                                  {"norm1.bias", {6}},
                                                  {"dense0.weight", {7, 24}},
                                                  {"dense0.bias", {7}},
                                                  {"dense1.weight", {3, 7}},
                                                  {"dense1.bias", {3}}});
  CHECK(plan.NumInputs() == 120);
  CHECK(plan.schema.InputNames().empty());
  CHECK(plan.schema.image->mean == std::vector<double>{0});
  CHECK(plan.schema.image->deviation == std::vector<double>{1});
}

TEST_CASE("Plan: an encoder has BERT's names, and with adapters only they and the head travel") {
  const Plan whole = MustPlan(EncoderJob());
  const Plan adapted = MustPlan(AdapterJob());

  CHECK(whole.Tensors().size() == 5 + 2 * 16 + 2 + 2);
  CHECK(whole.Tensors()[0] == TensorSpec{"embeddings.word_embeddings.weight", {30, 12}});
  CHECK(whole.model.encoder.types == 2);
  CHECK(whole.NumOutputs() == 1);
  CHECK(whole.NumInputs() == 8);
  CHECK(NamesOf(adapted) ==
        std::vector<std::string>{"encoder.layer.0.attention.self.query.lora_B.weight",
                                 "encoder.layer.0.attention.self.value.lora_B.weight",
                                 "encoder.layer.1.attention.self.query.lora_B.weight",
                                 "encoder.layer.1.attention.self.value.lora_B.weight",
                                 "classifier.weight", "classifier.bias"});
  CHECK(adapted.NumParameters() == 4 * 12 * 2 + 12 + 1);
}

TEST_CASE("Plan: linear regression learns one number and asks for no classes") {
  const Plan plan =
      MustPlan(JobOf(kTwoNumbers, kNumberLabel, "kind = \"linear\"\n", kSgd) + "[evaluation]\n");

  CHECK(plan.schema.label.number == NumberLabel{20, 4});
  CHECK(plan.schema.label.NumClasses() == 0);
  CHECK(plan.NumOutputs() == 1);
  CHECK(plan.Tensors() == std::vector<TensorSpec>{{"weight", {2}}, {"bias", {1}}});
  CHECK(plan.evaluation == EvaluationPlan{true, 0});
  CHECK(FactsOf(plan).evaluation_numbers == 3);  // examples and loss alone
}

TEST_CASE("Plan: what is frozen in every stage does not travel, what is trained in one does") {
  const std::string frozen = std::string(kSgd) + "frozen = [\"conv*\", \"norm*\"]\n";
  const Plan always = MustPlan(JobOf(kGreyPicture, kThreeClasses, kConvNet, frozen));
  const Plan staged = MustPlan(JobOf(
      kGreyPicture, kThreeClasses, kConvNet,
      frozen + "[[training.stage]]\nfrom_round = 3\nfrozen = [\"*0.*\", \"norm1.*\"]\n"
               "learning_rate = 0.1\n[[training.stage]]\nfrom_round = 5\nfrozen = [\"norm*\"]\n"));

  CHECK(NamesOf(always) ==
        std::vector<std::string>{"dense0.weight", "dense0.bias", "dense1.weight", "dense1.bias"});
  CHECK(NamesOf(staged) == std::vector<std::string>{"conv0.weight", "conv0.bias", "conv1.weight",
                                                    "conv1.bias", "dense0.weight", "dense0.bias",
                                                    "dense1.weight", "dense1.bias"});
  CHECK(FactsOf(always).numbers_per_round == 7 * 24 + 7 + 3 * 7 + 3);
  CHECK(staged.StageOf(1) == StagePlan{1, {"conv*", "norm*"}, 0.3});
  CHECK(staged.StageOf(2).learning_rate == 0.3);
  CHECK(staged.StageOf(3) == StagePlan{3, {"*0.*", "norm1.*"}, 0.1});
  CHECK(staged.StageOf(4) == staged.StageOf(3));
  CHECK(staged.StageOf(5) == StagePlan{5, {"norm*"}, 0.3});
}

TEST_CASE("Plan: networks of dense layers read pictures too") {
  const Plan plan = MustPlan(JobOf(kGreyPicture, kThreeClasses, kMlp, kSgd));

  CHECK(plan.Tensors()[0] == TensorSpec{"layer0.weight", {120, 6}});
}

TEST_CASE("Job file: pictures that do not hold together are refused") {
  const Refusal cases[] = {
      {"no channels", "channels = 1\n", "", "`image.channels` is missing"},
      {"too many channels", "channels = 1\n", "channels = 17\n", "`image.channels` must be"},
      {"too large", "height = 12\nwidth = 10", "height = 4096\nwidth = 4097",
       "`image.width` must be"},
      {"too many values", "channels = 1\nheight = 12\nwidth = 10",
       "channels = 2\nheight = 4096\nwidth = 4096", "must be from 1 to 2^24"},
      {"means of other channels", "width = 10\n", "width = 10\nmean = [0, 1]\n",
       "`image.mean` must have one number for each channel"},
      {"deviations of other channels", "width = 10\n", "width = 10\ndeviation = []\n",
       "`image.deviation` must have one number for each channel"},
      {"deviation 0", "width = 10\n", "width = 10\ndeviation = [0]\n",
       "`image.deviation` must be above 0"},
      {"mean beyond", "width = 10\n", "width = 10\nmean = [1001]\n",
       "`image.mean` must be a list of numbers from -1000 to 1000"},
      {"a table too", "[image]", "[[feature]]\ncolumn = \"x\"\nkind = \"number\"\n[image]",
       "`feature` or `image` or `text` must be there, and only one of the three"},
      {"normalisation", "[label]", "[normalisation]\n[label]",
       "`normalisation` has no use without columns"},
      {"an encoder", "[image]\nchannels = 1\nheight = 12\nwidth = 10\n", kShortText.data(),
       "`image` is missing: a model of kind `conv_net`"},
      {"kernel", "kernel = 3", "kernel = 15", "`model.block[0].kernel` or `pool` is larger"},
      {"second kernel", "kernel = 3\nstride = 2", "kernel = 6\nstride = 2",
       "`model.block[1].kernel` or `pool` is larger than the image in front of it, 6 by 5"},
      {"pool", "pool = 2", "pool = 13", "`model.block[0].kernel` or `pool` is larger"},
      {"padding", "padding = 1", "padding = 3", "`model.block[0].padding` must be below"},
      {"groups", "groups = 2", "groups = 3", "`model.block[0].groups` must divide `filters`"},
      {"no groups", "groups = 2\n", "", "`model.block[0].groups` is missing"},
      {"groups of a batch norm", "norm = \"batch\"", "norm = \"batch\"\ngroups = 2",
       "`model.block[1].groups` belong to `group`"},
      {"norm", "norm = \"batch\"", "norm = \"batsh\"", "(did you mean `batch`?)"},
      {"filters", "filters = 4", "filters = 0", "`model.block[0].filters` must be"},
      {"dropout", "dropout = 0.25", "dropout = 1", "`model.dropout` must be below 1"},
      {"unknown key", "pool = 2", "pool = 2\npooling = 2", "unknown key `model.block.pooling`"},
      {"widths", "hidden = [7]", "hidden = [0]", "`model.hidden` must be a list"},
      {"no activation", "activation = \"relu\"\n", "", "`model.activation` is missing"},
  };
  CheckRefusals(ConvJob(), cases);
}

TEST_CASE("Job file: encoders that do not hold together are refused") {
  const Refusal cases[] = {
      {"vocabulary digest", "vocabulary = \"07", "vocabulary = \"7",
       "`text.vocabulary` must be a SHA-256: 64 hexadecimal digits"},
      {"length", "length = 8", "length = 17", "`text.length` must be at most `model.positions`"},
      {"length 1", "length = 8", "length = 1", "`text.length` must be"},
      {"heads", "heads = 3", "heads = 5", "`model.heads` must divide `width`"},
      {"layers", "layers = 2", "layers = 101", "`model.layers` must be"},
      {"pooling", "\"first\"", "\"last\"", "`model.pooling` must be one of `mean`, `first`"},
      {"alpha alone", "heads = 3", "heads = 3\nlora_alpha = 2",
       "`model.lora_alpha` has no use where `lora_rank` is 0"},
      {"no alpha", "heads = 3", "heads = 3\nlora_rank = 2", "`model.lora_alpha` is missing"},
      {"alpha 0", "heads = 3", "heads = 3\nlora_rank = 2\nlora_alpha = 0",
       "`model.lora_alpha` must be above 0"},
      {"rank", "heads = 3", "heads = 3\nlora_rank = 13\nlora_alpha = 2",
       "`model.lora_rank` must be at most `width`"},
      {"pretrained", "heads = 3", "heads = 3\npretrained = \"model.safetensors\"",
       "`model.pretrained` must be a SHA-256"},
      {"too many parameters", "vocabulary = 30\npositions = 16\nwidth = 12",
       "vocabulary = 16777216\npositions = 16\nwidth = 66", "more than 2^30 parameters"},
      {"logistic", "kind = \"encoder\"", "kind = \"logistic\"", "unknown key `model.vocabulary`"},
      {"no text", "[text]\nlength = 8\n", "[[feature]]\ncolumn = \"t\"\nkind = \"number\"\n",
       "unknown key `feature.vocabulary`"},
  };
  CheckRefusals(EncoderJob(), cases);
  const StatusOr<Plan> table =
      PlanFromJobFile(JobOf(kTwoNumbers, kTwoClasses, kEncoder, kSgd), "job.toml");
  CHECK(Message(table.status()).find("`text` is missing") != std::string_view::npos);
  const StatusOr<Plan> mlp =
      PlanFromJobFile(JobOf(kShortText, kTwoClasses, kMlp, kSgd), "job.toml");
  CHECK(Message(mlp.status()).find("`model.kind` must be `encoder`") != std::string_view::npos);
}

TEST_CASE("Job file: a label that is a number goes with models that learn numbers") {
  const Refusal cases[] = {
      {"scale 0", "scale = 4", "scale = 0", "`label.scale` must be above 0"},
      {"scale below", "scale = 4", "scale = -1", "`label.scale` must be"},
      {"kind", "[label]\ncolumn = \"label\"\nkind = \"number\"",
       "[label]\ncolumn = \"label\"\nkind = \"class\"", "`label.kind` must be `number`"},
      {"classes", "scale = 4", "scale = 4\nclasses = [\"a\", \"b\"]",
       "unknown key `label.classes`"},
      {"logistic", "kind = \"linear\"", "kind = \"logistic\"",
       "`label.kind` has no use with a model of kind `logistic`"},
      {"bins", "[rounds]", "[evaluation]\nbins = 10\n[rounds]",
       "`evaluation.bins` are of scores of classes"},
      {"no number", "kind = \"number\"\noffset = 20\nscale = 4", "positive_above = 2",
       "`label.kind` must be \"number\" with a model of kind `linear`"},
  };
  CheckRefusals(JobOf(kTwoNumbers, kNumberLabel, "kind = \"linear\"\n", kSgd), cases);
}

}  // namespace
}  // namespace domicile::contracts

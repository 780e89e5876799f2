// The canonical text of plans: golden, round trips, and what a peer could send instead.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/file.h"
#include "contracts/internal/plan_check.h"
#include "contracts/plan.h"
#include "contracts/testing_jobs.h"

namespace domicile::contracts {
namespace {

std::string ReadTree(const std::string& path) {
  return ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/" + path, 1U << 20U).value();
}

// Whole numbers, both ends included.
template <typename T>
T Pick(T low, T high) {
  return static_cast<T>(*rc::gen::inRange<std::int64_t>(static_cast<std::int64_t>(low),
                                                        static_cast<std::int64_t>(high) + 1));
}

double PickDecimal(double low, double high) {
  return low + (high - low) * (static_cast<double>(Pick(0, 1 << 30)) / (1 << 30));
}

std::string PickText(std::string_view alphabet, std::size_t longest) {
  std::string text;
  const std::size_t length = Pick<std::size_t>(1, longest);
  while (text.size() < length) {
    text += alphabet[Pick<std::size_t>(0, alphabet.size() - 1)];
  }
  return text;
}

Feature PickFeature(std::size_t index) {
  Feature feature;
  // The index keeps columns apart; the rest reaches bytes that JSON escapes, and UTF-8.
  feature.column =
      PickText("ab\"\\/(", 5) + (Pick(0, 1) == 1 ? "\xC3\xB6" : "") + std::to_string(index);
  if (Pick(0, 1) == 1) {
    feature.kind = FeatureKind::kNumber;
    feature.zero_is_missing = Pick(0, 1) == 1;
  } else {
    feature.kind = FeatureKind::kCategory;
    for (int code = 0; code <= Pick(0, 3); ++code) {
      feature.codes.push_back("c" + std::to_string(code));
    }
  }
  return feature;
}

Digest PickDigest() {
  Digest digest;
  for (std::uint8_t& byte : digest.bytes) {
    byte = Pick<std::uint8_t>(1, 255);
  }
  return digest;
}

void PickLabel(Plan& plan) {
  Label& label = plan.schema.label;
  label.column = "label";
  const bool learns_numbers = plan.model.kind != ModelKind::kLogistic;
  if (plan.model.kind == ModelKind::kLinear || (learns_numbers && Pick(0, 3) == 0)) {
    label.number = NumberLabel{PickDecimal(-10, 10), PickDecimal(0.1, 10)};
  } else if (Pick(0, 1) == 1) {
    label.positive_above = PickDecimal(-10, 10);
  } else {
    label.classes = {"no", "yes"};
    if (Pick(0, 1) == 1) {
      label.classes.emplace_back("unclear");
    }
  }
}

void PickTable(Plan& plan) {
  for (std::size_t i = 0; i <= Pick<std::size_t>(0, 5); ++i) {
    plan.schema.features.push_back(PickFeature(i));
  }
  if (Pick(0, 1) == 1) {
    plan.normalisation.enabled = true;
    plan.normalisation.deviation_floor = PickDecimal(1e-9, 1);
    plan.normalisation.scale_bits = Pick(0U, 20U);
    plan.normalisation.max_rows = Pick<std::uint64_t>(1, 10'000);
    for (const Feature& feature : plan.schema.features) {
      const bool number = feature.kind == FeatureKind::kNumber;
      for (std::size_t k = 0; k < (number ? 1 : feature.codes.size()); ++k) {
        plan.normalisation.offsets.push_back(number ? PickDecimal(-300, 300) : 0);
        plan.normalisation.ranges.push_back(number ? PickDecimal(1e-3, 500) : 1);
      }
    }
  }
}

void PickImage(Plan& plan) {
  ImageInput image = {Pick(1U, 3U), Pick(16U, 40U), Pick(16U, 40U), {}, {}};
  for (std::uint32_t channel = 0; channel < image.channels; ++channel) {
    image.mean.push_back(PickDecimal(-1, 1));
    image.deviation.push_back(PickDecimal(0.1, 2));
  }
  plan.schema.image = image;
}

void PickBlocks(ModelPlan& model) {
  for (int i = 0; i <= Pick(0, 1); ++i) {
    ConvBlockPlan block;
    block.norm = static_cast<NormKind>(Pick(1, 4));
    block.groups = block.norm == NormKind::kGroup ? Pick(1U, 3U) : 0;
    block.filters = Pick(1U, 4U) * std::max(block.groups, 1U);
    block.kernel = Pick(1U, 3U);
    block.stride = Pick(1U, 2U);
    block.padding = Pick(0U, block.kernel - 1);
    block.pool = Pick(0U, 2U);
    model.blocks.push_back(block);
  }
}

void PickEncoder(Plan& plan) {
  EncoderPlan& encoder = plan.model.encoder;
  encoder.vocabulary = Pick(1U, 50U);
  encoder.positions = Pick(2U, 20U);
  encoder.types = Pick(1U, 3U);
  encoder.heads = Pick(1U, 3U);
  encoder.width = encoder.heads * Pick(1U, 4U);
  encoder.layers = Pick(1U, 3U);
  encoder.intermediate = Pick(1U, 20U);
  encoder.pooling = static_cast<PoolingKind>(Pick(1, 2));
  encoder.lora_rank = Pick(0U, encoder.width);
  encoder.lora_alpha = encoder.lora_rank > 0 ? PickDecimal(0.1, 32) : 0;
  if (Pick(0, 1) == 1) {
    encoder.pretrained = PickDigest();
  }
  plan.schema.text = TextInput{Pick(2U, encoder.positions), PickDigest()};
}

void PickRaw(ModelPlan& model) {
  for (std::size_t i = 0; i <= Pick<std::size_t>(0, 3); ++i) {
    model.tensors.push_back({PickText("az09_.", 8) + std::to_string(i), {}});
    for (int k = 0; k < Pick(0, 4); ++k) {
      model.tensors.back().shape.push_back(Pick<std::uint64_t>(1, 9));
    }
  }
}

void PickModel(Plan& plan) {
  plan.model.kind = static_cast<ModelKind>(Pick(1, 6));
  const bool is_conv = plan.model.kind == ModelKind::kConvNet;
  if (plan.model.kind == ModelKind::kRaw) {
    PickRaw(plan.model);
    return;
  }
  if (plan.model.kind == ModelKind::kEncoder) {
    PickEncoder(plan);
  } else if (is_conv || Pick(0, 3) == 0) {
    PickImage(plan);
  } else {
    PickTable(plan);
  }
  if (is_conv) {
    PickBlocks(plan.model);
  }
  if (plan.model.kind == ModelKind::kMlp || is_conv) {
    for (int k = 0; k <= Pick(0, 3); ++k) {
      plan.model.hidden.push_back(Pick(1U, 64U));
    }
    plan.model.activation = static_cast<Activation>(Pick(1, 3));
  }
  if (plan.model.kind == ModelKind::kMlp || is_conv || plan.model.kind == ModelKind::kEncoder) {
    plan.model.seed = Pick<std::uint64_t>(0, kLargestJsonInteger);
  }
  if (is_conv || plan.model.kind == ModelKind::kEncoder) {
    plan.model.dropout = PickDecimal(0, 0.9);
  }
  PickLabel(plan);
  plan.evaluation.enabled = Pick(0, 1) == 1;
  plan.evaluation.bins =
      plan.evaluation.enabled && !plan.schema.label.number ? Pick(10U, 10'000U) : 0;
}

void PickOptimizer(TrainingPlan& training) {
  training.optimizer = static_cast<OptimizerKind>(Pick(1, 3));
  training.learning_rate = PickDecimal(1e-6, 10);
  if (training.optimizer == OptimizerKind::kSgd) {
    training.momentum = PickDecimal(0.001, 0.999);
    training.nesterov = Pick(0, 1) == 1;
  } else {
    training.beta1 = PickDecimal(0, 0.999);
    training.beta2 = PickDecimal(0, 0.999);
    training.epsilon = PickDecimal(1e-9, 1);
  }
  training.weight_decay = training.optimizer == OptimizerKind::kAdam ? 0 : PickDecimal(0, 1);
  training.l2 = PickDecimal(0, 1);
  training.clip_norm = PickDecimal(0, 5);
  training.schedule = static_cast<ScheduleKind>(Pick(1, 2));
  training.warmup_steps =
      training.local_steps == 0 || Pick(0, 1) == 1 ? 0 : training.local_steps - 1;
  training.warmup_from = training.warmup_steps > 0 ? PickDecimal(0, 1) : 0;
}

void PickTraining(Plan& plan) {
  TrainingPlan& training = plan.training;
  (Pick(0, 1) == 1 ? training.local_steps : training.local_epochs) = Pick(1U, 10'000U);
  training.batch = Pick(0, 1) == 1 ? Pick(1U, 4'096U) : 0;
  if (plan.model.kind == ModelKind::kRaw) {
    return;
  }
  PickOptimizer(training);
  if (training.batch != 0) {
    training.base_batch = Pick(0U, 64U);
    training.last_batch = static_cast<LastBatch>(Pick(1, 2));
    training.shuffle = Pick(0, 1) == 1;
    training.shuffle_seed = training.shuffle ? Pick<std::uint64_t>(0, kLargestJsonInteger) : 0;
  }
  if (training.local_epochs >= 2 && Pick(0, 1) == 1) {
    training.early_stopping = {true, Pick(1U, 10'000U), PickDecimal(0, 1), PickDecimal(0.01, 0.5)};
  }
  if (Pick(0, 1) == 1) {
    training.frozen = {"*weight"};
  }
  if (Pick(0, 1) == 1) {
    training.stages = {{1, {"*bias"}, PickDecimal(1e-6, 10)}};
  }
}

// Plans that are valid by construction, over every kind.
Plan PickPlan() {
  Plan plan;
  plan.name = PickText("ab \"\\~", 80);
  plan.purpose = PickText("az_", 64);
  plan.dataset = DatasetAlias::Parse("d" + PickText("a0", 10)).value();
  plan.recipients = {"sites", "operator"};
  PickModel(plan);
  PickTraining(plan);
  plan.update.view = static_cast<PlanView>(Pick(1, 3));
  plan.update.clip_l2 = PickDecimal(0.01, 8);
  plan.update.scale_bits = Pick(10U, 32U);
  plan.update.value_bits = plan.model.kind == ModelKind::kRaw ? Pick(2U, 32U) : 0;
  plan.update.weight = static_cast<WeightRule>(Pick(1, 2));
  plan.update.max_weight = plan.update.weight == WeightRule::kEqual ? 1 : Pick(1U, 100'000U);
  plan.update.max_sites = Pick(1U, 64U);
  plan.update.server_learning_rate = PickDecimal(0.1, 10);
  plan.rounds = {Pick(1U, 100'000U), Pick(1U, plan.update.max_sites),
                 std::chrono::seconds(Pick(1, 604'800)), Pick(1U, 100U),
                 std::chrono::seconds(Pick(0, 2'592'000))};
  return plan;
}

TEST_CASE("PlanText: the text that another program makes of the heart job") {
  const std::string golden = ReadTree("tests/golden/heart_plan.json");
  const StatusOr<Plan> plan =
      PlanFromJobFile(ReadTree("deploy/examples/heart/job.toml"), "job.toml");
  REQUIRE(plan.ok());

  CHECK(PlanText(*plan) == golden);
  CHECK(PrintHex(PlanDigest(*plan)) ==
        "3afa26fd108dbf0baf9a5876f1abf2716956ab2cd1530db6e8277e7f18b03c97");
  CHECK(PlanFromText(golden).value() == *plan);
}

TEST_CASE("PlanText: what PlanFromText reads is what was printed") {
  const bool holds = rc::check("round trip", [] {
    const Plan plan = PickPlan();
    const std::string text = PlanText(plan);

    const StatusOr<Plan> read = PlanFromText(text);

    RC_LOG() << text << " " << ToString(read.status());
    RC_ASSERT(read.ok());
    RC_ASSERT(*read == plan);
    RC_ASSERT(PlanText(*read) == text);
  });
  CHECK(holds);
}

TEST_CASE("Grid: a plan that is accepted cannot overflow, and one that could is refused") {
  int accepted = 0;
  int refused = 0;
  const bool holds = rc::check("overflow", [&accepted, &refused] {
    Plan plan = PickPlan();
    plan.update.weight = WeightRule::kExamples;
    // Magnitudes rather than values, so that both answers are common.
    plan.update.clip_l2 = std::ldexp(PickDecimal(1, 2), Pick(0, 18));
    plan.update.scale_bits = Pick(0U, 48U);
    plan.update.max_weight = (2U << Pick(0U, 30U)) - 1U;
    plan.update.max_sites = (2U << Pick(0U, 12U)) - 1U;
    plan.rounds.quorum = 1;
    plan.normalisation.enabled = false;

    const bool is_fine = !internal::FindPlanFault(plan).has_value();

    // long double holds 64 bits exactly; the bound itself is a power of two.
    const long double largest = static_cast<long double>(plan.DeltaMaxLevel()) *
                                plan.update.max_weight * plan.update.max_sites;
    const bool fits =
        largest < static_cast<long double>(kGridLimit) && plan.DeltaMaxLevel() <= kMaxDeltaLevel;
    RC_ASSERT(is_fine == fits);
    ++(is_fine ? accepted : refused);
  });
  CHECK(holds);
  CHECK(accepted > 0);  // the generator reaches both answers
  CHECK(refused > 0);
}

TEST_CASE("PlanFromText: only the one text of a plan") {
  const std::string golden = ReadTree("tests/golden/heart_plan.json");
  struct Case {
    std::string name;
    const char* from;
    const char* to;
    const char* want;
  };
  const Case cases[] = {
      {"a newline behind", "\"v\":1}", "\"v\":1}\n", "canonical"},
      {"a blank", "{\"dataset\"", "{ \"dataset\"", "canonical"},
      {"a default left out", "\"attempts\":3,", "", "every default must be written out"},
      {"momentum left out", ",\"momentum\":\"0\"", "", "every default must be written out"},
      {"stages left out", ",\"stages\":[]", "", "`plan.training.stages` is missing"},
      {"another spelling of a decimal", "\"0.01\"", "\"1e-2\"", "shortest form"},
      {"a trailing zero", "\"0.5\"", "\"0.50\"", "shortest form"},
      {"minus zero", "\"momentum\":\"0\"", "\"momentum\":\"-0\"", "shortest form"},
      {"a number for a decimal", "\"clip_l2\":\"4\"", "\"clip_l2\":4", "must be a string"},
      {"infinity", "\"clip_l2\":\"4\"", "\"clip_l2\":\"inf\"", "must be a decimal"},
      {"unknown key", "\"attempts\":3", "\"attempts\":3,\"bonus\":1", "unknown key `bonus`"},
      {"unknown key in a feature", "\"column\":\"age\"", "\"column\":\"age\",\"ignored\":1",
       "`ignored`"},
      {"another version", "\"v\":1", "\"v\":2", "`plan.v` must be"},
      {"a shorter list of offsets", "\"offsets\":[\"50\",", "\"offsets\":[",
       "`normalisation.offsets` and `ranges` must have one number for each of the 13 inputs"},
      {"a shorter list of ranges", "\"ranges\":[\"100\",", "\"ranges\":[", "each of the 13 inputs"},
      {"an offset of a category", "\"0\",\"0\"],\"ranges\"", "\"0\",\"0.5\"],\"ranges\"",
       "of a category are 0 and 1"},
      {"a grid that overflows", "\"max_weight\":10000", "\"max_weight\":2147483647", "below 2^62"},
      {"statistics that overflow", "\"max_rows\":10000", "\"max_rows\":10000000", "below 2^62"},
      {"a column twice", "\"column\":\"chol\"", "\"column\":\"age\"", "another feature"},
      {"a string where a list belongs", "\"recipients\":[\"sites\",\"operator\"]",
       "\"recipients\":\"sites\"", "must be a list"},
      {"no schema", "\"logistic\"", "\"raw\"", "plan"},
  };
  REQUIRE(PlanFromText(golden).ok());
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const StatusOr<Plan> plan = PlanFromText(Replaced(golden, c.from, c.to));
    CHECK(plan.status().code() == StatusCode::kInvalidArgument);
    const std::string message(Message(plan.status()));
    CAPTURE(message);
    CHECK(message.find(c.want) != std::string::npos);
  }
}

TEST_CASE("PlanFromText: texts that are no plan at all") {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string("null"),
        std::string("{\"v\":1}"), std::string(5U << 20U, ' ')}) {
    CHECK(PlanFromText(text).status().code() == StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace domicile::contracts

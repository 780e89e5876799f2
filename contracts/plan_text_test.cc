// The canonical text of plans: golden, round trips, and what a peer could send instead.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/file.h"
#include "contracts/internal/plan_check.h"
#include "contracts/plan.h"

namespace domicile::contracts {
namespace {

std::string ReadTree(const std::string& path) {
  return ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/" + path, 1U << 20U).value();
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
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

void PickTabular(Plan& plan) {
  for (std::size_t i = 0; i <= Pick<std::size_t>(0, 5); ++i) {
    plan.schema.features.push_back(PickFeature(i));
  }
  plan.schema.label.column = "label";
  if (Pick(0, 1) == 1) {
    plan.schema.label.positive_above = PickDecimal(-10, 10);
  } else {
    plan.schema.label.classes = {"no", "yes"};
    if (Pick(0, 1) == 1) {
      plan.schema.label.classes.emplace_back("unclear");
    }
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
  plan.evaluation.enabled = Pick(0, 1) == 1;
  plan.evaluation.bins = plan.evaluation.enabled ? Pick(10U, 10'000U) : 0;
}

void PickModel(Plan& plan) {
  plan.model.kind = static_cast<ModelKind>(Pick(1, 3));
  if (plan.model.kind == ModelKind::kRaw) {
    for (std::size_t i = 0; i <= Pick<std::size_t>(0, 3); ++i) {
      plan.model.tensors.push_back({PickText("az09_.", 8) + std::to_string(i), {}});
      for (int k = 0; k < Pick(0, 4); ++k) {
        plan.model.tensors.back().shape.push_back(Pick<std::uint64_t>(1, 9));
      }
    }
    return;
  }
  if (plan.model.kind == ModelKind::kMlp) {
    for (int k = 0; k <= Pick(0, 3); ++k) {
      plan.model.hidden.push_back(Pick(1U, 64U));
    }
    plan.model.activation = static_cast<Activation>(Pick(1, 3));
    plan.model.seed = Pick<std::uint64_t>(0, kLargestJsonInteger);
  }
  PickTabular(plan);
}

void PickTraining(Plan& plan) {
  TrainingPlan& training = plan.training;
  training.local_steps = Pick(1U, 1'000'000U);
  training.batch = Pick(0, 1) == 1 ? Pick(1U, 4'096U) : 0;
  if (plan.model.kind == ModelKind::kRaw) {
    return;
  }
  training.optimizer = static_cast<OptimizerKind>(Pick(1, 2));
  training.learning_rate = PickDecimal(1e-6, 10);
  training.momentum = training.optimizer == OptimizerKind::kSgd ? PickDecimal(0, 0.999) : 0;
  training.l2 = PickDecimal(0, 1);
  training.shuffle_seed = training.batch == 0 ? 0 : Pick<std::uint64_t>(0, kLargestJsonInteger);
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
        "e96913b64f219ab1b42ee65f0c8fe5340d51fa4c3fa275f79539a0e968acdcd0");
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

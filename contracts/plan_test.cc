// Job files to plans: the example jobs, defaults, and every refusal.
#include "contracts/plan.h"

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "contracts/testing_jobs.h"

namespace domicile::contracts {
namespace {

std::string ReadTree(const std::string& path) {
  return ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/" + path, 1U << 20U).value();
}

std::string HeartJob() { return ReadTree("deploy/examples/heart/job.toml"); }

constexpr std::string_view kSmall = R"(name = "small"
purpose = "testing"
dataset = "toy"
recipients = ["sites"]
[[feature]]
column = "f1"
kind = "number"
[[feature]]
column = "f2"
kind = "number"
[label]
column = "label"
classes = ["benign", "malignant", "unclear"]
[model]
kind = "logistic"
[training]
optimizer = "sgd"
learning_rate = 0.3
local_steps = 1
[rounds]
count = 5
quorum = 3
[update]
view = "plain"
clip_l2 = 1
weight = "examples"
)";

TEST_CASE("Heart job: the settings of the reference that made the golden numbers") {
  const auto golden = nlohmann::json::parse(ReadTree("tests/golden/heart_golden.json"));
  const auto& config = golden["config"];
  const Plan plan = MustPlan(HeartJob());

  CHECK(plan.training.l2 == config["l2"].get<double>());
  CHECK(plan.training.learning_rate == config["lr"].get<double>());
  CHECK(plan.rounds.count == config["rounds"].get<std::uint32_t>());
  CHECK(plan.training.local_steps == config["local_steps"].get<std::uint32_t>());
  CHECK(plan.NumInputs() == golden["features"].size());
  CHECK(plan.schema.InputNames() ==
        std::vector<std::string>{"age", "trestbps", "chol", "thalach", "oldpeak", "sex", "fbs",
                                 "exang", "cp=1", "cp=2", "cp=3", "restecg=1", "restecg=2"});
  CHECK(plan.model.kind == ModelKind::kLogistic);
  CHECK(plan.training.optimizer == OptimizerKind::kSgd);
  CHECK(plan.training.batch == 0);
  CHECK(plan.update.weight == WeightRule::kExamples);
  CHECK(plan.update.view == PlanView::kPlain);
  CHECK(plan.update.clip_l2 == 4.0);
  CHECK(plan.update.scale_bits == 32);
  CHECK(plan.rounds.quorum == 4);
  CHECK(plan.evaluation == EvaluationPlan{true, 1000});
  CHECK(plan.schema.label.positive_above == 0.0);
  // A site's weight and rows are not capped by the plan.
  for (const auto& [site, rows] : golden["train_rows"].items()) {
    CAPTURE(site);
    CHECK(rows.get<std::uint64_t>() <= plan.normalisation.max_rows);
    CHECK(rows.get<std::uint32_t>() <= plan.update.max_weight);
  }
}

TEST_CASE("Heart job: zero means missing in blood pressure and cholesterol alone") {
  for (const Feature& feature : MustPlan(HeartJob()).schema.features) {
    CAPTURE(feature.column);
    CHECK(feature.zero_is_missing == (feature.column == "trestbps" || feature.column == "chol"));
    CHECK((feature.kind == FeatureKind::kCategory) ==
          (feature.column == "cp" || feature.column == "restecg"));
  }
}

TEST_CASE("Heart job: offsets and ranges stand for every input, 0 and 1 for categories") {
  const NormalisationPlan normalisation = MustPlan(HeartJob()).normalisation;

  CHECK(normalisation.offsets == std::vector<double>{50, 130, 250, 140, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(normalisation.ranges ==
        std::vector<double>{100, 250, 750, 200, 20, 1, 1, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("Plan: tensors of a logistic model") {
  const Plan two = MustPlan(HeartJob());
  const Plan three = MustPlan(std::string(kSmall));

  CHECK(two.NumOutputs() == 1);
  CHECK(two.Tensors() == std::vector<TensorSpec>{{"weight", {13}}, {"bias", {1}}});
  CHECK(two.NumParameters() == 14);
  CHECK(three.NumOutputs() == 3);
  CHECK(three.Tensors() == std::vector<TensorSpec>{{"weight", {2, 3}}, {"bias", {3}}});
}

TEST_CASE("Plan: tensors of a multi-layer network") {
  const Plan plan = MustPlan(Replaced(HeartJob(), "kind = \"logistic\"",
                                      "kind = \"mlp\"\nhidden = [8, 5]\nactivation = \"tanh\""));

  CHECK(plan.Tensors() == std::vector<TensorSpec>{{"layer0.weight", {13, 8}},
                                                  {"layer0.bias", {8}},
                                                  {"layer1.weight", {8, 5}},
                                                  {"layer1.bias", {5}},
                                                  {"layer2.weight", {5, 1}},
                                                  {"layer2.bias", {1}}});
  CHECK(plan.NumParameters() == 13 * 8 + 8 + 8 * 5 + 5 + 5 + 1);
}

TEST_CASE("Plan: a raw job has the tensors it lists and no schema") {
  const Plan plan = MustPlan(ReadTree("deploy/examples/raw/job.toml"));

  CHECK(plan.model.kind == ModelKind::kRaw);
  CHECK(plan.Tensors() == plan.model.tensors);
  CHECK(plan.NumParameters() == 13 * 8 + 8 + 8 + 1);
  CHECK(plan.NumInputs() == 0);
  CHECK(plan.NumOutputs() == 0);
  CHECK(plan.Phases(1) == std::vector<PhaseKind>{PhaseKind::kTrain});
  CHECK(plan.update.max_weight == 1);
}

TEST_CASE("Plan: a value of a raw job carries 8 bits unless the job asks for others") {
  const std::string job = Replaced(ReadTree("deploy/examples/raw/job.toml"), "value_bits = 8", "");
  const auto with = [&](const std::string& keys) { return Replaced(job, "scale_bits = 7", keys); };
  const Plan eight = MustPlan(with("scale_bits = 20"));
  const Plan four = MustPlan(with("scale_bits = 20\nvalue_bits = 4"));
  const Plan coarse = MustPlan(with("scale_bits = 3"));

  CHECK(eight.update.value_bits == 8);
  CHECK(eight.DeltaMaxLevel() == 127);
  CHECK(four.DeltaMaxLevel() == 7);
  CHECK(coarse.DeltaMaxLevel() == 8);  // the clip norm allows fewer
  CHECK(MustPlan(HeartJob()).update.value_bits == 0);
  for (const char* keys :
       {"scale_bits = 7\nvalue_bits = 1", "scale_bits = 7\nvalue_bits = 33", "value_bits = 8"}) {
    CAPTURE(keys);
    CHECK_FALSE(PlanFromJobFile(with(keys), "job.toml").ok());
  }
  CHECK_FALSE(
      PlanFromJobFile(Replaced(HeartJob(), "[update]", "[update]\nvalue_bits = 8"), "j").ok());
}

TEST_CASE("Plan: a scalar has one element, and sizes saturate instead of wrapping") {
  CHECK(TensorSpec{"x", {}}.Size() == 1);
  CHECK(TensorSpec{"x", {3, 4}}.Size() == 12);
  CHECK(TensorSpec{"x", {1ULL << 40U, 1ULL << 40U, 1ULL << 40U}}.Size() == UINT64_MAX);
}

TEST_CASE("Plan: statistics come first, evaluation last, and no phase outside the rounds") {
  Plan plan = MustPlan(HeartJob());
  using enum PhaseKind;

  CHECK(plan.Phases(0).empty());
  CHECK(plan.Phases(1) == std::vector<PhaseKind>{kStatistics, kTrain});
  CHECK(plan.Phases(2) == std::vector<PhaseKind>{kTrain});
  CHECK(plan.Phases(40) == std::vector<PhaseKind>{kTrain, kEvaluate});
  CHECK(plan.Phases(41).empty());
  plan.rounds.count = 1;
  CHECK(plan.Phases(1) == std::vector<PhaseKind>{kStatistics, kTrain, kEvaluate});
  plan.normalisation.enabled = false;
  plan.evaluation.enabled = false;
  CHECK(plan.Phases(1) == std::vector<PhaseKind>{kTrain});
}

TEST_CASE("Job file: defaults are those of the format page") {
  const Plan plan = MustPlan(std::string(kSmall));

  CHECK(plan.training.momentum == 0);
  CHECK(plan.training.l2 == 0);
  CHECK(plan.training.batch == 0);
  CHECK_FALSE(plan.training.nesterov);
  CHECK(plan.training.weight_decay == 0);
  CHECK(plan.training.clip_norm == 0);
  CHECK(plan.training.schedule == ScheduleKind::kConstant);
  CHECK(plan.training.warmup_steps == 0);
  CHECK(plan.training.local_epochs == 0);
  CHECK_FALSE(plan.training.shuffle);
  CHECK(plan.training.frozen.empty());
  CHECK_FALSE(plan.normalisation.enabled);
  CHECK_FALSE(plan.evaluation.enabled);
  CHECK(plan.rounds.deadline == std::chrono::seconds(3600));
  CHECK(plan.rounds.attempts == 3);
  CHECK(plan.rounds.start_after == std::chrono::seconds(600));
  CHECK(plan.update.scale_bits == 32);
  CHECK(plan.update.max_weight == 100'000);
  CHECK(plan.update.max_sites == 64);
  CHECK(plan.update.server_learning_rate == 1);
}

TEST_CASE("Grid: bounds of levels follow from the plan") {
  const Plan plan = MustPlan(HeartJob());

  CHECK(plan.DeltaMaxLevel() == std::int64_t{4} << 32U);
  CHECK(plan.StatisticsSumMaxLevel(0) == std::int64_t{10'000} * 100 << 24U);
  CHECK(plan.StatisticsSquaresMaxLevel(2) == std::int64_t{10'000} * 750 * 750 << 24U);
  CHECK(plan.StatisticsSquaresMaxLevel(12) == std::int64_t{10'000} << 24U);
}

TEST_CASE("Grid: the largest plan that cannot overflow is taken, the next one is not") {
  // 64 sites * 2^22 weight * 2^34 levels is 2^62 exactly: one too much.
  const std::string job = Replaced(std::string(kSmall), "clip_l2 = 1\n",
                                   "clip_l2 = 4\nmax_sites = 64\nmax_weight = 4194303\n");

  CHECK(PlanFromJobFile(job, "job.toml").ok());
  const StatusOr<Plan> over = PlanFromJobFile(Replaced(job, "4194303", "4194304"), "job.toml");
  CHECK(over.status().code() == StatusCode::kInvalidArgument);
  CHECK(Message(over.status()).find("must stay below 2^62") != std::string_view::npos);
}

TEST_CASE("Grid: the row limit that a refusal names is one that is accepted") {
  const std::string job = Replaced(HeartJob(), "max_rows = 10000", "max_rows = 1000000");

  const StatusOr<Plan> over = PlanFromJobFile(job, "job.toml");

  REQUIRE_FALSE(over.ok());
  const std::string message(Message(over.status()));
  CHECK(message.find("`feature[2].range` does not fit the statistics grid") != std::string::npos);
  constexpr std::string_view kBefore = "with this range at most ";
  const std::size_t at = message.find(kBefore);
  REQUIRE(at != std::string::npos);
  const std::string limit =
      message.substr(at + kBefore.size(), message.find(')', at) - at - kBefore.size());
  CHECK(PlanFromJobFile(Replaced(HeartJob(), "max_rows = 10000", "max_rows = " + limit), "job.toml")
            .ok());
}

TEST_CASE("Job file: unknown, misplaced and missing keys are refused at their place") {
  const Refusal cases[] = {
      {"unknown key", "local_steps = 10", "local_steps = 10\nmomentom = 0.9",
       ":83:1: unknown key `training.momentom` (did you mean `training.momentum`?)"},
      {"misspelt key that is needed", "quorum = 4", "quroum = 4",
       "`rounds.quorum` is missing (is `quroum` meant?)"},
      {"unknown table", "[evaluation]", "[evaluations]", "unknown key `evaluations`"},
      {"no model", "[model]\nkind = \"logistic\"", "", "`model` is missing"},
      {"offset of a category", "codes = [\"1\", \"2\", \"3\"]", "codes = [\"1\"]\noffset = 1",
       "`feature[8].offset` of a category is fixed"},
      {"number without a range", "offset = 50\nrange = 100", "offset = 50",
       "`feature[0].range` is missing"},
      {"codes of a number", "offset = 50", "offset = 50\ncodes = [\"1\"]",
       "unknown key `feature.codes`"},
      {"zero is missing in a category", "codes = [\"1\", \"2\", \"3\"]",
       "codes = [\"1\"]\nzero_is_missing = true", "unknown key `feature.zero_is_missing`"},
      {"momentum of adam", "optimizer = \"sgd\"", "optimizer = \"adam\"\nmomentum = 0.9",
       "`training.momentum` has no use with `adam`"},
      {"shuffle seed of full batches", "local_steps = 10", "local_steps = 10\nshuffle_seed = 1",
       "`training.shuffle_seed` has no use where `batch` is 0"},
      {"hidden layers of a logistic model", "kind = \"logistic\"",
       "kind = \"logistic\"\nhidden = [8]", "unknown key `model.hidden`"},
      {"tensors of a logistic model", "kind = \"logistic\"", "kind = \"logistic\"\ntensor = []",
       "unknown key `model.tensor`"},
      {"not TOML", "name = ", "name ", "job.toml:4:"},
  };
  CheckRefusals(HeartJob(), cases);
}

TEST_CASE("Job file: every range is checked") {
  const Refusal cases[] = {
      {"empty name", "\"Heart disease at four hospitals\"", "\"\"", "`name` must be 1 to 80"},
      {"name with a line break", "\"Heart disease at", "\"Heart\\ndisease at",
       "`name` must be 1 to 80"},
      {"purpose in capitals", "\"scientific_research\"", "\"Research\"",
       "`purpose` must be a code"},
      {"alias", "dataset = \"heart\"", "dataset = \"Heart\"",
       "`dataset` is wrong: `Heart` is not a"},
      {"no recipients", "[\"sites\", \"operator\"]", "[]", "`recipients` must be 1 to 32"},
      {"recipient twice", "[\"sites\", \"operator\"]", "[\"sites\", \"sites\"]",
       "`recipients` names `sites` twice"},
      {"recipient with a blank", "[\"sites\", \"operator\"]", "[\"all sites\"]",
       "`recipients` must be"},
      {"model kind", "kind = \"logistic\"", "kind = \"logistics\"",
       "`model.kind` must be one of `logistic`, `mlp`, `raw`, `conv_net`, `encoder`, `linear` (did "
       "you mean `logistic`?)"},
      {"optimizer", "\"sgd\"", "\"sdg\"",
       "`training.optimizer` must be one of `sgd`, `adam`, `adamw`"},
      {"learning rate 0", "learning_rate = 0.5", "learning_rate = 0",
       "`training.learning_rate` must be above 0"},
      {"learning rate", "learning_rate = 0.5", "learning_rate = 1e31",
       "`training.learning_rate` must be a number from 0 to 1e+30"},
      {"learning rate NaN", "learning_rate = 0.5", "learning_rate = nan",
       "`training.learning_rate` must be"},
      {"momentum 1", "learning_rate = 0.5", "learning_rate = 0.5\nmomentum = 1",
       "`training.momentum` must be below 1"},
      {"l2", "l2 = 0.01", "l2 = -0.01", "`training.l2` must be a number from 0"},
      {"local steps", "local_steps = 10", "local_steps = 0", "`training.local_steps` must be"},
      {"batch", "batch = 0", "batch = -1", "`training.batch` must be"},
      {"deviation floor", "deviation_floor = 1e-3", "deviation_floor = 0",
       "`normalisation.deviation_floor` must be above 0"},
      {"statistics bits", "scale_bits = 24", "scale_bits = 49",
       "`normalisation.scale_bits` must be"},
      {"rows", "max_rows = 10000", "max_rows = 0", "`normalisation.max_rows` must be"},
      {"range 0", "range = 100", "range = 0", "`feature[0].range` must be above 0"},
      {"rounds", "count = 40", "count = 0", "`rounds.count` must be"},
      {"rounds above", "count = 40", "count = 100001", "`rounds.count` must be"},
      {"quorum 0", "quorum = 4", "quorum = 0", "`rounds.quorum` must be"},
      {"quorum above the sites", "quorum = 4", "quorum = 17", "`rounds.quorum` is above"},
      {"deadline", "deadline_seconds = 600", "deadline_seconds = 0",
       "`rounds.deadline_seconds` must"},
      {"attempts", "count = 40", "count = 40\nattempts = 0", "`rounds.attempts` must be"},
      {"start", "count = 40", "count = 40\nstart_after_seconds = -1",
       "`rounds.start_after_seconds` must be"},
      {"view", "view = \"plain\"", "view = \"everything\"",
       "`update.view` must be one of `sum_only`"},
      {"clip 0", "clip_l2 = 4.0", "clip_l2 = 0", "`update.clip_l2` must be above 0"},
      {"clip below the grid", "clip_l2 = 4.0", "clip_l2 = 1e-12",
       "`update.clip_l2` is below one unit"},
      {"delta bits", "scale_bits = 32", "scale_bits = 49", "`update.scale_bits` must be"},
      {"more levels than float32",
       "clip_l2 = 4.0\nscale_bits = 32\nweight = \"examples\"\nmax_weight = 10000",
       "clip_l2 = 8\nscale_bits = 48\nweight = \"examples\"\nmax_weight = 100",
       "`update.scale_bits` gives more levels"},
      {"weight", "weight = \"examples\"", "weight = \"example\"",
       "`update.weight` must be one of `examples`, `equal` (did you mean `examples`?)"},
      {"equal weights above 1", "weight = \"examples\"", "weight = \"equal\"",
       "`update.max_weight` must be 1"},
      {"sites", "max_sites = 16", "max_sites = 0", "`update.max_sites` must be"},
      {"server rate", "max_sites = 16", "max_sites = 16\nserver_learning_rate = 0",
       "`update.server_learning_rate` must be above 0"},
      {"bins below", "bins = 1000", "bins = 9", "`evaluation.bins` must be"},
      {"bins above", "bins = 1000", "bins = 10001", "`evaluation.bins` must be"},
  };
  CheckRefusals(HeartJob(), cases);
}

TEST_CASE("Job file: schemas that do not hold together are refused") {
  const Refusal cases[] = {
      {"column twice", "column = \"f2\"", "column = \"f1\"",
       "`feature[1].column` names a column that"},
      {"label among the features", "column = \"label\"", "column = \"f1\"",
       "`label.column` is also a feature"},
      {"invisible column", "column = \"f1\"", "column = \"f\\u200b1\"",
       "`feature[0].column` must be 1"},
      {"right-to-left column", "column = \"f1\"", "column = \"f\\u202e1\"",
       "`feature[0].column` must"},
      {"column with a tab", "column = \"f1\"", "column = \"f\\t1\"",
       "`feature[0].column` must be 1"},
      {"column with =", "column = \"f1\"", "column = \"f=1\"", "`feature[0].column` must be 1"},
      {"one class", "[\"benign\", \"malignant\", \"unclear\"]", "[\"benign\"]",
       "`label.classes` must be 2 to 1000"},
      {"class twice", "[\"benign\", \"malignant\", \"unclear\"]", "[\"benign\", \"benign\"]",
       "`label.classes` has the class `benign` twice"},
      {"classes and threshold", "column = \"label\"", "column = \"label\"\npositive_above = 0",
       "`label.classes` cannot stand beside"},
      {"kind", "kind = \"number\"", "kind = \"numbers\"",
       "`feature[0].kind` must be one of `number`, `category` (did you mean `number`?)"},
      {"category without codes", "kind = \"number\"", "kind = \"category\"\ncodes = []",
       "`feature[0].codes` must be a list of 1 to 1000"},
      {"code twice", "kind = \"number\"", "kind = \"category\"\ncodes = [\"a\", \"a\"]",
       "`feature[0].codes` has the code `a` twice"},
      {"range without normalisation", "kind = \"number\"", "kind = \"number\"\nrange = 1",
       "`feature[0].range` has no use without"},
      {"hidden widths", "kind = \"logistic\"",
       "kind = \"mlp\"\nhidden = [0]\nactivation = \"relu\"",
       "`model.hidden` must be a list of whole numbers from 1"},
      {"no hidden layer", "kind = \"logistic\"",
       "kind = \"mlp\"\nhidden = []\nactivation = \"relu\"", "`model.hidden` must be 1 to 16"},
      {"no activation", "kind = \"logistic\"", "kind = \"mlp\"\nhidden = [2]",
       "`model.activation` is missing"},
      {"too many parameters", "kind = \"logistic\"",
       "kind = \"mlp\"\nhidden = [65536, 65536]\nactivation = \"relu\"",
       "more than 2^30 parameters"},
  };
  CheckRefusals(std::string(kSmall), cases);
}

TEST_CASE("Job file: a raw job refuses what belongs to other models, and odd tensors") {
  const Refusal cases[] = {
      {"schema", "[rounds]", "[label]\ncolumn = \"x\"\n[rounds]",
       "`label` has no use with a raw model"},
      {"normalisation", "[rounds]", "[normalisation]\n[rounds]",
       "`normalisation` has no use with a raw"},
      {"evaluation", "[rounds]", "[evaluation]\n[rounds]",
       "`evaluation` has no use with a raw model"},
      {"optimizer", "local_steps = 10", "local_steps = 10\noptimizer = \"sgd\"",
       "`training.optimizer` has no use with a raw model"},
      {"early stopping", "[rounds]", "[training.early_stopping]\npatience = 1\n[rounds]",
       "`training.early_stopping` has no use with a raw model"},
      {"name in capitals", "\"hidden.bias\"", "\"Hidden.bias\"",
       "`model.tensor[1].name` must be 1 to"},
      {"path", "\"hidden.bias\"", "\"../bias\"", "`model.tensor[1].name` must be 1 to 120"},
      {"name twice", "\"hidden.bias\"", "\"hidden.weight\"",
       "`model.tensor[1].name` is the name of"},
      {"normalisation's name", "\"hidden.bias\"", "\"normalisation.mean\"",
       "`model.tensor[1].name` is a name that model files use"},
      {"header's name", "\"hidden.bias\"", "\"__metadata__\"",
       "`model.tensor[1].name` is a name that"},
      {"empty side", "shape = [8]", "shape = [0]", "`model.tensor[1].shape` must be"},
      {"nine sides", "shape = [8]", "shape = [1, 1, 1, 1, 1, 1, 1, 1, 1]",
       "`model.tensor[1].shape`"},
      {"wrapping size", "shape = [8]", "shape = [1073741824, 1073741824, 1073741824]",
       "more than 2^30 parameters"},
  };
  CheckRefusals(ReadTree("deploy/examples/raw/job.toml"), cases);
}

TEST_CASE("Names of codes: every enumerator but none has one") {
  CHECK(PhaseName(PhaseKind::kStatistics) == "statistics");
  CHECK(PhaseName(PhaseKind::kEvaluate) == "evaluate");
  CHECK(PhaseName(PhaseKind::kNone).empty());
  CHECK(ViewName(PlanView::kSumOnly) == "sum_only");
  CHECK(ViewName(PlanView::kPlain) == "plain");
  CHECK(WeightRuleName(WeightRule::kEqual) == "equal");
  CHECK(ModelKindName(ModelKind::kRaw) == "raw");
  CHECK(ActivationName(Activation::kSigmoid) == "sigmoid");
  CHECK(OptimizerName(OptimizerKind::kAdam) == "adam");
}

}  // namespace
}  // namespace domicile::contracts

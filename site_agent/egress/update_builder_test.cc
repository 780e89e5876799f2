#include "site_agent/egress/update_builder.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>

#include <doctest/doctest.h>

#include "site_agent/egress/testing.h"
#include "updates/metrics.h"
#include "updates/update.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;
using policy::Reason;

UpdateContext Context(PhaseKind phase) {
  return {.job = kJob,
          .plan = ExampleDigest(4),
          .round = 1,
          .phase = phase,
          .base_model = ExampleDigest(5),
          .policy = ExampleDigest(6)};
}

TrainNumbers Trained(const contracts::Plan& plan, float value = 0.125F) {
  TrainNumbers numbers;
  for (const contracts::TensorSpec& spec : plan.Tensors()) {
    numbers.delta.push_back({.name = spec.name, .shape = spec.shape});
    numbers.delta.back().values.assign(spec.Size(), value);
  }
  numbers.examples = 196;
  numbers.loss_sum_micro = 130'000'000;
  return numbers;
}

EvaluationNumbers Evaluated(const contracts::Plan& plan) {
  EvaluationNumbers numbers;
  numbers.correct = 80;
  numbers.class_counts = {60, 38};
  numbers.loss_sum_micro = 50'000'000;
  numbers.histogram.assign(std::size_t{2} * plan.evaluation.bins, 0);
  numbers.histogram[3] = 60;
  numbers.histogram[1500] = 38;
  return numbers;
}

StatisticsNumbers Counted(const contracts::Plan& plan) {
  StatisticsNumbers numbers;
  numbers.count.assign(plan.NumInputs(), 196);
  numbers.sum.assign(plan.NumInputs(), 0);
  numbers.sum_squares.assign(plan.NumInputs(), 0);
  return numbers;
}

std::variant<BuiltUpdate, Reason> Build(const contracts::Plan& plan, PhaseKind phase,
                                        TaskResult result,
                                        const policy::Obligations& obligations = {}) {
  return BuildUpdate(plan, Context(phase), result, obligations);
}

Reason WhyNot(const std::variant<BuiltUpdate, Reason>& built) {
  return std::holds_alternative<Reason>(built) ? std::get<Reason>(built) : Reason::kNone;
}

// The delta that a receiver reads.
std::vector<float> DeltaOf(const BuiltUpdate& update) {
  const auto view = Must(updates::ParseUpdate(update.bytes));
  const updates::SectionView* delta = view.Find(updates::Section::kDelta);
  REQUIRE(delta != nullptr);
  std::vector<float> values(delta->info.count);
  std::memcpy(values.data(), delta->bytes.data(), delta->bytes.size());
  return values;
}

double Norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(sum);
}

TEST_CASE("BuildUpdate: clipped first, then on the grid") {
  const contracts::Plan plan = HeartPlan();

  const auto built =
      Build(plan, PhaseKind::kTrain, {.rows = 196, .numbers = Trained(plan, 1000.0F / 3)});

  REQUIRE(std::holds_alternative<BuiltUpdate>(built));
  const std::vector<float> values = DeltaOf(std::get<BuiltUpdate>(built));
  CHECK(Norm(values) == doctest::Approx(plan.update.clip_l2).epsilon(1e-6));
  for (const float value : values) {
    const double level = std::ldexp(static_cast<double>(value), 32);
    CHECK(level == std::floor(level));
  }
}

TEST_CASE("BuildUpdate: low bits of a trainer's numbers do not leave") {
  contracts::Plan plan = HeartPlan();
  plan.update.scale_bits = 8;
  TrainNumbers plain = Trained(plan);
  TrainNumbers marked = Trained(plan);
  for (float& value : marked.delta[0].values) {
    value += 0.001F;  // less than half a unit of the grid
  }

  const auto a = Build(plan, PhaseKind::kTrain, {.rows = 196, .numbers = plain});
  const auto b = Build(plan, PhaseKind::kTrain, {.rows = 196, .numbers = marked});

  CHECK(std::get<BuiltUpdate>(a).bytes == std::get<BuiltUpdate>(b).bytes);
}

TEST_CASE("BuildUpdate: a foreign trainer's values carry the plan's bits and no more") {
  const contracts::Plan plan = Must(contracts::PlanFromJobFile(
      Must(ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/raw/job.toml", 1 << 16)),
      "job.toml"));
  TrainNumbers odd = Trained(plan, 0.0F);
  odd.delta[0].values[0] = 0.30001F;  // low bits that could tell something
  odd.delta[0].values[1] = 0.95F;
  odd.delta[0].values[2] = -0.002F;
  contracts::Plan narrow = plan;
  narrow.update.value_bits = 4;

  const auto built =
      std::get<BuiltUpdate>(Build(plan, PhaseKind::kTrain, {.rows = 50, .numbers = odd}));
  const auto four =
      std::get<BuiltUpdate>(Build(narrow, PhaseKind::kTrain, {.rows = 50, .numbers = odd}));

  const std::vector<float> values = DeltaOf(built);
  CHECK(values[0] == 38.0F / 128);
  CHECK(values[1] == 122.0F / 128);
  CHECK(values[2] == 0.0F);
  CHECK(DeltaOf(four)[0] == 7.0F / 128);  // saturates
  const std::uint64_t parameters = plan.NumParameters();
  CHECK(built.capacity_bits - four.capacity_bits == 4 * parameters);
  // Beside the delta only the three metrics, of 63 bits at most.
  CHECK(built.capacity_bits > 8 * parameters);
  CHECK(built.capacity_bits <= 8 * parameters + std::uint64_t{3} * 63);
}

TEST_CASE("BuildUpdate: the smaller clip of plan and policy holds") {
  const contracts::Plan plan = HeartPlan();
  policy::Obligations obligations;
  const auto norm_with = [&](double clip) {
    obligations.clip_l2 = clip;
    return Norm(DeltaOf(std::get<BuiltUpdate>(Build(
        plan, PhaseKind::kTrain, {.rows = 196, .numbers = Trained(plan, 100)}, obligations))));
  };

  CHECK(norm_with(1.5) == doctest::Approx(1.5).epsilon(1e-6));
  CHECK(norm_with(9) == doctest::Approx(4).epsilon(1e-6));
  CHECK(norm_with(0) == doctest::Approx(4).epsilon(1e-6));
}

TEST_CASE("BuildUpdate: what is not a number is refused, never clipped away") {
  const contracts::Plan plan = HeartPlan();
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const float others : {0.0F, 1e30F}) {
      TrainNumbers numbers = Trained(plan, others);
      numbers.delta[1].values[0] = bad;
      CHECK(WhyNot(Build(plan, PhaseKind::kTrain, {.rows = 196, .numbers = numbers})) ==
            Reason::kNotFinite);
    }
  }
}

TEST_CASE("BuildUpdate: weights exact, rounded, equal") {
  struct Case {
    const char* name;
    std::uint64_t rows;
    contracts::WeightRule plan;
    policy::WeightRule policy;
    std::uint64_t round_to;
    std::int64_t want;
  };
  using contracts::WeightRule;
  const Case cases[] = {
      {"exact", 196, WeightRule::kExamples, policy::WeightRule::kExact, 1, 196},
      {"rounded down", 196, WeightRule::kExamples, policy::WeightRule::kRounded, 5, 195},
      {"rounded up", 198, WeightRule::kExamples, policy::WeightRule::kRounded, 5, 200},
      {"never to nothing", 2, WeightRule::kExamples, policy::WeightRule::kRounded, 5, 1},
      {"capped", 20'000, WeightRule::kExamples, policy::WeightRule::kExact, 1, 10'000},
      {"capped, rounded", 20'003, WeightRule::kExamples, policy::WeightRule::kRounded, 5, 10'000},
      {"beyond int64", ~std::uint64_t{0} >> 1U, WeightRule::kEqual, policy::WeightRule::kExact, 1,
       -1},
      {"equal by policy", 196, WeightRule::kExamples, policy::WeightRule::kEqual, 5, 1},
      {"equal by plan", 196, WeightRule::kEqual, policy::WeightRule::kExact, 1, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    contracts::Plan plan = HeartPlan();
    plan.update.weight = c.plan;
    policy::Obligations obligations;
    obligations.weights = c.policy;
    obligations.round_to = c.round_to;

    const auto built =
        Build(plan, PhaseKind::kTrain, {.rows = c.rows, .numbers = Trained(plan)}, obligations);

    if (std::holds_alternative<Reason>(built)) {
      CHECK(std::get<Reason>(built) == Reason::kOutOfRange);
      CHECK(c.want == -1);
    } else {
      CHECK(Must(updates::ParseUpdate(std::get<BuiltUpdate>(built).bytes)).manifest.weight ==
            c.want);
      CHECK(std::get<BuiltUpdate>(built).records == c.rows);
    }
  }
}

// A result made from a plan, and why it is refused.
struct Refused {
  const char* name;
  PhaseKind phase;
  std::function<TaskResult(const contracts::Plan&)> result;
  Reason want;
};

void CheckRefused(std::span<const Refused> cases) {
  const contracts::Plan plan = HeartPlan();
  for (const Refused& c : cases) {
    CAPTURE(c.name);
    CHECK(WhyNot(Build(plan, c.phase, c.result(plan))) == c.want);
  }
}

TEST_CASE("BuildUpdate: what is refused after training, and why") {
  const auto trained = [](const std::function<void(TrainNumbers&)>& change) {
    return [change](const contracts::Plan& plan) {
      TrainNumbers numbers = Trained(plan);
      change(numbers);
      return TaskResult{.rows = 196, .numbers = numbers};
    };
  };
  const Refused cases[] = {
      {"trained", PhaseKind::kTrain, trained([](auto&) {}), Reason::kNone},
      {"no rows", PhaseKind::kTrain,
       [](const contracts::Plan& plan) { return TaskResult{.rows = 0, .numbers = Trained(plan)}; },
       Reason::kNoExamples},
      {"of another phase", PhaseKind::kEvaluate, trained([](auto&) {}), Reason::kTrainerFailed},
      {"of no phase", PhaseKind::kNone, trained([](auto&) {}), Reason::kTrainerFailed},
      {"a tensor less", PhaseKind::kTrain, trained([](auto& n) { n.delta.pop_back(); }),
       Reason::kShape},
      {"a tensor more", PhaseKind::kTrain,
       trained([](auto& n) { n.delta.push_back(n.delta.back()); }), Reason::kShape},
      {"another name", PhaseKind::kTrain, trained([](auto& n) { n.delta[0].name = "mueller"; }),
       Reason::kShape},
      {"another shape", PhaseKind::kTrain, trained([](auto& n) {
         n.delta[0].shape = {13, 1};
       }),
       Reason::kShape},
      {"a value less", PhaseKind::kTrain, trained([](auto& n) { n.delta[0].values.pop_back(); }),
       Reason::kShape},
      {"integers", PhaseKind::kTrain, trained([](auto& n) {
         n.delta[0].integers.assign(n.delta[0].values.begin(), n.delta[0].values.end());
         n.delta[0].values.clear();
       }),
       Reason::kShape},
  };
  CheckRefused(cases);
}

TEST_CASE("BuildUpdate: what is refused of statistics, and why") {
  const auto counted = [](const std::function<void(StatisticsNumbers&)>& change) {
    return [change](const contracts::Plan& plan) {
      StatisticsNumbers numbers = Counted(plan);
      change(numbers);
      return TaskResult{.rows = 196, .numbers = numbers};
    };
  };
  const Refused cases[] = {
      {"counted", PhaseKind::kStatistics, counted([](auto&) {}), Reason::kNone},
      {"more records than rows may be", PhaseKind::kStatistics,
       counted([](auto& n) { n.count[0] = 10'001; }), Reason::kOutOfRange},
      {"a negative count", PhaseKind::kStatistics, counted([](auto& n) { n.count[0] = -1; }),
       Reason::kOutOfRange},
      {"a sum that no rows have", PhaseKind::kStatistics,
       counted([](auto& n) { n.sum[0] = std::int64_t{1} << 60U; }), Reason::kOutOfRange},
      {"squares below zero", PhaseKind::kStatistics,
       counted([](auto& n) { n.sum_squares[0] = -1; }), Reason::kOutOfRange},
      {"a list too short", PhaseKind::kStatistics, counted([](auto& n) { n.sum.pop_back(); }),
       Reason::kOutOfRange},
  };
  CheckRefused(cases);
}

TEST_CASE("BuildUpdate: what is refused after an evaluation, and why") {
  const auto evaluated = [](const std::function<void(EvaluationNumbers&)>& change) {
    return [change](const contracts::Plan& plan) {
      EvaluationNumbers numbers = Evaluated(plan);
      change(numbers);
      return TaskResult{.rows = 98, .numbers = numbers};
    };
  };
  const Refused cases[] = {
      {"evaluated", PhaseKind::kEvaluate, evaluated([](auto&) {}), Reason::kNone},
      {"more right than rows", PhaseKind::kEvaluate, evaluated([](auto& n) { n.correct = 99; }),
       Reason::kOutOfRange},
      {"a bin out of range", PhaseKind::kEvaluate,
       evaluated([](auto& n) { n.histogram[0] = std::numeric_limits<std::int64_t>::max(); }),
       Reason::kOutOfRange},
      {"a bin too many", PhaseKind::kEvaluate, evaluated([](auto& n) { n.histogram.push_back(0); }),
       Reason::kShape},
  };
  CheckRefused(cases);
}

TEST_CASE("BuildUpdate: of a label that is a number nothing is said to be right") {
  contracts::Plan plan = HeartPlan();
  plan.schema.label.positive_above.reset();
  plan.schema.label.number = contracts::NumberLabel{};
  plan.evaluation.bins = 0;
  EvaluationNumbers numbers;
  numbers.loss_sum_micro = 50'000'000;

  const auto built = Build(plan, PhaseKind::kEvaluate, {.rows = 98, .numbers = numbers});

  REQUIRE(std::holds_alternative<BuiltUpdate>(built));
  CHECK(std::get<BuiltUpdate>(built).numbers == 3);
}

TEST_CASE("BuildUpdate: the manifest is the agent's; of the trainer there are numbers alone") {
  const contracts::Plan plan = HeartPlan();
  const auto built = Build(plan, PhaseKind::kTrain, {.rows = 196, .numbers = Trained(plan)});
  const BuiltUpdate& update = std::get<BuiltUpdate>(built);

  const auto view = Must(updates::ParseUpdate(update.bytes));
  CHECK(view.manifest.job == kJob);
  CHECK(view.manifest.plan == ExampleDigest(4));
  CHECK(view.manifest.base_model == ExampleDigest(5));
  CHECK(view.manifest.policy == ExampleDigest(6));
  CHECK(update.digest == crypto::TreeDigest(update.bytes));
  CHECK(update.numbers == 14 + 3);
  // Every byte is the manifest's or one of the numbers': nothing is left over.
  std::uint64_t payload = 0;
  for (const updates::SectionView& section : view.sections) {
    payload += section.bytes.size();
  }
  CHECK(payload == 14 * 4 + 3 * 8);
  CHECK(update.bytes.size() == Must(updates::UpdateSize(view.manifest)));
}

TEST_CASE("BuildUpdate: a canary beside the numbers leaves in no byte") {
  const contracts::Plan plan = HeartPlan();
  const std::string canary = "MUELLER_JAN_HIV";
  TrainNumbers numbers = Trained(plan);
  const auto clean = Build(plan, PhaseKind::kTrain, {.rows = 196, .numbers = numbers});
  // What a trainer can say besides: other examples than its rows, integers in a float tensor.
  for (models::NamedTensor& tensor : numbers.delta) {
    for (const char letter : canary) {
      tensor.integers.push_back(letter);
    }
  }
  numbers.examples = 0x4D55454C4C4552;

  const auto built = Build(plan, PhaseKind::kTrain, {.rows = 196, .numbers = numbers});

  CHECK(std::get<BuiltUpdate>(built).bytes == std::get<BuiltUpdate>(clean).bytes);
}

}  // namespace
}  // namespace domicile::site_agent

// A plan: one training request in its canonical form. What a job file says, with every default
// written out; both ends hold the same bytes and name them by their SHA-256
// (docs/formats/job-and-plan.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/status.h"
#include "contracts/schema.h"

namespace domicile::contracts {

// Stored and sent: append, never renumber. Zero is never valid.
enum class ModelKind : std::uint8_t { kNone = 0, kLogistic = 1, kMlp = 2, kRaw = 3 };
enum class Activation : std::uint8_t { kNone = 0, kTanh = 1, kRelu = 2, kSigmoid = 3 };
enum class OptimizerKind : std::uint8_t { kNone = 0, kSgd = 1, kAdam = 2 };
enum class PlanView : std::uint8_t { kNone = 0, kSumOnly = 1, kMasked = 2, kPlain = 3 };
enum class WeightRule : std::uint8_t { kNone = 0, kExamples = 1, kEqual = 2 };
enum class PhaseKind : std::uint8_t { kNone = 0, kStatistics = 1, kTrain = 2, kEvaluate = 3 };

struct TensorSpec {
  std::string name;                  // [a-z0-9_.]+, at most 120 characters
  std::vector<std::uint64_t> shape;  // each at least 1; empty for a scalar
  std::uint64_t Size() const;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

struct ModelPlan {
  ModelKind kind = ModelKind::kNone;  // kRaw: no schema, normalisation, evaluation or optimizer
  std::vector<std::uint32_t> hidden;  // widths of the hidden layers, input side first (MLP)
  Activation activation = Activation::kNone;
  std::uint64_t seed = 0;           // of the first weights (MLP); logistic starts at zero
  std::vector<TensorSpec> tensors;  // kRaw only: a foreign trainer's tensors, starting at zero
  friend bool operator==(const ModelPlan&, const ModelPlan&) = default;
};

struct TrainingPlan {
  OptimizerKind optimizer = OptimizerKind::kNone;
  double learning_rate = 0;
  double momentum = 0;             // SGD
  double l2 = 0;                   // gradient l2 * w, never on biases
  std::uint32_t local_steps = 0;   // optimizer steps a round
  std::uint32_t batch = 0;         // rows a step; 0: all of them
  std::uint64_t shuffle_seed = 0;  // of the order of rows, where batch is not 0
  friend bool operator==(const TrainingPlan&, const TrainingPlan&) = default;
};

struct NormalisationPlan {
  bool enabled = false;
  double deviation_floor = 0;    // a deviation below it is an error of the phase
  std::uint32_t scale_bits = 0;  // of the statistics grid: units of 2^-scale_bits
  std::uint64_t max_rows =
      0;  // of one site's table; more are refused there, for the overflow proof
  std::vector<double>
      offsets;  // the public a of sum(x - a), one per input; usually a mid-range value
  std::vector<double>
      ranges;  // |x - a| is at most this, one per input; larger is refused at the site
  friend bool operator==(const NormalisationPlan&, const NormalisationPlan&) = default;
};

struct RoundsPlan {
  std::uint32_t count = 0;
  std::uint32_t quorum = 0;             // fewest contributors of any committed phase
  std::chrono::seconds deadline{0};     // of a phase (round_max)
  std::uint32_t attempts = 0;           // at one phase before the job fails
  std::chrono::seconds start_after{0};  // wait for more sites than the quorum this long
  friend bool operator==(const RoundsPlan&, const RoundsPlan&) = default;
};

struct UpdatePlan {
  PlanView view = PlanView::kNone;
  double clip_l2 = 0;            // of a delta; also bounds each of its values
  std::uint32_t scale_bits = 0;  // grid of deltas: units of 2^-scale_bits
  WeightRule weight = WeightRule::kNone;
  std::uint32_t max_weight = 0;     // integer cap of one site's weight
  std::uint32_t max_sites = 0;      // cap of contributors, for the overflow proof
  double server_learning_rate = 1;  // of FedAvg
  friend bool operator==(const UpdatePlan&, const UpdatePlan&) = default;
};

struct EvaluationPlan {
  bool enabled = false;
  std::uint32_t bins = 0;  // of the score histograms, equal widths over [0, 1]
  friend bool operator==(const EvaluationPlan&, const EvaluationPlan&) = default;
};

// ---- limits of every plan (docs/formats/job-and-plan.md says why) ----

inline constexpr std::uint64_t kMaxParameters = std::uint64_t{1} << 30U;
inline constexpr std::uint32_t kMaxRounds = 100'000;
inline constexpr std::uint32_t kMaxSites = 10'000;
inline constexpr std::uint32_t kMaxScaleBits = 48;
inline constexpr std::int64_t kGridLimit = std::int64_t{1}
                                           << 62U;  // every possible sum is below it
// The largest level of a delta: what float32 sections may hold.
inline constexpr std::int64_t kMaxDeltaLevel = std::int64_t{1} << 50U;

struct Plan {
  std::string name;     // for people: printable ASCII, at most 80 characters
  std::string purpose;  // a code of the policy vocabulary
  DatasetAlias dataset;
  SchemaContract schema;
  ModelPlan model;
  TrainingPlan training;
  NormalisationPlan normalisation;
  RoundsPlan rounds;
  UpdatePlan update;
  EvaluationPlan evaluation;
  std::vector<std::string> recipients;  // who may get models: "sites", "operator", party names

  // The weights that deltas cover, in order. Logistic: "weight" [inputs], "bias" [1] (two classes)
  // or "weight" [inputs, classes], "bias" [classes]. MLP: "layer0.weight" [in, out], "layer0.bias"
  // [out], ...
  std::vector<TensorSpec> Tensors() const;
  std::uint64_t NumParameters() const;
  std::size_t NumInputs() const { return schema.InputNames().size(); }
  // One output with a sigmoid for two classes, else one per class with a softmax.
  std::size_t NumOutputs() const;
  // The phases of a round, in order; empty beyond the last round, and for 0.
  std::vector<PhaseKind> Phases(RoundNumber round) const;

  // Bounds of grid integers, derived from the plan and never from data; both ends use these.
  // A valid plan has max_sites * max_weight * DeltaMaxLevel() < kGridLimit, and max_sites times
  // either statistics bound below it.
  std::int64_t DeltaMaxLevel() const;  // of one value of a delta, unweighted
  std::int64_t StatisticsSumMaxLevel(std::size_t input) const;      // of one site's sum(x - a)
  std::int64_t StatisticsSquaresMaxLevel(std::size_t input) const;  // of one site's sum((x - a)^2)

  friend bool operator==(const Plan&, const Plan&) = default;
};

// The TOML of a job file. `file` is what errors call it.
// Errors: kInvalidArgument with file, line, column; every field is checked against its range and
// the others (the grid must not overflow, offsets match inputs, ...).
StatusOr<Plan> PlanFromJobFile(std::string_view toml, std::string_view file);

// Canonical JSON; decimals as strings. PlanFromText accepts only what PlanText prints, and checks
// everything PlanFromJobFile does: it reads bytes from the network.
std::string PlanText(const Plan& plan);
StatusOr<Plan> PlanFromText(std::string_view text);

// SHA-256 of PlanText: the plan's name in grants, logs and messages.
Digest PlanDigest(const Plan& plan);

// The words of plan files; empty for kNone.
std::string_view PhaseName(PhaseKind kind);          // "statistics", "train", "evaluate"
std::string_view ModelKindName(ModelKind kind);      // "logistic", "mlp", "raw"
std::string_view ActivationName(Activation kind);    // "tanh", "relu", "sigmoid"
std::string_view OptimizerName(OptimizerKind kind);  // "sgd", "adam"
std::string_view ViewName(PlanView view);            // "sum_only", "masked", "plain"
std::string_view WeightRuleName(WeightRule rule);    // "examples", "equal"

}  // namespace domicile::contracts

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
enum class ModelKind : std::uint8_t {
  kNone = 0,
  kLogistic = 1,
  kMlp = 2,
  kRaw = 3,  // a foreign trainer's: no schema, normalisation, evaluation or optimizer
  kConvNet = 4,
  kEncoder = 5,  // of BERT's architecture
  kLinear = 6,   // least squares
};
enum class Activation : std::uint8_t { kNone = 0, kTanh = 1, kRelu = 2, kSigmoid = 3 };
enum class NormKind : std::uint8_t {
  kNone = 0,
  kOff = 1,
  kGroup = 2,
  kBatch = 3,        // its running statistics stay at the site
  kFrozenBatch = 4,  // by mean 0 and variance 1
};
enum class PoolingKind : std::uint8_t { kNone = 0, kMean = 1, kFirst = 2 };
enum class OptimizerKind : std::uint8_t { kNone = 0, kSgd = 1, kAdam = 2, kAdamW = 3 };
enum class ScheduleKind : std::uint8_t { kNone = 0, kConstant = 1, kCosine = 2 };
enum class LastBatch : std::uint8_t { kNone = 0, kKeep = 1, kDrop = 2 };
enum class PlanView : std::uint8_t { kNone = 0, kSumOnly = 1, kMasked = 2, kPlain = 3 };
enum class WeightRule : std::uint8_t { kNone = 0, kExamples = 1, kEqual = 2 };
enum class PhaseKind : std::uint8_t { kNone = 0, kStatistics = 1, kTrain = 2, kEvaluate = 3 };

struct TensorSpec {
  std::string name;                  // [a-z0-9_.]+, at most 120 characters
  std::vector<std::uint64_t> shape;  // each at least 1; empty for a scalar
  std::uint64_t Size() const;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// One block of a convolutional network: convolution, norm, activation, maximum pool.
struct ConvBlockPlan {
  std::uint32_t filters = 0;
  std::uint32_t kernel = 0;
  std::uint32_t stride = 1;
  std::uint32_t padding = 0;
  NormKind norm = NormKind::kNone;
  std::uint32_t groups = 0;  // kGroup
  std::uint32_t pool = 0;    // window and step; 0: no pool
  friend bool operator==(const ConvBlockPlan&, const ConvBlockPlan&) = default;
};

struct EncoderPlan {
  std::uint32_t vocabulary = 0;
  std::uint32_t positions = 0;
  std::uint32_t types = 0;
  std::uint32_t width = 0;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;
  std::uint32_t intermediate = 0;
  PoolingKind pooling = PoolingKind::kNone;
  std::uint32_t lora_rank = 0;  // 0: no adapters. Else only they and the head are trained
  double lora_alpha = 0;
  std::optional<Digest> pretrained;  // SHA-256 of a safetensors file that every site has
  friend bool operator==(const EncoderPlan&, const EncoderPlan&) = default;
};

struct ModelPlan {
  ModelKind kind = ModelKind::kNone;
  std::vector<std::uint32_t> hidden;          // widths of dense layers, input side first
  Activation activation = Activation::kNone;  // MLP, convolutional
  double dropout = 0;                         // convolutional, encoder
  std::uint64_t seed = 0;             // of the first weights; logistic and linear start at zero
  std::vector<ConvBlockPlan> blocks;  // convolutional
  EncoderPlan encoder;
  std::vector<TensorSpec> tensors;  // kRaw only: a foreign trainer's tensors, starting at zero
  friend bool operator==(const ModelPlan&, const ModelPlan&) = default;
};

// What holds from a round on, until the next stage.
struct StagePlan {
  std::uint32_t from_round = 1;
  std::vector<std::string> frozen;  // patterns of tensor names: `*` is any characters
  double learning_rate = 0;
  friend bool operator==(const StagePlan&, const StagePlan&) = default;
};

// When a round's training ends before its last epoch. The site holds rows out to tell by.
struct EarlyStoppingPlan {
  bool enabled = false;
  std::uint32_t patience = 0;   // epochs without improvement
  double min_improvement = 0;   // of the mean validation loss
  double validation_share = 0;  // of the training rows, held out
  friend bool operator==(const EarlyStoppingPlan&, const EarlyStoppingPlan&) = default;
};

struct TrainingPlan {
  OptimizerKind optimizer = OptimizerKind::kNone;
  double learning_rate = 0;
  double momentum = 0;      // SGD
  bool nesterov = false;    // SGD
  double weight_decay = 0;  // SGD, AdamW; never of biases and norms
  double beta1 = 0;         // Adam, AdamW
  double beta2 = 0;
  double epsilon = 0;
  double l2 = 0;         // gradient l2 * w, never on biases
  double clip_norm = 0;  // of the gradient of a step; 0: none
  ScheduleKind schedule = ScheduleKind::kNone;
  std::uint32_t warmup_steps = 0;  // of the job, over all its rounds
  double warmup_from = 0;          // share of the rate before the first step
  std::uint32_t base_batch = 0;    // the rate is for this many rows, and grows with `batch`; 0: not
  std::uint32_t local_steps = 0;   // optimizer steps a round; 0: local_epochs
  std::uint32_t local_epochs = 0;  // passes over the training rows a round; 0: local_steps
  std::uint32_t batch = 0;         // rows a step; 0: all of them
  LastBatch last_batch = LastBatch::kNone;  // what an epoch ends with, where batch is not 0
  bool shuffle = false;                     // the order of rows, where batch is not 0
  std::uint64_t shuffle_seed = 0;
  EarlyStoppingPlan early_stopping;  // with local_epochs
  std::vector<std::string> frozen;   // before the first stage; patterns as of a stage
  std::vector<StagePlan> stages;     // in order of rounds
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
  std::uint32_t value_bits = 0;  // kRaw: what one value of a delta may carry; else 0
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
inline constexpr std::uint32_t kMaxValueBits = 32;
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

  // The weights that deltas cover and model files hold, in order: those trained in some stage. The
  // names and shapes of each kind are on the format page.
  std::vector<TensorSpec> Tensors() const;
  std::uint64_t NumParameters() const;  // of Tensors()
  std::size_t NumInputs() const { return schema.NumInputs(); }
  // One output with a sigmoid for two classes, else one per class with a softmax; one for a number.
  std::size_t NumOutputs() const;
  // What holds in a round: the plan's own settings, or those of its latest stage.
  StagePlan StageOf(RoundNumber round) const;
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
std::string_view ModelKindName(ModelKind kind);      // "logistic", "mlp", "raw", "conv_net", ...
std::string_view ActivationName(Activation kind);    // "tanh", "relu", "sigmoid"
std::string_view OptimizerName(OptimizerKind kind);  // "sgd", "adam", "adamw"
std::string_view ViewName(PlanView view);            // "sum_only", "masked", "plain"
std::string_view WeightRuleName(WeightRule rule);    // "examples", "equal"

}  // namespace domicile::contracts

#include "models/plans/plan_model.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "models/initial.h"

namespace domicile::models {

namespace {

Activation ActivationOf(contracts::Activation activation) {
  switch (activation) {
    case contracts::Activation::kNone:
      return Activation::kNone;
    case contracts::Activation::kTanh:
      return Activation::kTanh;
    case contracts::Activation::kRelu:
      return Activation::kRelu;
    case contracts::Activation::kSigmoid:
      return Activation::kSigmoid;
  }
  return Activation::kNone;
}

ImageNorm NormOf(contracts::NormKind norm) {
  switch (norm) {
    case contracts::NormKind::kNone:
    case contracts::NormKind::kOff:
      return ImageNorm::kNone;
    case contracts::NormKind::kGroup:
      return ImageNorm::kGroup;
    case contracts::NormKind::kBatch:
      return ImageNorm::kBatch;
    case contracts::NormKind::kFrozenBatch:
      return ImageNorm::kFrozenBatch;
  }
  return ImageNorm::kNone;
}

LossKind LossOf(const contracts::Plan& plan) {
  return plan.schema.label.number ? LossKind::kSquaredError : LossKind::kCrossEntropy;
}

NetworkSpec NetworkOf(const contracts::Plan& plan) {
  return {.num_inputs = plan.NumInputs(),
          .hidden = {plan.model.hidden.begin(), plan.model.hidden.end()},
          .activation = ActivationOf(plan.model.activation),
          .num_outputs = plan.NumOutputs(),
          .loss = LossOf(plan)};
}

ConvNetSpec ConvNetOf(const contracts::Plan& plan) {
  const contracts::ImageInput image = plan.schema.image.value_or(contracts::ImageInput{});
  ConvNetSpec spec;
  spec.channels = image.channels;
  spec.height = image.height;
  spec.width = image.width;
  for (const contracts::ConvBlockPlan& block : plan.model.blocks) {
    spec.blocks.push_back({.filters = block.filters,
                           .kernel = block.kernel,
                           .stride = block.stride,
                           .padding = block.padding,
                           .norm = NormOf(block.norm),
                           .groups = std::max(block.groups, 1U),
                           .pool_window = block.pool});
  }
  spec.hidden.assign(plan.model.hidden.begin(), plan.model.hidden.end());
  spec.activation = ActivationOf(plan.model.activation);
  spec.dropout = static_cast<float>(plan.model.dropout);
  spec.num_outputs = plan.NumOutputs();
  spec.loss = LossOf(plan);
  return spec;
}

EncoderSpec EncoderOf(const contracts::Plan& plan) {
  const contracts::EncoderPlan& encoder = plan.model.encoder;
  EncoderSpec spec;
  spec.vocabulary = encoder.vocabulary;
  spec.positions = encoder.positions;
  spec.types = encoder.types;
  spec.hidden = encoder.width;
  spec.layers = encoder.layers;
  spec.heads = encoder.heads;
  spec.intermediate = encoder.intermediate;
  spec.dropout = static_cast<float>(plan.model.dropout);
  spec.pooling =
      encoder.pooling == contracts::PoolingKind::kFirst ? Pooling::kFirst : Pooling::kMean;
  spec.num_outputs = plan.NumOutputs();
  spec.loss = LossOf(plan);
  spec.lora = {.rank = encoder.lora_rank, .alpha = encoder.lora_alpha, .trains_a = false};
  return spec;
}

OptimizerKind OptimizerOf(contracts::OptimizerKind kind) {
  switch (kind) {
    case contracts::OptimizerKind::kNone:
      return OptimizerKind::kNone;
    case contracts::OptimizerKind::kSgd:
      return OptimizerKind::kSgd;
    case contracts::OptimizerKind::kAdam:
      return OptimizerKind::kAdam;
    case contracts::OptimizerKind::kAdamW:
      return OptimizerKind::kAdamW;
  }
  return OptimizerKind::kNone;
}

OptimizerSpec OptimizerOf(const contracts::TrainingPlan& training, double learning_rate) {
  OptimizerSpec spec;
  spec.kind = OptimizerOf(training.optimizer);
  spec.learning_rate = training.base_batch == 0
                           ? learning_rate
                           : ScaledRate(learning_rate, training.base_batch, training.batch);
  spec.momentum = training.momentum;
  spec.nesterov = training.nesterov;
  spec.weight_decay = training.weight_decay;
  if (training.optimizer != contracts::OptimizerKind::kSgd) {
    spec.beta1 = training.beta1;
    spec.beta2 = training.beta2;
    spec.epsilon = training.epsilon;
  }
  return spec;
}

}  // namespace

ModelSpec SpecOf(const contracts::Plan& plan) {
  switch (plan.model.kind) {
    case contracts::ModelKind::kNone:
    case contracts::ModelKind::kRaw:
      break;
    case contracts::ModelKind::kLogistic:
    case contracts::ModelKind::kLinear:
    case contracts::ModelKind::kMlp:
      return NetworkOf(plan);
    case contracts::ModelKind::kConvNet:
      return ConvNetOf(plan);
    case contracts::ModelKind::kEncoder:
      return EncoderOf(plan);
  }
  return NetworkSpec{};
}

TrainingSpec TrainingOf(const contracts::Plan& plan, RoundNumber round, std::uint64_t steps) {
  const contracts::TrainingPlan& training = plan.training;
  const contracts::StagePlan stage = plan.StageOf(round);
  TrainingSpec spec;
  spec.model = SpecOf(plan);
  spec.optimizer = OptimizerOf(training, stage.learning_rate);
  spec.l2 = training.l2;
  spec.clip_norm = training.clip_norm;
  spec.frozen = stage.frozen;
  spec.schedule.warmup_steps = training.warmup_steps;
  spec.schedule.warmup_from = training.warmup_from;
  if (training.schedule == contracts::ScheduleKind::kCosine) {
    spec.schedule.kind = ScheduleKind::kCosine;
    // With epochs a site of few rows may have a job shorter than the warm-up.
    spec.schedule.total_steps =
        std::max(steps * plan.rounds.count, std::uint64_t{training.warmup_steps} + 1);
  }
  spec.schedule_step = steps * (round == 0 ? 0 : round - 1);
  // What is dropped differs from round to round, and is the same for a round done again.
  SeededRandom mixer(plan.model.seed);
  spec.seed = mixer.Next64() + round;
  return spec;
}

bool TravelsPretrained(const contracts::Plan& plan) {
  if (!plan.model.encoder.pretrained) {
    return false;
  }
  const std::vector<contracts::TensorSpec> tensors = plan.Tensors();
  return std::any_of(tensors.begin(), tensors.end(), [](const contracts::TensorSpec& tensor) {
    return !MatchesPattern("classifier.*", tensor.name) && !MatchesPattern("*.lora_*", tensor.name);
  });
}

StatusOr<std::vector<float>> FirstParameters(const contracts::Plan& plan,
                                             const PretrainedModels& pretrained) {
  const ModelSpec spec = SpecOf(plan);
  RETURN_IF_ERROR(CheckSpec(spec));
  std::vector<float> parameters = InitialParameters(spec, plan.model.seed);
  if (!plan.model.encoder.pretrained) {
    return parameters;
  }
  const std::vector<NamedTensor>* const tensors = pretrained.Find(*plan.model.encoder.pretrained);
  if (tensors == nullptr) {
    return Error(StatusCode::kNotFound, "the job starts from the pretrained model of SHA-256 " +
                                            PrintHex(*plan.model.encoder.pretrained) +
                                            ", which is not among the files of `pretrained`");
  }
  RETURN_IF_ERROR(LoadPretrained(std::get<EncoderSpec>(spec), *tensors, parameters));
  return parameters;
}

std::vector<NamedTensor> TravellingTensors(const contracts::Plan& plan,
                                           std::span<const float> parameters) {
  const ParameterLayout layout = LayoutOf(SpecOf(plan));
  DOMICILE_CHECK(parameters.size() == layout.NumParameters());
  const std::vector<contracts::TensorSpec> wanted = plan.Tensors();
  std::vector<NamedTensor> tensors;
  for (const ParameterView& view : layout.Views()) {
    if (tensors.size() < wanted.size() && view.name == wanted[tensors.size()].name) {
      const auto values = parameters.subspan(view.offset, view.size);
      tensors.push_back(
          {.name = view.name, .shape = view.shape, .values = {values.begin(), values.end()}});
    }
  }
  DOMICILE_CHECK(tensors.size() == wanted.size());  // both are in the order of the layers
  return tensors;
}

Status ReadTravelling(const contracts::Plan& plan, std::span<const NamedTensor> tensors,
                      std::span<float> parameters) {
  const ParameterLayout layout = LayoutOf(SpecOf(plan));
  DOMICILE_CHECK(parameters.size() == layout.NumParameters());
  std::size_t next = 0;
  const std::vector<contracts::TensorSpec> wanted = plan.Tensors();
  for (const ParameterView& view : layout.Views()) {
    if (next == wanted.size() || view.name != wanted[next].name) {
      continue;
    }
    ++next;
    RETURN_IF_ERROR(ReadTensor(view, tensors, parameters.subspan(view.offset, view.size)));
  }
  return OkStatus();
}

}  // namespace domicile::models

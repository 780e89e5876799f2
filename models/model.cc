#include "models/model.h"

#include <algorithm>
#include <utility>

namespace domicile::models {
namespace {

std::unique_ptr<Layer> LayersOf(const ModelSpec& spec) {
  return std::visit([](const auto& kind) { return MakeLayers(kind); }, spec);
}

Status CheckTokens(const EncoderSpec& spec, const TokenView& tokens) {
  const auto fits = [&tokens](const auto& values) {
    return values.empty() || values.size() == tokens.ids.size();
  };
  if (tokens.length == 0 || tokens.length > spec.positions ||
      tokens.ids.size() % tokens.length != 0 || !fits(tokens.types) || !fits(tokens.mask)) {
    return Error(StatusCode::kInvalidArgument,
                 "sequences must be of one length within the encoder's positions, with a type and "
                 "a mask for each token or for none");
  }
  const auto all_below = [](std::span<const std::uint32_t> values, std::size_t bound) {
    return std::all_of(values.begin(), values.end(),
                       [bound](std::uint32_t value) { return value < bound; });
  };
  if (!all_below(tokens.ids, spec.vocabulary) || !all_below(tokens.types, spec.types)) {
    return Error(StatusCode::kInvalidArgument, "a token or a type is beyond the encoder's range");
  }
  return OkStatus();
}

}  // namespace

Status CheckSpec(const ModelSpec& spec) {
  return std::visit([](const auto& kind) { return CheckSpec(kind); }, spec);
}

ParameterLayout LayoutOf(const ModelSpec& spec) {
  ParameterLayout layout;
  LayersOf(spec)->Declare(layout);
  return layout;
}

std::size_t NumInputs(const ModelSpec& spec) {
  if (const auto* const network = std::get_if<NetworkSpec>(&spec)) {
    return network->num_inputs;
  }
  const auto* const image = std::get_if<ConvNetSpec>(&spec);
  return image == nullptr ? 0 : image->channels * image->height * image->width;
}

std::size_t NumOutputs(const ModelSpec& spec) {
  const std::size_t outputs = std::visit([](const auto& kind) { return kind.num_outputs; }, spec);
  const auto* const encoder = std::get_if<EncoderSpec>(&spec);
  return outputs == 0 && encoder != nullptr ? encoder->hidden : outputs;
}

LossKind LossOf(const ModelSpec& spec) {
  return std::visit([](const auto& kind) { return kind.loss; }, spec);
}

BatchView BatchView::Rows(std::size_t first, std::size_t count) const {
  BatchView part;
  if (tokens.length > 0) {
    part.tokens = tokens.Rows(first, count);
  } else {
    part.inputs = inputs.Rows(first, count);
  }
  if (!labels.empty()) {
    part.labels = labels.subspan(first, count);
  }
  if (targets.data != nullptr) {
    part.targets = targets.Rows(first, count);
  }
  return part;
}

Status CheckBatch(const ModelSpec& spec, const BatchView& batch) {
  const auto* const encoder = std::get_if<EncoderSpec>(&spec);
  if (encoder != nullptr) {
    RETURN_IF_ERROR(CheckTokens(*encoder, batch.tokens));
  } else if (batch.tokens.length != 0 || batch.inputs.columns != NumInputs(spec)) {
    return Error(StatusCode::kInvalidArgument, "a batch needs the model's inputs in each row");
  }
  const std::size_t rows = batch.NumExamples();
  const bool by_class = LossOf(spec) == LossKind::kCrossEntropy;
  if (rows == 0 || (by_class && batch.labels.size() != rows) ||
      (!by_class && (batch.targets.rows != rows || batch.targets.columns != NumOutputs(spec)))) {
    return Error(StatusCode::kInvalidArgument,
                 "a batch needs at least one example, and for each a label or its targets");
  }
  const std::size_t outputs = NumOutputs(spec);
  const std::size_t classes = outputs == 1 ? 2 : outputs;
  if (by_class && std::any_of(batch.labels.begin(), batch.labels.end(),
                              [classes](std::uint32_t label) { return label >= classes; })) {
    return Error(StatusCode::kInvalidArgument, "a label is beyond the model's classes");
  }
  return OkStatus();
}

Model::Model(ModelSpec spec, Device& device)
    : spec_(std::move(spec)), device_(&device), layers_(LayersOf(spec_)) {
  DOMICILE_CHECK(CheckSpec(spec_).ok());
  layers_->Declare(layout_);
  trained_ = layout_.TrainedRanges();
}

std::size_t Model::Freeze(std::span<const std::string> patterns) {
  const std::size_t frozen = layout_.Freeze(patterns);
  layers_->Bind(layout_);
  trained_ = layout_.TrainedRanges();
  return frozen;
}

ConstMatrix Model::RunForward(Pass& pass, const BatchView& batch) {
  DOMICILE_CHECK(pass.parameters.size() == NumParameters());
  pass.tokens = batch.tokens;
  pass.num_examples = batch.NumExamples();
  if (device_->memory().IsHost() || batch.inputs.data == nullptr) {
    return layers_->Forward(*device_, pass, batch.inputs);
  }
  // Once, for the way forward and the way back.
  inputs_.ResizeMatrix(batch.inputs.rows, batch.inputs.columns, device_->memory());
  const std::size_t size = batch.inputs.rows * batch.inputs.columns;
  Copy(device_->memory(), std::span(batch.inputs.data, size), inputs_.Values());
  return layers_->Forward(*device_, pass, std::as_const(inputs_).AsMatrix());
}

ConstMatrix Model::Forward(std::span<const float> parameters, const BatchView& batch) {
  Pass pass = {.parameters = parameters};
  return RunForward(pass, batch);
}

double Model::LossOfOutputs(ConstMatrix outputs, const BatchView& batch, float scale,
                            Matrix gradient) {
  if (LossOf(spec_) == LossKind::kSquaredError) {
    return device_->SquaredError(outputs, batch.targets, scale, gradient);
  }
  return outputs.columns == 1
             ? device_->BinaryCrossEntropy(outputs, batch.labels, scale, gradient)
             : device_->SoftmaxCrossEntropy(outputs, batch.labels, scale, gradient);
}

double Model::Loss(std::span<const float> parameters, const BatchView& batch) {
  if (batch.NumExamples() == 0) {
    return 0;
  }
  return LossOfOutputs(Forward(parameters, batch), batch, 0, {});
}

double Model::LossAndGradient(std::span<const float> parameters, const BatchView& slice,
                              const StepPlace& place, std::span<float> gradient) {
  DOMICILE_CHECK(gradient.size() == NumParameters());
  const auto finish = [&place](double loss) {
    if (place.final_from != nullptr) {
      (*place.final_from)(0);
    }
    return loss;
  };
  if (slice.NumExamples() == 0) {
    device_->memory().Zero(gradient.data(), gradient.size_bytes());
    return finish(0);
  }
  Pass pass = {.parameters = parameters,
               .training = true,
               .dropout_key = place.dropout_key,
               .first_example = place.first_example,
               .divisor = place.divisor,
               .final_from = place.final_from};
  const ConstMatrix outputs = RunForward(pass, slice);
  output_gradient_.ResizeMatrix(outputs.rows, outputs.columns, device_->memory());
  const double loss =
      LossOfOutputs(outputs, slice, static_cast<float>(place.loss_scale / place.divisor),
                    output_gradient_.AsMatrix());
  layers_->Backward(*device_, pass, output_gradient_.AsMatrix(), false, gradient);
  return finish(loss);
}

void Model::AddL2(double l2, std::span<const float> parameters, std::span<float> gradient) {
  if (l2 == 0) {
    return;
  }
  for (const ParameterRange& range : trained_) {
    if (range.decays) {
      device_->AddScaled(static_cast<float>(l2), parameters.subspan(range.offset, range.size),
                         gradient.subspan(range.offset, range.size));
    }
  }
}

void Model::UpdateStatistics(double divisor, std::span<const float> gradient,
                             std::span<float> parameters) {
  layers_->UpdateStatistics(*device_, divisor, gradient, parameters);
}

}  // namespace domicile::models

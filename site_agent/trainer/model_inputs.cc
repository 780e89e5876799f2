#include "site_agent/trainer/model_inputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/json.h"
#include "contracts/normalisation.h"
#include "models/plans/plan_model.h"
#include "site_agent/trainer/execute.h"

namespace domicile::site_agent {
namespace {

using policy::Reason;

constexpr int kPixelValues = 256;

// The constants of one normalisation tensor; without the tensor, `otherwise` for every input.
StatusOr<std::vector<double>> Constants(const std::vector<models::NamedTensor>& model,
                                        std::string_view name, std::size_t num_inputs,
                                        double otherwise) {
  const models::NamedTensor* const tensor = models::FindTensor(model, name);
  if (tensor == nullptr) {
    return std::vector<double>(num_inputs, otherwise);
  }
  if (tensor->type != models::DataType::kFloat32 ||
      tensor->shape != std::vector<std::uint64_t>{num_inputs} ||
      tensor->values.size() != num_inputs) {
    return Error(StatusCode::kInvalidArgument,
                 "tensor `" + std::string(name) + "` does not have one value for each input");
  }
  return std::vector<double>(tensor->values.begin(), tensor->values.end());
}

// What a model of the plan sees of each value of a channel.
std::vector<float> PixelValues(const contracts::Plan& plan) {
  std::vector<float> values;
  if (!plan.schema.image) {
    return values;
  }
  const contracts::ImageInput& image = *plan.schema.image;
  for (std::uint32_t channel = 0; channel < image.channels; ++channel) {
    for (int value = 0; value < kPixelValues; ++value) {
      values.push_back(
          static_cast<float>((value / 255.0 - image.mean[channel]) / image.deviation[channel]));
    }
  }
  return values;
}

// Reads the constants of a table's inputs. Errors: kInvalidArgument.
Status ReadConstants(const std::vector<models::NamedTensor>& model, std::size_t num_inputs,
                     PreparedModel& prepared) {
  ASSIGN_OR_RETURN(prepared.mean, Constants(model, contracts::kMeanTensor, num_inputs, 0));
  ASSIGN_OR_RETURN(prepared.deviation,
                   Constants(model, contracts::kDeviationTensor, num_inputs, 1));
  if (std::any_of(prepared.deviation.begin(), prepared.deviation.end(),
                  [](double deviation) { return !(deviation > 0); })) {
    return Error(StatusCode::kInvalidArgument,
                 "tensor `normalisation.deviation` has a value that is not above 0");
  }
  return OkStatus();
}

void NormaliseRow(const PreparedModel& model, const Rows& rows, std::size_t row,
                  std::span<float> out) {
  const std::size_t first = row * rows.num_inputs;
  for (std::size_t input = 0; input < rows.num_inputs; ++input) {
    out[input] = rows.missing[first + input] != 0
                     ? 0.0F
                     : static_cast<float>((rows.inputs[first + input] - model.mean[input]) /
                                          model.deviation[input]);
  }
}

void ScalePicture(const PreparedModel& model, const Rows& rows, std::size_t row,
                  std::span<float> out) {
  const std::size_t channels = model.pixel.size() / kPixelValues;
  const std::size_t size = out.size() / channels;
  const std::span<const std::uint8_t> pixels = std::span(rows.pixels).subspan(row * out.size());
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const float* const values = model.pixel.data() + channel * kPixelValues;
    for (std::size_t i = channel * size; i < (channel + 1) * size; ++i) {
      out[i] = values[pixels[i]];
    }
  }
}

// Texts, cut to the longest of these rows: padding costs time and changes nothing.
void AddTexts(const Rows& rows, RowBatch& batch) {
  const std::size_t stride = rows.tokens.size() / rows.lengths.size();
  for (const std::size_t row : batch.indices) {
    batch.length = std::max<std::size_t>(batch.length, rows.lengths[row]);
  }
  for (const std::size_t row : batch.indices) {
    const auto text = std::span(rows.tokens).subspan(row * stride, batch.length);
    batch.tokens.insert(batch.tokens.end(), text.begin(), text.end());
    for (std::size_t i = 0; i < batch.length; ++i) {
      batch.mask.push_back(i < rows.lengths[row] ? 1 : 0);
    }
  }
}

}  // namespace

Fault MakeFault(Reason reason, const DatasetAlias& alias, std::string line,
                std::uint64_t rows_refused) {
  return {{reason, alias, rows_refused}, {std::move(line)}};
}

Outcome<PreparedModel> PrepareModel(const contracts::Plan& plan,
                                    const std::vector<models::NamedTensor>& model,
                                    const DatasetAlias& alias,
                                    const models::PretrainedModels& pretrained) {
  if (plan.model.kind == contracts::ModelKind::kNone ||
      plan.model.kind == contracts::ModelKind::kRaw) {
    return MakeFault(Reason::kModelNotAllowed, alias,
                     "the plan's model is for a trainer of its own");
  }
  if (const Status status = models::CheckFinite(model); !status.ok()) {
    return MakeFault(Reason::kModelNotFinite, alias, std::string(Message(status)));
  }
  PreparedModel prepared;
  prepared.spec = models::SpecOf(plan);
  StatusOr<std::vector<float>> first = models::FirstParameters(plan, pretrained);
  if (!first.ok()) {
    return MakeFault(first.status().code() == StatusCode::kNotFound ? Reason::kModelNotAllowed
                                                                    : Reason::kModelShape,
                     alias, std::string(Message(first.status())));
  }
  prepared.parameters = *std::move(first);
  if (const Status status = models::ReadTravelling(plan, model, prepared.parameters);
      !status.ok()) {
    return MakeFault(Reason::kModelShape, alias, std::string(Message(status)));
  }
  if (!plan.schema.image && !plan.schema.text) {
    if (const Status status = ReadConstants(model, plan.NumInputs(), prepared); !status.ok()) {
      return MakeFault(Reason::kNormalisation, alias, std::string(Message(status)));
    }
  }
  prepared.pixel = PixelValues(plan);
  prepared.number = plan.schema.label.number.value_or(contracts::NumberLabel{});
  return prepared;
}

std::uint64_t RowBatch::NumBytes() const {
  return sizeof(float) * (inputs.NumElements() + targets.NumElements()) +
         sizeof(std::uint32_t) * (tokens.size() + labels.size()) + mask.size() +
         sizeof(std::size_t) * indices.size();
}

models::BatchView RowBatch::View() const {
  models::BatchView view;
  view.labels = labels;
  if (length > 0) {
    view.tokens = {.ids = tokens, .types = {}, .mask = mask, .length = length};
  } else {
    view.inputs = inputs.AsMatrix();
  }
  if (targets.NumElements() > 0) {
    view.targets = targets.AsMatrix();
  }
  return view;
}

RowBatch MakeBatch(const PreparedModel& model, const Rows& rows, std::vector<std::size_t> indices) {
  RowBatch batch;
  batch.indices = std::move(indices);
  const std::size_t count = batch.indices.size();
  if (!rows.lengths.empty()) {
    AddTexts(rows, batch);
  } else {
    const std::size_t width = models::NumInputs(model.spec);
    batch.inputs = models::Tensor({count, width});
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<float> out = batch.inputs.Values().subspan(i * width, width);
      model.pixel.empty() ? NormaliseRow(model, rows, batch.indices[i], out)
                          : ScalePicture(model, rows, batch.indices[i], out);
    }
  }
  if (rows.targets.empty()) {
    for (const std::size_t row : batch.indices) {
      batch.labels.push_back(rows.labels[row]);
    }
    return batch;
  }
  batch.targets = models::Tensor({count, 1});
  for (std::size_t i = 0; i < count; ++i) {
    batch.targets.Values()[i] = static_cast<float>(
        (rows.targets[batch.indices[i]] - model.number.offset) / model.number.scale);
  }
  return batch;
}

RowBatch MakeBatch(const PreparedModel& model, const Rows& rows, std::size_t first,
                   std::size_t count) {
  std::vector<std::size_t> indices(count);
  std::iota(indices.begin(), indices.end(), first);
  return MakeBatch(model, rows, std::move(indices));
}

std::size_t RowsAtOnce(const models::ModelSpec& spec) {
  if (std::holds_alternative<models::EncoderSpec>(spec)) {
    return 32;
  }
  return std::holds_alternative<models::ConvNetSpec>(spec) ? 256 : 4096;
}

bool Fits(const contracts::Plan& plan, const Rows& rows) {
  const std::size_t count = rows.NumRows();
  const std::size_t values = count * plan.NumInputs();
  const std::size_t classes = plan.schema.label.NumClasses();
  const bool is_labelled =
      plan.schema.label.number
          ? rows.labels.empty()
          : rows.targets.empty() &&
                std::all_of(rows.labels.begin(), rows.labels.end(),
                            [classes](std::uint32_t label) { return label < classes; });
  if (plan.schema.text) {
    return is_labelled && rows.lengths.size() == count && rows.tokens.size() == values &&
           std::all_of(rows.lengths.begin(), rows.lengths.end(), [&plan](std::uint32_t length) {
             return length >= 1 && length <= plan.NumInputs();
           });
  }
  return is_labelled &&
         (plan.schema.image ? rows.pixels.size() == values
                            : rows.num_inputs == plan.NumInputs() && rows.inputs.size() == values);
}

std::optional<std::int64_t> LossUnits(double loss) {
  const double units = std::nearbyint(loss / kLossUnit);
  // What is stored or sent in JSON must be a whole number that every reader can hold.
  if (!(std::fabs(units) <= static_cast<double>(kLargestJsonInteger))) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(units);
}

}  // namespace domicile::site_agent

#include "site_agent/trainer/work.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/text.h"
#include "models/cpu/cpu_device.h"
#include "models/plans/plan_model.h"
#include "site_agent/trainer/batch_statistics.h"

namespace domicile::site_agent {
namespace {

using policy::Reason;

constexpr std::string_view kHeadWeight = "classifier.weight";
constexpr std::string_view kHeadBias = "classifier.bias";

// With dropout the encoder gives other numbers in each step.
bool TrainsHeadAlone(const contracts::Plan& plan) {
  if (plan.model.kind != contracts::ModelKind::kEncoder || plan.model.dropout > 0) {
    return false;
  }
  const std::vector<contracts::TensorSpec> tensors = plan.Tensors();
  return tensors.size() == 2 && tensors[0].name == kHeadWeight && tensors[1].name == kHeadBias;
}

// One dense layer as the head of an encoder has it: [out, in], weight before bias.
models::ConvNetSpec HeadOf(const contracts::Plan& plan) {
  models::ConvNetSpec spec;
  spec.channels = plan.model.encoder.width;
  spec.height = 1;
  spec.width = 1;
  spec.num_outputs = plan.NumOutputs();
  spec.loss =
      plan.schema.label.number ? models::LossKind::kSquaredError : models::LossKind::kCrossEntropy;
  return spec;
}

// The rows as the encoder without its head gives them.
Rows FeaturesOf(const PreparedModel& model, const Rows& rows) {
  models::EncoderSpec spec = std::get<models::EncoderSpec>(model.spec);
  spec.num_outputs = 0;
  const std::unique_ptr<models::Device> device = models::MakeCpuDevice(1);
  models::Model encoder(spec, *device);
  const std::span<const float> parameters =
      std::span(model.parameters).first(encoder.NumParameters());
  Rows features;
  features.num_inputs = spec.hidden;
  features.labels = rows.labels;
  features.targets = rows.targets;
  const std::size_t at_once = RowsAtOnce(model.spec);
  for (std::size_t first = 0; first < rows.NumRows(); first += at_once) {
    const RowBatch batch = MakeBatch(model, rows, first, std::min(at_once, rows.NumRows() - first));
    const models::ConstMatrix out = encoder.Forward(parameters, batch.View());
    features.inputs.insert(features.inputs.end(), out.data, out.data + out.rows * out.columns);
  }
  features.missing.assign(features.inputs.size(), 0);
  return features;
}

// The head that was sent, over the features.
Outcome<PreparedModel> PrepareHead(const contracts::Plan& plan,
                                   const std::vector<models::NamedTensor>& model,
                                   const DatasetAlias& alias) {
  if (const Status status = models::CheckFinite(model); !status.ok()) {
    return MakeFault(Reason::kModelNotFinite, alias, std::string(Message(status)));
  }
  PreparedModel head;
  head.spec = HeadOf(plan);
  for (const contracts::TensorSpec& spec : plan.Tensors()) {
    const models::NamedTensor* const tensor = models::FindTensor(model, spec.name);
    if (tensor == nullptr || tensor->shape != spec.shape || tensor->values.size() != spec.Size()) {
      return MakeFault(Reason::kModelShape, alias,
                       "the model has no tensor `" + spec.name + "` of the plan's shape");
    }
    head.parameters.insert(head.parameters.end(), tensor->values.begin(), tensor->values.end());
  }
  head.mean.assign(plan.model.encoder.width, 0);
  head.deviation.assign(plan.model.encoder.width, 1);
  head.number = plan.schema.label.number.value_or(contracts::NumberLabel{});
  return head;
}

std::optional<Fault> MakeFeatures(const contracts::Plan& plan, const LoadedDataset& data,
                                  const std::vector<models::NamedTensor>& model,
                                  const models::PretrainedModels& pretrained,
                                  FrozenFeatures& features) {
  std::string text = contracts::PlanText(plan);
  if (features.plan == text) {
    return std::nullopt;
  }
  const Outcome<PreparedModel> whole = PrepareModel(plan, model, data.alias, pretrained);
  if (!whole.ok()) {
    return whole.TheFault();
  }
  features = {std::move(text), FeaturesOf(*whole, data.training), FeaturesOf(*whole, data.test)};
  return std::nullopt;
}

}  // namespace

Outcome<Work> PrepareWork(const contracts::Plan& plan, const LoadedDataset& data,
                          const std::vector<models::NamedTensor>& model,
                          const ModelSources& sources) {
  const models::PretrainedModels none;
  const models::PretrainedModels& pretrained =
      sources.pretrained != nullptr ? *sources.pretrained : none;
  const auto unfit = [&data] {
    return MakeFault(Reason::kModelShape, data.alias,
                     "the dataset was not built for the inputs and classes of this plan");
  };
  const bool fits = data.input_names == plan.schema.InputNames() &&
                    data.num_classes == plan.schema.label.NumClasses() &&
                    Fits(plan, data.training) && Fits(plan, data.test);
  Work work;
  work.head_alone = TrainsHeadAlone(plan);
  if (!work.head_alone) {
    Outcome<PreparedModel> prepared = PrepareModel(plan, model, data.alias, pretrained);
    if (!prepared.ok()) {
      return prepared.TheFault();
    }
    if (!fits) {
      return unfit();
    }
    work.model = std::move(*prepared);
    work.training = &data.training;
    work.test = &data.test;
    FormStatistics(data.training, work.model);
    return work;
  }
  if (!fits) {
    return unfit();
  }
  FrozenFeatures* features = sources.features;
  if (features == nullptr) {
    work.own_features = std::make_unique<FrozenFeatures>();
    features = work.own_features.get();
  }
  if (std::optional<Fault> fault = MakeFeatures(plan, data, model, pretrained, *features)) {
    return *std::move(fault);
  }
  Outcome<PreparedModel> head = PrepareHead(plan, model, data.alias);
  if (!head.ok()) {
    return head.TheFault();
  }
  work.model = std::move(*head);
  work.training = &features->training;
  work.test = &features->test;
  return work;
}

models::TrainingSpec TrainingOf(const contracts::Plan& plan, const Work& work, RoundNumber round,
                                std::uint64_t steps) {
  models::TrainingSpec spec = models::TrainingOf(plan, round, steps);
  if (!work.head_alone) {
    return spec;
  }
  spec.model = work.model.spec;
  const models::ParameterLayout head = models::LayoutOf(spec.model);
  std::vector<std::string> frozen;
  for (const auto& [name, own] :
       {std::pair(kHeadWeight, head.Views()[0].name), std::pair(kHeadBias, head.Views()[1].name)}) {
    if (std::any_of(spec.frozen.begin(), spec.frozen.end(),
                    [name = name](const std::string& p) { return MatchesPattern(p, name); })) {
      frozen.push_back(own);
    }
  }
  spec.frozen = std::move(frozen);
  return spec;
}

std::vector<models::NamedTensor> DeltaOf(const contracts::Plan& plan, const Work& work,
                                         std::span<const float> trained) {
  std::vector<float> delta(trained.begin(), trained.end());
  for (std::size_t i = 0; i < delta.size(); ++i) {
    delta[i] -= work.model.parameters[i];
  }
  if (!work.head_alone) {
    return models::TravellingTensors(plan, delta);
  }
  std::vector<models::NamedTensor> tensors;
  auto next = delta.begin();
  for (const contracts::TensorSpec& spec : plan.Tensors()) {
    const auto end = next + static_cast<std::ptrdiff_t>(spec.Size());
    tensors.push_back({.name = spec.name, .shape = spec.shape, .values = {next, end}});
    next = end;
  }
  return tensors;
}

}  // namespace domicile::site_agent

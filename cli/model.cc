// `domicile model export`: a trained model in another program's format.
#include <algorithm>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "cli/command.h"
#include "cli/plan_words.h"
#include "contracts/normalisation.h"
#include "models/export/npz.h"
#include "models/export/onnx.h"
#include "models/plans/plan_model.h"
#include "models/safetensors.h"

namespace domicile::cli {

namespace {

constexpr std::uint64_t kLargestModel = std::uint64_t{8} << 30U;

struct ExportOptions {
  std::string model;
  std::string plan;
  std::string output;
  std::vector<std::string> pretrained;
  std::string statistics;
};

StatusOr<std::vector<models::NamedTensor>> ReadTensors(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string file, ReadFile(path, kLargestModel));
  StatusOr<std::vector<models::NamedTensor>> tensors = models::ParseSafetensors(AsBytes(file));
  return tensors.ok() ? std::move(tensors) : Annotate(tensors.status(), "`" + path + "`");
}

// Fills in the running statistics of norms by batches, which no model has that travelled.
Status ReadStatistics(const std::string& path, const models::ModelSpec& spec,
                      std::span<float> parameters) {
  ASSIGN_OR_RETURN(const std::vector<models::NamedTensor> tensors, ReadTensors(path));
  const models::ParameterLayout layout = models::LayoutOf(spec);
  for (const models::ParameterView& view : layout.Views()) {
    const bool is_variance = view.name.ends_with(".running_var");
    if (!is_variance && !view.name.ends_with(".running_mean")) {
      continue;
    }
    const models::NamedTensor* const tensor = models::FindTensor(tensors, view.name);
    const bool fits = tensor != nullptr && tensor->shape == view.shape &&
                      tensor->values.size() == view.size && models::CheckFinite({tensor, 1}).ok();
    if (!fits || (is_variance && std::any_of(tensor->values.begin(), tensor->values.end(),
                                             [](float value) { return value < 0; }))) {
      return Error(StatusCode::kInvalidArgument,
                   "`" + path + "` must have `" + view.name + "`, " + std::to_string(view.size) +
                       " finite numbers of type F32, none of a variance below 0");
    }
    std::copy(tensor->values.begin(), tensor->values.end(),
              parameters.begin() + static_cast<std::ptrdiff_t>(view.offset));
  }
  return OkStatus();
}

// The constants around the network: those of the plan, and those that the model brings.
models::OnnxOptions AroundNetwork(const contracts::Plan& plan,
                                  const std::vector<models::NamedTensor>& tensors) {
  models::OnnxOptions options;
  options.name = plan.name;
  if (plan.schema.image) {
    options.mean.assign(plan.schema.image->mean.begin(), plan.schema.image->mean.end());
    options.deviation.assign(plan.schema.image->deviation.begin(),
                             plan.schema.image->deviation.end());
  }
  const models::NamedTensor* const mean = models::FindTensor(tensors, contracts::kMeanTensor);
  const models::NamedTensor* const deviation =
      models::FindTensor(tensors, contracts::kDeviationTensor);
  if (mean != nullptr && deviation != nullptr) {
    options.mean = mean->values;
    options.deviation = deviation->values;
  }
  if (plan.schema.label.number) {
    options.output_scale = static_cast<float>(plan.schema.label.number->scale);
    options.output_offset = static_cast<float>(plan.schema.label.number->offset);
  }
  return options;
}

StatusOr<Bytes> ToOnnx(const ExportOptions& options,
                       const std::vector<models::NamedTensor>& tensors) {
  if (options.plan.empty()) {
    return Error(StatusCode::kInvalidArgument,
                 "`--plan` is needed for .onnx: only the plan, or its job file, says what the "
                 "tensors are");
  }
  ASSIGN_OR_RETURN(const contracts::Plan plan, ReadPlan(options.plan));
  if (plan.model.kind == contracts::ModelKind::kRaw) {
    return Error(StatusCode::kInvalidArgument,
                 "only its own trainer knows what a raw model's tensors mean; export it as .npz");
  }
  ASSIGN_OR_RETURN(const models::PretrainedModels pretrained,
                   models::PretrainedModels::Read(options.pretrained));
  StatusOr<std::vector<float>> parameters = models::FirstParameters(plan, pretrained);
  if (parameters.status().code() == StatusCode::kNotFound) {
    return Error(StatusCode::kInvalidArgument,
                 "the graph holds the whole model; give `--pretrained`: " +
                     std::string(Message(parameters.status())));
  }
  RETURN_IF_ERROR(parameters.status());
  if (const Status read = models::ReadTravelling(plan, tensors, *parameters); !read.ok()) {
    return Annotate(read, "`" + options.model + "` is no model of `" + options.plan + "`");
  }
  const models::ModelSpec spec = models::SpecOf(plan);
  models::OnnxOptions around = AroundNetwork(plan, tensors);
  if (!options.statistics.empty()) {
    RETURN_IF_ERROR(ReadStatistics(options.statistics, spec, *parameters));
    around.has_statistics = true;
  }
  return models::PrintOnnx(spec, *parameters, around);
}

StatusOr<Bytes> Convert(const ExportOptions& options,
                        const std::vector<models::NamedTensor>& tensors) {
  if (options.output.ends_with(".npz")) {
    return models::PrintNpz(tensors);
  }
  if (options.output.ends_with(".onnx")) {
    return ToOnnx(options, tensors);
  }
  return Error(StatusCode::kInvalidArgument,
               "`" + options.output + "` must end in .npz or .onnx, which says the format");
}

StatusOr<Exit> Export(const ExportOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const std::vector<models::NamedTensor> tensors, ReadTensors(options.model));
  ASSIGN_OR_RETURN(const Bytes bytes, Convert(options, tensors));
  if (FileExists(options.output)) {
    return Error(StatusCode::kAlreadyExists,
                 "`" + options.output + "` exists; remove it, or name another file");
  }
  RETURN_IF_ERROR(WriteFileDurably(options.output, bytes, 0644));
  context.err << "domicile: wrote `" << options.output << "`, " << tensors.size() << " tensors, "
              << bytes.size() << " bytes\n";
  return Exit::kDone;
}

}  // namespace

void AddModelExport(CLI::App& program, Context& context) {
  CLI::App* const group = AddGroup(program, "model", "Trained models as files");
  CLI::App* const command =
      AddCommand(*group, "export", "Write a model for NumPy (.npz) or as a graph (.onnx)",
                 "domicile model export model.safetensors --plan job.toml -o model.onnx");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("FILE", options->model, "model, as `domicile job model` brings it")
      ->required();
  command->add_option("--plan", options->plan, "its plan or job file; needed for .onnx");
  command->add_option("--pretrained", options->pretrained,
                      "model files that plans start from; the plan's is found by its digest");
  command->add_option("--statistics", options->statistics,
                      "running statistics of norms by batches, a .safetensors of your own data");
  command->add_option("-o,--output", options->output, "file to write, .npz or .onnx")->required();
  OnRun(*command, context, [options, &context] { return Export(*options, context); });
}

}  // namespace domicile::cli

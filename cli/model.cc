// `domicile model export`: a trained model in another program's format.
#include <memory>
#include <ostream>
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
};

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
  if (plan.model.kind == contracts::ModelKind::kEncoder) {
    return Error(
        StatusCode::kInvalidArgument,
        "encoders are not exported to ONNX: their .safetensors has BERT's own names, which "
        "other programs load");
  }
  ASSIGN_OR_RETURN(std::vector<float> parameters, models::FirstParameters(plan, {}));
  if (const Status read = models::ReadTravelling(plan, tensors, parameters); !read.ok()) {
    return Annotate(read, "`" + options.model + "` is no model of `" + options.plan + "`");
  }
  return models::PrintOnnx(models::SpecOf(plan), parameters, AroundNetwork(plan, tensors));
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
  ASSIGN_OR_RETURN(const std::string file, ReadFile(options.model, kLargestModel));
  StatusOr<std::vector<models::NamedTensor>> tensors = models::ParseSafetensors(AsBytes(file));
  if (!tensors.ok()) {
    return Annotate(tensors.status(), "`" + options.model + "`");
  }
  ASSIGN_OR_RETURN(const Bytes bytes, Convert(options, *tensors));
  if (FileExists(options.output)) {
    return Error(StatusCode::kAlreadyExists,
                 "`" + options.output + "` exists; remove it, or name another file");
  }
  RETURN_IF_ERROR(WriteFileDurably(options.output, bytes, 0644));
  context.err << "domicile: wrote `" << options.output << "`, " << tensors->size() << " tensors, "
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
  command->add_option("-o,--output", options->output, "file to write, .npz or .onnx")->required();
  OnRun(*command, context, [options, &context] { return Export(*options, context); });
}

}  // namespace domicile::cli

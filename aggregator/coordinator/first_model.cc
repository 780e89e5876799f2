#include "aggregator/coordinator/first_model.h"

#include <utility>
#include <vector>

#include "contracts/normalisation.h"
#include "models/initial.h"
#include "models/network.h"
#include "models/safetensors.h"

namespace domicile::aggregator {

StatusOr<Bytes> FirstModel(const contracts::Plan& plan) {
  std::vector<models::NamedTensor> tensors;
  if (plan.model.kind == contracts::ModelKind::kMlp) {
    models::NetworkSpec spec;
    spec.num_inputs = plan.NumInputs();
    spec.hidden.assign(plan.model.hidden.begin(), plan.model.hidden.end());
    spec.activation = static_cast<models::Activation>(plan.model.activation);
    spec.num_outputs = plan.NumOutputs();
    RETURN_IF_ERROR(models::CheckSpec(spec));
    tensors = models::ToTensors(spec, models::InitialParameters(spec, plan.model.seed));
  } else {
    for (const contracts::TensorSpec& spec : plan.Tensors()) {
      models::NamedTensor& tensor = tensors.emplace_back();
      tensor.name = spec.name;
      tensor.shape = spec.shape;
      tensor.values.assign(spec.Size(), 0.0F);
    }
  }
  if (plan.normalisation.enabled) {
    for (const auto& [name, value] :
         {std::pair(contracts::kMeanTensor, 0.0F), {contracts::kDeviationTensor, 1.0F}}) {
      models::NamedTensor& tensor = tensors.emplace_back();
      tensor.name = name;
      tensor.shape = {plan.NumInputs()};
      tensor.values.assign(plan.NumInputs(), value);
    }
  }
  return models::PrintSafetensors(tensors);
}

}  // namespace domicile::aggregator

#include "aggregator/coordinator/first_model.h"

#include <utility>
#include <vector>

#include "contracts/normalisation.h"
#include "models/plans/plan_model.h"
#include "models/safetensors.h"

namespace domicile::aggregator {

StatusOr<Bytes> FirstModel(const contracts::Plan& plan,
                           const models::PretrainedModels& pretrained) {
  std::vector<models::NamedTensor> tensors;
  if (plan.model.kind == contracts::ModelKind::kRaw) {
    for (const contracts::TensorSpec& spec : plan.Tensors()) {
      models::NamedTensor& tensor = tensors.emplace_back();
      tensor.name = spec.name;
      tensor.shape = spec.shape;
      tensor.values.assign(spec.Size(), 0.0F);
    }
  } else {
    // Without the file where nothing of it travels.
    contracts::Plan own = plan;
    if (!models::TravelsPretrained(plan)) {
      own.model.encoder.pretrained.reset();
    }
    ASSIGN_OR_RETURN(const std::vector<float> first, models::FirstParameters(own, pretrained));
    tensors = models::TravellingTensors(plan, first);
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

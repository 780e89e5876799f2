// A plan's model in the words of models/.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "contracts/plan.h"
#include "models/model.h"
#include "models/plans/pretrained.h"
#include "models/safetensors.h"
#include "models/strategy/strategy.h"

namespace domicile::models {

// Of any kind but kRaw.
ModelSpec SpecOf(const contracts::Plan& plan);

// How the steps of a round are made. `steps` are those of one round at this site.
TrainingSpec TrainingOf(const contracts::Plan& plan, RoundNumber round, std::uint64_t steps);

// Whether values of the pretrained file travel, so that whoever makes the first model needs it.
bool TravelsPretrained(const contracts::Plan& plan);

// Every parameter as it is before the first round: from the plan's seed, and over that from the
// pretrained file, which must be here if the plan names one. Errors: kNotFound: it is not;
// kInvalidArgument: it is not a file of this model.
StatusOr<std::vector<float>> FirstParameters(const contracts::Plan& plan,
                                             const PretrainedModels& pretrained);

// The tensors of plan.Tensors() in their order: those that travel.
std::vector<NamedTensor> TravellingTensors(const contracts::Plan& plan,
                                           std::span<const float> parameters);

// Writes the tensors that travel over `parameters`. Errors: kInvalidArgument, a tensor missing, of
// another shape or not F32; others are ignored.
Status ReadTravelling(const contracts::Plan& plan, std::span<const NamedTensor> tensors,
                      std::span<float> parameters);

}  // namespace domicile::models

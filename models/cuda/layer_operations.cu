#include "models/cuda/cuda_machine.h"
#include "models/cuda/layer_operations.h"
#include "models/cuda/operations.h"

namespace domicile::models::cuda {

void FillLayerOperations(Plugin& plugin) { FillLayerEntries<CudaMachine>(plugin); }

}  // namespace domicile::models::cuda

#include "models/cuda/cuda_machine.h"
#include "models/cuda/operations.h"
#include "models/cuda/vector_operations.h"

namespace domicile::models::cuda {

void FillVectorOperations(Plugin& plugin) { FillVectorEntries<CudaMachine>(plugin); }

}  // namespace domicile::models::cuda

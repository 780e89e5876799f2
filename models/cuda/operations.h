// The operations of the plug-in, compiled for GPUs in files of their own.
#pragma once

#include "models/cuda/plugin.h"

namespace domicile::models::cuda {

void FillVectorOperations(Plugin& plugin);
void FillLayerOperations(Plugin& plugin);

}  // namespace domicile::models::cuda

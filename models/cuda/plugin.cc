// The one function that libdomicile_cuda.so exports.
#include "models/cuda/plugin.h"

#include "models/cuda/cuda_machine.h"
#include "models/cuda/nccl_group.h"
#include "models/cuda/operations.h"
#include "models/cuda/table.h"

extern "C" __attribute__((visibility("default"))) const domicile::models::cuda::Plugin*
domicile_cuda_plugin() {
  static const domicile::models::cuda::Plugin plugin = [] {
    auto table =
        domicile::models::cuda::TableWithoutOperations<domicile::models::cuda::CudaMachine>();
    domicile::models::cuda::FillVectorOperations(table);
    domicile::models::cuda::FillLayerOperations(table);
    return table;
  }();
  return &plugin;
}

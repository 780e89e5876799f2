// For a test: a plug-in of another version of the table.
#include "models/cuda/plugin.h"

extern "C" __attribute__((visibility("default"))) const domicile::models::cuda::Plugin*
domicile_cuda_plugin() {
  static const domicile::models::cuda::Plugin plugin = [] {
    domicile::models::cuda::Plugin table{};
    table.abi = domicile::models::cuda::kPluginAbi + 1;
    table.size = sizeof(table);
    return table;
  }();
  return &plugin;
}

// GPUs, by a plug-in library that is loaded only where it is asked for: so one package serves hosts
// with and without them, and nothing else links CUDA. docs/gpu.md says what a host needs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "models/cuda/plugin.h"
#include "models/layers/device.h"

namespace domicile::models {

struct CudaSpec {
  std::string library;  // path of the plug-in; empty: looked for in CudaPluginPlaces()
  int ordinal = 0;      // of the GPU, as the driver numbers them
  cuda::Products products = cuda::Products::kFloat32;
};

// Beside the program, then in ../lib/domicile from there.
std::vector<std::string> CudaPluginPlaces();

// Loads it once for the life of the program. Errors: kFailedPrecondition: no such library, one of
// the libraries it needs is missing, or it belongs to another version; the message says which and
// what to do. Thread-safe.
StatusOr<const cuda::Plugin*> LoadCudaPlugin(const std::string& library);

// Errors: as LoadCudaPlugin; kFailedPrecondition: no driver, or one that is too old.
StatusOr<std::size_t> NumCudaDevices(const std::string& library);

// Errors: as NumCudaDevices; kFailedPrecondition: no GPU of that number.
StatusOr<std::unique_ptr<Device>> MakeCudaDevice(const CudaSpec& spec);

// A factory for strategies (StrategySpec::make_device): replica r gets GPU spec.ordinal + r.
std::function<StatusOr<std::unique_ptr<Device>>(std::size_t replica)> CudaDevices(CudaSpec spec);

}  // namespace domicile::models

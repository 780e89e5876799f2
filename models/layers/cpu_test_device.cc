// The layers' tests on the CPU.
#include "models/cpu/cpu_device.h"
#include "models/layers/testing.h"

namespace domicile::models {

std::unique_ptr<Device> MakeTestDevice() { return MakeCpuDevice(2); }

}  // namespace domicile::models

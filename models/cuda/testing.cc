#include "models/cuda/testing.h"

#include <doctest/doctest.h>

#include "models/cuda_plugin.h"
#include "models/layers/testing.h"

namespace domicile::models {

std::string TestPlugin() { return DOMICILE_BINARY_DIR "/lib/" DOMICILE_TEST_PLUGIN; }

std::unique_ptr<Device> MakeTestDevice() {
  auto device = MakeCudaDevice({.library = TestPlugin()});
  REQUIRE_MESSAGE(device.ok(), device.status().ToString());
  return *std::move(device);
}

}  // namespace domicile::models

// The tests of a device, on a GPU.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>

#include <doctest/doctest.h>

#include "models/cuda/testing.h"
#include "models/cuda_plugin.h"

int main(int argc, char** argv) {
  const auto devices = domicile::models::NumCudaDevices(domicile::models::TestPlugin());
  if (!devices.ok()) {
    std::printf("skipped: no device: %s\n", devices.status().ToString().c_str());
    return 0;
  }
  return doctest::Context(argc, argv).run();
}

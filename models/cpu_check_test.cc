#include "models/cpu_check.h"

#include <doctest/doctest.h>

namespace domicile::models {
namespace {

TEST_CASE("CheckCpu: says yes on the machine whose kernels these tests then run") {
  // The other answer cannot be had here: it needs a processor that lacks what the build wants.
  CHECK(CheckCpu().ok());
  CHECK(KernelIsa().starts_with("x86-64"));
}

}  // namespace
}  // namespace domicile::models

#include "models/tensor.h"

#include <cstdint>
#include <utility>

#include <doctest/doctest.h>

namespace domicile::models {
namespace {

TEST_CASE("Tensor: starts at zero, aligned for vector loads, and copies deeply") {
  Tensor a({3, 5});
  CHECK(a.NumElements() == 15);
  CHECK(reinterpret_cast<std::uintptr_t>(a.Values().data()) % 64 == 0);
  for (const float value : a.Values()) {
    CHECK(value == 0.0F);
  }

  Tensor b = a;
  b.Values()[7] = 2.5F;

  CHECK(a.Values()[7] == 0.0F);
  CHECK(std::as_const(b).AsMatrix().Rows(1, 1).data[2] == 2.5F);
}

TEST_CASE("Tensor: a scalar has one element and an empty tensor none") {
  CHECK(Tensor(std::vector<std::size_t>{}).NumElements() == 1);
  CHECK(Tensor().NumElements() == 0);
}

TEST_CASE("Tensor: ResizeMatrix keeps the storage where it is large enough") {
  Tensor a;
  a.ResizeMatrix(4, 6);
  const float* const storage = a.Values().data();

  a.ResizeMatrix(2, 3);

  CHECK(a.Values().data() == storage);
  CHECK(a.NumElements() == 6);
  CHECK(a.AsMatrix().columns == 3);
}

}  // namespace
}  // namespace domicile::models

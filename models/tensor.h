// A float32 tensor, in host memory unless another is named, and views of matrices. Row-major,
// contiguous.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "models/memory.h"

namespace domicile::models {

// Views of row-major matrices: element (r, c) is data[r * columns + c]. They own nothing.
struct ConstMatrix {
  const float* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;

  // Rows [first, first + count); they must exist.
  ConstMatrix Rows(std::size_t first, std::size_t count) const;
};

struct Matrix {
  float* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;

  operator ConstMatrix() const {  // NOLINT(google-explicit-constructor): adds const only
    return {data, rows, columns};
  }
  Matrix Rows(std::size_t first, std::size_t count) const;
};

// Owns its storage, aligned to 64 bytes. A copy is deep, in the same memory, which must outlive
// both. Rank 0 is a scalar: one element. One thread at a time.
class Tensor {
 public:
  Tensor() : Tensor(std::vector<std::size_t>{0}) {}
  // Zeros. The product of the shape must fit in memory: it is the caller's to check.
  explicit Tensor(std::vector<std::size_t> shape, Memory& memory = HostMemory());

  Tensor(const Tensor& other);
  Tensor& operator=(const Tensor& other);
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;
  ~Tensor() = default;

  const std::vector<std::size_t>& shape() const { return shape_; }
  std::size_t NumElements() const { return values_.size(); }
  // To be read and written by the program where the memory is the host's.
  std::span<float> Values() { return values_.Values(); }
  std::span<const float> Values() const { return values_.Values(); }
  Memory& memory() const { return values_.memory(); }

  // A view of a rank-2 tensor.
  Matrix AsMatrix();
  ConstMatrix AsMatrix() const;

  // Makes room for `rows` rows of `columns` in `memory` (without it: where the tensor lies),
  // keeping the storage when it is there and large enough; what the elements hold afterwards is
  // unspecified.
  void ResizeMatrix(std::size_t rows, std::size_t columns, Memory& memory);
  void ResizeMatrix(std::size_t rows, std::size_t columns) {
    ResizeMatrix(rows, columns, memory());
  }

 private:
  std::vector<std::size_t> shape_;
  Buffer<float> values_;
};

}  // namespace domicile::models

#include "models/tensor.h"

#include <functional>
#include <numeric>

namespace domicile::models {
namespace {

std::size_t Product(const std::vector<std::size_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

}  // namespace

ConstMatrix ConstMatrix::Rows(std::size_t first, std::size_t count) const {
  DOMICILE_CHECK(first <= rows && count <= rows - first);
  return {data + first * columns, count, columns};
}

Matrix Matrix::Rows(std::size_t first, std::size_t count) const {
  DOMICILE_CHECK(first <= rows && count <= rows - first);
  return {data + first * columns, count, columns};
}

Tensor::Tensor(std::vector<std::size_t> shape, Memory& memory)
    : shape_(std::move(shape)), values_(Product(shape_), memory) {}

Tensor::Tensor(const Tensor& other) : shape_(other.shape_) {
  values_.Resize(other.NumElements(), other.memory());
  Copy(memory(), other.Values(), Values());
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) {
    *this = Tensor(other);
  }
  return *this;
}

Matrix Tensor::AsMatrix() {
  DOMICILE_CHECK(shape_.size() == 2);
  return {values_.data(), shape_[0], shape_[1]};
}

ConstMatrix Tensor::AsMatrix() const {
  DOMICILE_CHECK(shape_.size() == 2);
  return {values_.data(), shape_[0], shape_[1]};
}

void Tensor::ResizeMatrix(std::size_t rows, std::size_t columns, Memory& memory) {
  values_.Resize(rows * columns, memory);
  shape_ = {rows, columns};
}

}  // namespace domicile::models

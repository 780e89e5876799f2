#include "models/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

namespace domicile::models {
namespace {

constexpr std::size_t kAlignment = 64;

float* Allocate(std::size_t num_elements) {
  const std::size_t bytes =
      (num_elements * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
  void* const memory = std::aligned_alloc(kAlignment, std::max(bytes, kAlignment));
  DOMICILE_CHECK(memory != nullptr);
  return static_cast<float*>(memory);
}

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

void Tensor::Free::operator()(float* values) const { std::free(values); }

Tensor::Tensor(std::vector<std::size_t> shape)
    : shape_(std::move(shape)),
      num_elements_(Product(shape_)),
      capacity_(num_elements_),
      values_(Allocate(num_elements_)) {
  std::fill_n(values_.get(), num_elements_, 0.0F);
}

Tensor::Tensor(const Tensor& other)
    : shape_(other.shape_),
      num_elements_(other.num_elements_),
      capacity_(other.num_elements_),
      values_(Allocate(other.num_elements_)) {
  std::copy_n(other.values_.get(), num_elements_, values_.get());
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) {
    *this = Tensor(other);
  }
  return *this;
}

Matrix Tensor::AsMatrix() {
  DOMICILE_CHECK(shape_.size() == 2);
  return {values_.get(), shape_[0], shape_[1]};
}

ConstMatrix Tensor::AsMatrix() const {
  DOMICILE_CHECK(shape_.size() == 2);
  return {values_.get(), shape_[0], shape_[1]};
}

void Tensor::ResizeMatrix(std::size_t rows, std::size_t columns) {
  const std::size_t wanted = rows * columns;
  if (wanted > capacity_ || values_ == nullptr) {
    values_.reset(Allocate(wanted));
    capacity_ = wanted;
  }
  num_elements_ = wanted;
  shape_ = {rows, columns};
}

}  // namespace domicile::models

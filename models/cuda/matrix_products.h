// Matrix products by cuBLASLt.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include <cublasLt.h>
#include <cuda_runtime.h>

#include "models/cuda/plugin.h"
#include "models/cuda/product.h"

namespace domicile::models::cuda {

// Which algorithm computes a product follows from its shape and the alignment of its operands
// alone, and none adds up in an order that may vary, so the same GPU gives the same bits. One
// thread at a time; the GPU must be the thread's own in every call.
class MatrixProducts {
 public:
  explicit MatrixProducts(Products products);
  ~MatrixProducts();
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;

  // Both give an empty string, or what went wrong.
  std::string Open();
  std::string Multiply(const Product& product, cudaStream_t stream);

 private:
  struct Plan;
  // What an algorithm is chosen by.
  using Key =
      std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t,
                 std::size_t, std::size_t, std::size_t, std::size_t, unsigned, unsigned>;

  std::string PlanFor(const Product& product, Plan*& plan);
  std::string Choose(const Product& product, Plan& plan) const;

  Products products_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace domicile::models::cuda

// The inner loops, on raw pointers: one piece of an operation, one thread. The kernel files are the
// only ones that are compiled for a newer processor than the rest, and activations.cc the only one
// that sees Eigen, so that no inline function compiled for it can be merged into the rest of a
// program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/layers/shapes.h"

namespace domicile::models::kernels {

// --- gemm.cc
// c[m, n] = alpha * op(a)[m, k] op(b)[k, n], added to c if `accumulate`. lda, ldb, ldc: from one
// row to the next as stored; a transposed operand is stored as [k, m] or [n, k].
struct Product {
  std::size_t m = 0;
  std::size_t n = 0;
  std::size_t k = 0;
  const float* a = nullptr;
  std::size_t lda = 0;
  bool transpose_a = false;
  const float* b = nullptr;
  std::size_t ldb = 0;
  bool transpose_b = false;
  float* c = nullptr;
  std::size_t ldc = 0;
  bool accumulate = false;
  float alpha = 1;
};
// Each element is a sum over k in one order, wherever c is cut into several products.
void Gemm(const Product& product);
// The product that serves on this processor: avx512, avx2 or narrow.
const char* GemmName();

// --- activations.cc
// y[rows, columns] += bias (null: nothing), then the activation (none of the GELUs). Rows are
// `stride` apart.
void BiasActivate(const float* bias, Activation activation, std::size_t rows, std::size_t columns,
                  float* y, std::size_t stride);
void Activate(Activation activation, const float* x, std::size_t size, float* y);
void ActivationGradient(Activation activation, const float* saved, std::size_t size, float* dy);
// Columns [first, first + count) of the sum over rows.
void SumRows(const float* x, std::size_t rows, std::size_t columns, std::size_t first,
             std::size_t count, float* sums);
// `first` is the index of x[0] in the mask.
void Dropout(std::uint64_t key, std::uint64_t first, float rate, const float* x, std::size_t size,
             float* y);
// x[size] = softmax of x; all zeros if every element is -infinity.
void SoftmaxRow(float* x, std::size_t size);

// --- convolution.cc: one image
// columns[patch, out_height * out_width]
void ImageToColumns(const ConvShape& shape, const float* x, float* columns);
// dx += the images of the columns
void ColumnsToImage(const ConvShape& shape, const float* columns, float* dx);
// y[filters, positions] += bias by filter, then the activation.
void BiasActivateImage(const ConvShape& shape, const float* bias, Activation activation, float* y);
// dbias[filters] += sums over positions
void AddImageBiasGradient(const ConvShape& shape, const float* dy, float* dbias);
void MaxPool(const PoolShape& shape, const float* x, float* y, std::uint32_t* chosen);
void MaxPoolGradient(const PoolShape& shape, const std::uint32_t* chosen, const float* dy,
                     float* dx);
void AveragePool(const PoolShape& shape, const float* x, float* y);
void AveragePoolGradient(const PoolShape& shape, const float* dy, float* dx);

// --- normalisation.cc
void GroupNormRow(const NormShape& shape, const float* x, const float* scale, const float* shift,
                  float* y, float* statistics);
// dscale and dshift: added to, or null. dx: may be null or dy.
void GroupNormGradientRow(const NormShape& shape, const float* x, const float* scale,
                          const float* statistics, const float* dy, float* dx, float* dscale,
                          float* dshift);
void ChannelSums(const float* x, float origin, const float* z, float centre, std::size_t rows,
                 std::size_t row_size, std::size_t positions, double* first, double* second);
void ChannelAffineRow(const float* x, const float* a, const float* z, const float* b,
                      const float* d, std::size_t channels, std::size_t positions, float* y);

// --- attention.cc: one head of one sequence; `stride` is from a token to the next
struct Head {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  std::size_t stride = 0;
  std::size_t length = 0;
  std::size_t width = 0;
  bool causal = false;
  const std::uint8_t* mask = nullptr;  // [length], or null
  std::uint64_t dropout_key = 0;
  std::uint64_t dropout_first = 0;
  float dropout_rate = 0;
};
// scratch[length * length] is used with dropout only.
void Attention(const Head& head, float* probabilities, float* scratch, float* y);
// scratch[2 * length * length]
void AttentionGradient(const Head& head, const float* probabilities, const float* dy,
                       float* scratch, float* dq, float* dk, float* dv);

// --- losses.cc
double BinaryCrossEntropy(const float* z, const std::uint32_t* labels, std::size_t rows,
                          float scale, float* dz);
double SoftmaxCrossEntropy(const float* z, const std::uint32_t* labels, std::size_t rows,
                           std::size_t classes, float scale, float* dz);
double SquaredError(const float* z, const float* targets, std::size_t rows, std::size_t outputs,
                    float scale, float* dz);

// --- vectors.cc
// A product with n = 1.
void MultiplyColumn(const Product& product);
void AddScaled(float a, const float* x, std::size_t size, float* y);
void Add(const float* a, const float* b, std::size_t size, float* y);
void Scale(float a, std::size_t size, float* x);
double SquaredNorm(const float* x, std::size_t size);
void Sgd(const SgdStep& step, const float* gradient, std::size_t size, float* buffer,
         float* parameters);
void Adam(const AdamStep& step, const float* gradient, std::size_t size, float* first,
          float* second, float* parameters);

}  // namespace domicile::models::kernels

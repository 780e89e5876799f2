// The inner loops, on raw pointers: one piece of an operation, one thread. kernels.cc is the only
// file that is compiled for DOMICILE_ISA and the only one that sees Eigen, so that no inline
// function compiled for a newer processor can be merged into the rest of a program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace domicile::models::kernels {

// y[rows, outs] = x[rows, ins] w[ins, outs] + bias; activation: the numbers of Activation.
void Dense(const float* x, const float* w, const float* bias, unsigned activation, std::size_t rows,
           std::size_t ins, std::size_t outs, float* y);
// dw rows [first, first + count) of x^T dy, where x is [rows, ins] and dy [rows, outs]
void DenseWeightGradient(const float* x, const float* dy, std::size_t rows, std::size_t ins,
                         std::size_t outs, std::size_t first, std::size_t count, float* dw);
void DenseBiasGradient(const float* dy, std::size_t rows, std::size_t outs, float* db);
void DenseInputGradient(const float* dy, const float* w, std::size_t rows, std::size_t ins,
                        std::size_t outs, float* dx);
void ActivationGradient(unsigned activation, const float* y, std::size_t size, float* dy);

double BinaryCrossEntropy(const float* z, const std::uint32_t* labels, std::size_t rows,
                          float scale, float* dz);
double SoftmaxCrossEntropy(const float* z, const std::uint32_t* labels, std::size_t rows,
                           std::size_t classes, float scale, float* dz);

void AddScaled(float a, const float* x, std::size_t size, float* y);
void Sgd(float rate, float momentum, const float* gradient, std::size_t size, float* buffer,
         float* parameters);
struct AdamConstants {
  float rate;
  float beta1;
  float beta2;
  float epsilon;
  float correction1;
  float correction2_root;
};
void Adam(const AdamConstants& constants, const float* gradient, std::size_t size, float* first,
          float* second, float* parameters);

// c[n, n] = a[n, n] b[n, n]
void Multiply(const float* a, const float* b, std::size_t n, float* c);

}  // namespace domicile::models::kernels

// What gemm.cc and the products for each instruction set share.
#pragma once

#include <cstddef>

#include "models/cpu/kernels.h"

namespace domicile::models::kernels {

// Measured as best of several for the shapes of a small encoder: docs/decisions/0014.
constexpr std::size_t kGemmDepth = 384;    // of k, in one block
constexpr std::size_t kGemmColumns = 768;  // of a packed block of b
constexpr std::size_t kGemmRows = 16;      // of a tile, at most

// Aligned to 64 bytes.
struct GemmScratch {
  float* a = nullptr;  // [kGemmRows * kGemmDepth]
  float* b = nullptr;  // [kGemmColumns * kGemmDepth]
};

// m, n and k are above 0.
void GemmNarrow(const Product& product, const GemmScratch& scratch);  // any processor
void GemmAvx2(const Product& product, const GemmScratch& scratch);    // x86-64-v3
void GemmAvx512(const Product& product, const GemmScratch& scratch);  // x86-64-v4

}  // namespace domicile::models::kernels

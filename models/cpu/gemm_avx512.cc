// The matrix product in vectors of 16 numbers. See internal/gemm_blocks.h.
#define DOMICILE_GEMM_WIDTH 16
#define DOMICILE_GEMM_ROWS 14
#include "models/cpu/internal/gemm_blocks.h"

namespace domicile::models::kernels {

void GemmAvx512(const Product& product, const GemmScratch& scratch) {
  MultiplyInBlocks(product, scratch);
}

}  // namespace domicile::models::kernels

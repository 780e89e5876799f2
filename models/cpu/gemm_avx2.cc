// The matrix product in vectors of 8 numbers. See internal/gemm_blocks.h.
#define DOMICILE_GEMM_WIDTH 8
#define DOMICILE_GEMM_ROWS 6
#include "models/cpu/internal/gemm_blocks.h"

namespace domicile::models::kernels {

void GemmAvx2(const Product& product, const GemmScratch& scratch) {
  MultiplyInBlocks(product, scratch);
}

}  // namespace domicile::models::kernels

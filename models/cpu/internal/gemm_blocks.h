// The matrix product for one width of vector. Each of the gemm_*.cc files includes it once,
// compiled for its instruction set; everything has internal linkage, and nothing from other headers
// is used, so that nothing compiled for a newer processor can be merged into the rest of a program.
//
// As Goto and van de Geijn (2008): a block of b is packed once into panels as wide as a tile; a
// panel of a is packed and stays in the first-level cache while all panels of b pass by; a tile of
// c stays in registers. INVARIANT: each element of c is a sum over k in one order, blocks of kDepth
// one after another, whatever the sizes and wherever c is cut: cutting rows or columns changes no
// bit.
#pragma once

#include <cstddef>

#include "models/cpu/internal/gemm.h"

namespace domicile::models::kernels {
namespace {

typedef float Vector __attribute__((vector_size(4 * DOMICILE_GEMM_WIDTH)));
typedef float LooseVector __attribute__((vector_size(4 * DOMICILE_GEMM_WIDTH), aligned(4)));

constexpr std::size_t kWidth = DOMICILE_GEMM_WIDTH;
constexpr std::size_t kMaxRows = DOMICILE_GEMM_ROWS;  // of a tile
constexpr std::size_t kColumns = 2 * kWidth;          // of a tile
constexpr std::size_t kDepth = kGemmDepth;
static_assert(kGemmColumns % kColumns == 0 && kMaxRows <= kGemmRows);

// c[R, columns] = alpha * (sum over k of a[k][R] b[k][V * kWidth]), added to c if `add`.
template <std::size_t R, std::size_t V>
void Tile(std::size_t depth, const float* a, const float* b, float alpha, bool add,
          std::size_t columns, float* c, std::size_t ldc) {
  Vector sums[R][V] = {};
  for (std::size_t k = 0; k < depth; ++k) {
    Vector line[V];
#pragma GCC unroll 2
    for (std::size_t v = 0; v < V; ++v) {
      line[v] = *reinterpret_cast<const Vector*>(b + v * kWidth);
    }
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (std::size_t v = 0; v < V; ++v) {
        sums[r][v] += a[r] * line[v];
      }
    }
    a += R;
    b += kColumns;
  }
  if (columns == V * kWidth) {
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (std::size_t v = 0; v < V; ++v) {
        LooseVector* const out = reinterpret_cast<LooseVector*>(c + r * ldc + v * kWidth);
        const Vector value = alpha * sums[r][v];
        *out = add ? *out + value : value;
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) {
    alignas(64) float row[V * kWidth];
#pragma GCC unroll 2
    for (std::size_t v = 0; v < V; ++v) {
      *reinterpret_cast<Vector*>(row + v * kWidth) = alpha * sums[r][v];
    }
    for (std::size_t i = 0; i < columns; ++i) {
      c[r * ldc + i] = add ? c[r * ldc + i] + row[i] : row[i];
    }
  }
}

using TileFunction = void (*)(std::size_t, const float*, const float*, float, bool, std::size_t,
                              float*, std::size_t);

struct Tiles {
  TileFunction narrow[kMaxRows + 1];  // one vector wide; by rows
  TileFunction wide[kMaxRows + 1];
};

template <std::size_t R>
constexpr void FillTiles(Tiles& tiles) {
  tiles.narrow[R] = &Tile<R, 1>;
  tiles.wide[R] = &Tile<R, 2>;
  if constexpr (R > 1) {
    FillTiles<R - 1>(tiles);
  }
}

constexpr Tiles MakeTiles() {
  Tiles tiles = {};
  FillTiles<kMaxRows>(tiles);
  return tiles;
}

constexpr Tiles kTiles = MakeTiles();

// out[k][rows] from rows [first, first + rows) of op(a), columns [k0, k0 + depth).
inline void PackA(const Product& p, std::size_t first, std::size_t rows, std::size_t k0,
                  std::size_t depth, float* out) {
  if (p.transpose_a) {
    for (std::size_t k = 0; k < depth; ++k) {
      const float* const from = p.a + (k0 + k) * p.lda + first;
      for (std::size_t r = 0; r < rows; ++r) {
        out[k * rows + r] = from[r];
      }
    }
    return;
  }
  for (std::size_t r = 0; r < rows; ++r) {
    const float* const from = p.a + (first + r) * p.lda + k0;
    for (std::size_t k = 0; k < depth; ++k) {
      out[k * rows + r] = from[k];
    }
  }
}

// Panels of kColumns columns: out[panel][k][kColumns], the last one filled up with zeros.
inline void PackB(const Product& p, std::size_t first, std::size_t columns, std::size_t k0,
                  std::size_t depth, float* out) {
  for (std::size_t j = 0; j < columns; j += kColumns) {
    float* const panel = out + j * depth;
    const std::size_t width = columns - j < kColumns ? columns - j : kColumns;
    if (width < kColumns) {
      for (std::size_t i = 0; i < depth * kColumns; ++i) {
        panel[i] = 0;
      }
    }
    if (!p.transpose_b && width == kColumns) {
      for (std::size_t k = 0; k < depth; ++k) {
        const float* const from = p.b + (k0 + k) * p.ldb + first + j;
        for (std::size_t i = 0; i < kColumns; ++i) {
          panel[k * kColumns + i] = from[i];
        }
      }
    } else if (!p.transpose_b) {
      for (std::size_t k = 0; k < depth; ++k) {
        for (std::size_t i = 0; i < width; ++i) {
          panel[k * kColumns + i] = p.b[(k0 + k) * p.ldb + first + j + i];
        }
      }
    } else {
      for (std::size_t i = 0; i < width; ++i) {
        const float* const from = p.b + (first + j + i) * p.ldb + k0;
        for (std::size_t k = 0; k < depth; ++k) {
          panel[k * kColumns + i] = from[k];
        }
      }
    }
  }
}

// One block: rows of c in nearly equal tiles, all columns of the packed block of b.
inline void MultiplyBlock(const Product& p, std::size_t j0, std::size_t columns, std::size_t k0,
                          std::size_t depth, const GemmScratch& scratch) {
  const bool add = p.accumulate || k0 > 0;
  const std::size_t panels = (p.m + kMaxRows - 1) / kMaxRows;
  std::size_t first = 0;
  for (std::size_t panel = 0; panel < panels; ++panel) {
    const std::size_t rows = p.m / panels + (panel < p.m % panels ? 1 : 0);
    PackA(p, first, rows, k0, depth, scratch.a);
    for (std::size_t j = 0; j < columns; j += kColumns) {
      const std::size_t width = columns - j < kColumns ? columns - j : kColumns;
      const TileFunction tile = width <= kWidth ? kTiles.narrow[rows] : kTiles.wide[rows];
      tile(depth, scratch.a, scratch.b + j * depth, p.alpha, add, width,
           p.c + first * p.ldc + j0 + j, p.ldc);
    }
    first += rows;
  }
}

inline void MultiplyInBlocks(const Product& p, const GemmScratch& scratch) {
  for (std::size_t j = 0; j < p.n; j += kGemmColumns) {
    const std::size_t columns = p.n - j < kGemmColumns ? p.n - j : kGemmColumns;
    for (std::size_t k = 0; k < p.k; k += kDepth) {
      const std::size_t depth = p.k - k < kDepth ? p.k - k : kDepth;
      PackB(p, j, columns, k, depth, scratch.b);
      MultiplyBlock(p, j, columns, k, depth, scratch);
    }
  }
}

}  // namespace
}  // namespace domicile::models::kernels

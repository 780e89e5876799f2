// A matrix product as the operations say it, row by row, and as cuBLAS wants it, column by column.
#pragma once

#include <cstddef>

namespace domicile::models::cuda {

// c[m, n] = alpha * op(a)[m, k] op(b)[k, n] + beta * c, then bias[n] and ReLU if asked, for each of
// `batch` operands at fixed distances. A transposed operand is stored as [k, m] or [n, k]; lda,
// ldb, ldc lead from a stored row to the next.
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
  float alpha = 1;
  float beta = 0;
  std::size_t batch = 1;
  std::size_t stride_a = 0;
  std::size_t stride_b = 0;
  std::size_t stride_c = 0;
  const float* bias = nullptr;  // beta must be 0
  bool relu = false;            // with a bias only
};

// The same with columns for rows: D[rows, columns] = alpha * op(first)[rows, inner]
// op(second)[inner, columns] + beta * D, where ld* leads from a stored column to the next, and the
// bias has one number for each row.
struct ColumnProduct {
  std::size_t rows;
  std::size_t columns;
  std::size_t inner;
  const float* first;
  std::size_t ld_first;
  bool transpose_first;
  std::size_t stride_first;
  const float* second;
  std::size_t ld_second;
  bool transpose_second;
  std::size_t stride_second;
};

// A row-major matrix is its transpose column-major, and c^T = op(b)^T op(a)^T.
inline ColumnProduct ByColumns(const Product& p) {
  return {.rows = p.n,
          .columns = p.m,
          .inner = p.k,
          .first = p.b,
          .ld_first = p.ldb,
          .transpose_first = p.transpose_b,
          .stride_first = p.stride_b,
          .second = p.a,
          .ld_second = p.lda,
          .transpose_second = p.transpose_a,
          .stride_second = p.stride_a};
}

}  // namespace domicile::models::cuda

#include "models/cpu/internal/gemm.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"
#include "models/tensor.h"

namespace domicile::models::kernels {
namespace {

struct Kernel {
  const char* name;
  void (*run)(const Product&, const GemmScratch&);
};

// Those this processor can run; Gemm() is the one of them it chooses.
std::vector<Kernel> Kernels() {
  std::vector<Kernel> kernels = {{"chosen", [](const Product& p, const GemmScratch&) { Gemm(p); }},
                                 {"narrow", &GemmNarrow}};
#if defined(__x86_64__)
  const std::string chosen = GemmName();
  if (chosen != "narrow") {
    kernels.push_back({"avx2", &GemmAvx2});
  }
  if (chosen == "avx512") {
    kernels.push_back({"avx512", &GemmAvx512});
  }
#endif
  return kernels;
}

std::vector<float> Numbers(SeededRandom& random, std::size_t size) {
  std::vector<float> values(size);
  for (float& value : values) {
    value = static_cast<float>(static_cast<double>(random.Below(2001)) / 1000.0 - 1.0);
  }
  return values;
}

// A product with its operands, and the result of a plain loop in float64.
struct Case {
  Case(std::size_t m, std::size_t n, std::size_t k, bool transpose_a, bool transpose_b,
       bool accumulate) {
    SeededRandom random(m * 7919 + n * 31 + k);
    // Rows are longer than what is used of them.
    const std::size_t lda = (transpose_a ? m : k) + 3;
    const std::size_t ldb = (transpose_b ? k : n) + 5;
    a = Numbers(random, lda * (transpose_a ? k : m));
    b = Numbers(random, ldb * (transpose_b ? n : k));
    before = Numbers(random, m * (n + 2));
    product = {.m = m,
               .n = n,
               .k = k,
               .a = a.data(),
               .lda = lda,
               .transpose_a = transpose_a,
               .b = b.data(),
               .ldb = ldb,
               .transpose_b = transpose_b,
               .c = nullptr,
               .ldc = n + 2,
               .accumulate = accumulate,
               .alpha = 0.5F};
  }

  double Want(std::size_t row, std::size_t column) const {
    const Product& p = product;
    double sum = 0;
    for (std::size_t i = 0; i < p.k; ++i) {
      sum += static_cast<double>(p.transpose_a ? a[i * p.lda + row] : a[row * p.lda + i]) *
             static_cast<double>(p.transpose_b ? b[column * p.ldb + i] : b[i * p.ldb + column]);
    }
    const double old = static_cast<double>(before[row * p.ldc + column]);
    return (p.accumulate ? old : 0) + 0.5 * sum;
  }

  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> before;
  Product product;
};

std::vector<float> Run(const Kernel& kernel, const Case& c) {
  Tensor packed_a({kGemmRows * kGemmDepth});
  Tensor packed_b({kGemmColumns * kGemmDepth});
  std::vector<float> result = c.before;
  Product product = c.product;
  product.c = result.data();
  kernel.run(product, {.a = packed_a.Values().data(), .b = packed_b.Values().data()});
  return result;
}

TEST_CASE("Gemm: every kernel agrees with a plain loop for sizes round its tiles and blocks") {
  const std::size_t sizes[][3] = {{1, 2, 1},     {5, 3, 7},     {6, 16, 8},   {14, 32, 20},
                                  {15, 33, 9},   {29, 47, 385}, {3, 770, 5},  {64, 10, 384},
                                  {13, 17, 400}, {2, 769, 390}, {100, 1, 50}, {33, 31, 1}};
  for (const Kernel& kernel : Kernels()) {
    for (const auto& [m, n, k] : sizes) {
      if (n == 1 && std::string(kernel.name) != "chosen") {
        continue;  // one column is MultiplyColumn's
      }
      for (unsigned flags = 0; flags < 8; ++flags) {
        CAPTURE(std::string(kernel.name));
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        CAPTURE(flags);
        const Case c(m, n, k, (flags & 1U) != 0, (flags & 2U) != 0, (flags & 4U) != 0);

        const std::vector<float> result = Run(kernel, c);

        double worst = 0;
        bool rest_is_kept = true;
        for (std::size_t row = 0; row < m; ++row) {
          for (std::size_t column = 0; column < n + 2; ++column) {
            const std::size_t at = row * (n + 2) + column;
            if (column < n) {
              worst =
                  std::max(worst, std::fabs(static_cast<double>(result[at]) - c.Want(row, column)));
            } else {
              rest_is_kept = rest_is_kept && result[at] == c.before[at];
            }
          }
        }
        CHECK(worst < 2e-5);
        CHECK(rest_is_kept);
      }
    }
  }
}

TEST_CASE("Gemm: wherever rows and columns are cut, every element has the same bits") {
  for (const Kernel& kernel : Kernels()) {
    CAPTURE(std::string(kernel.name));
    const Case whole(61, 83, 500, false, true, false);
    const std::vector<float> want = Run(kernel, whole);
    for (const std::size_t rows : {7U, 14U, 40U}) {
      for (const std::size_t columns : {5U, 32U, 50U}) {
        Case parts(61, 83, 500, false, true, false);
        std::vector<float> result = parts.before;
        Tensor packed_a({kGemmRows * kGemmDepth});
        Tensor packed_b({kGemmColumns * kGemmDepth});
        for (std::size_t r = 0; r < 61; r += rows) {
          for (std::size_t j = 0; j < 83; j += columns) {
            Product part = parts.product;
            part.m = std::min<std::size_t>(rows, 61 - r);
            part.n = std::min<std::size_t>(columns, 83 - j);
            part.a += r * part.lda;
            part.b += j * part.ldb;
            part.c = result.data() + r * part.ldc + j;
            kernel.run(part, {.a = packed_a.Values().data(), .b = packed_b.Values().data()});
          }
        }
        CHECK(result == want);
      }
    }
  }
}

TEST_CASE("Gemm: an empty sum is zero, or leaves what is added to") {
  std::vector<float> c = {1, 2, 3, 4};
  Product product = {.m = 2, .n = 2, .k = 0, .c = c.data(), .ldc = 2, .accumulate = true};
  Gemm(product);
  CHECK(c == std::vector<float>{1, 2, 3, 4});
  product.accumulate = false;
  Gemm(product);
  CHECK(c == std::vector<float>{0, 0, 0, 0});
}

}  // namespace
}  // namespace domicile::models::kernels

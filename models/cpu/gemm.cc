// Matrix products. Compiled with -O3 and -march=DOMICILE_ISA; see kernels.h for what that forbids.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>

#include "models/cpu/kernels.h"

namespace domicile::models::kernels {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<>;
using ConstMap = Eigen::Map<const RowMajor, 0, Stride>;
using Map = Eigen::Map<RowMajor, 0, Stride>;

Eigen::Index Size(std::size_t value) { return static_cast<Eigen::Index>(value); }

template <typename A, typename B>
void Assign(const Product& p, const A& a, const B& b) {
  Map c(p.c, Size(p.m), Size(p.n), Stride(Size(p.ldc)));
  if (p.accumulate) {
    c.noalias() += p.alpha * (a * b);
  } else {
    c.noalias() = p.alpha * (a * b);
  }
}

// One output column: a matrix times a vector.
void MultiplyVector(const Product& p) {
  const ConstMap a(p.a, Size(p.m), Size(p.k), Stride(Size(p.lda)));
  Eigen::Map<Eigen::VectorXf>(p.c, Size(p.m)).noalias() =
      a * Eigen::Map<const Eigen::VectorXf>(p.b, Size(p.k));
}

}  // namespace

void Gemm(const Product& p) {
  if (p.n == 1 && p.ldc == 1 && !p.transpose_a && !p.transpose_b && p.ldb == 1 && !p.accumulate &&
      p.alpha == 1) {
    MultiplyVector(p);
    return;
  }
  const auto a = [&p] {
    return p.transpose_a ? ConstMap(p.a, Size(p.k), Size(p.m), Stride(Size(p.lda)))
                         : ConstMap(p.a, Size(p.m), Size(p.k), Stride(Size(p.lda)));
  }();
  const auto b = [&p] {
    return p.transpose_b ? ConstMap(p.b, Size(p.n), Size(p.k), Stride(Size(p.ldb)))
                         : ConstMap(p.b, Size(p.k), Size(p.n), Stride(Size(p.ldb)));
  }();
  if (p.transpose_a && p.transpose_b) {
    Assign(p, a.transpose(), b.transpose());
  } else if (p.transpose_a) {
    Assign(p, a.transpose(), b);
  } else if (p.transpose_b) {
    Assign(p, a, b.transpose());
  } else {
    Assign(p, a, b);
  }
}

}  // namespace domicile::models::kernels

// Element by element. Compiled with -O3 and -march=DOMICILE_ISA; see kernels.h for what that
// forbids.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>

#include "models/cpu/kernels.h"
#include "models/cpu/vector_math.h"

namespace domicile::models::kernels {
namespace {

using ArrayMap = Eigen::Map<Eigen::ArrayXf>;
using ConstArrayMap = Eigen::Map<const Eigen::ArrayXf>;

constexpr float kRootHalf = 0.707106781F;
constexpr float kRootTwoOverPi = 0.797884561F;
constexpr float kInverseRootTwoPi = 0.398942280F;
constexpr float kCubic = 0.044715F;

Eigen::Index Size(std::size_t value) { return static_cast<Eigen::Index>(value); }

}  // namespace

void Activate(Activation activation, const float* x, std::size_t size, float* y) {
  const ConstArrayMap in(x, Size(size));
  ArrayMap out(y, Size(size));
  switch (activation) {
    case Activation::kNone:
      out = in;
      break;
    case Activation::kTanh:
      out = in.tanh();
      break;
    case Activation::kRelu:
      out = in.max(0.0F);
      break;
    case Activation::kSigmoid:
      out = in.logistic();
      break;
    case Activation::kGelu:
      for (std::size_t i = 0; i < size; ++i) {
        y[i] = 0.5F * x[i] * (1.0F + Erf(x[i] * kRootHalf));
      }
      break;
    case Activation::kGeluTanh:
      for (std::size_t i = 0; i < size; ++i) {
        const float inner = kRootTwoOverPi * (x[i] + kCubic * x[i] * x[i] * x[i]);
        y[i] = 0.5F * x[i] * (1.0F + Tanh(inner));
      }
      break;
  }
}

void BiasActivate(const float* bias, Activation activation, std::size_t rows, std::size_t columns,
                  float* y, std::size_t stride) {
  for (std::size_t row = 0; row < rows; ++row) {
    float* const out = y + row * stride;
    for (std::size_t c = 0; bias != nullptr && c < columns; ++c) {
      out[c] += bias[c];
    }
    if (activation != Activation::kNone) {
      Activate(activation, out, columns, out);
    }
  }
}

void ActivationGradient(Activation activation, const float* saved, std::size_t size, float* dy) {
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kTanh:
      for (std::size_t i = 0; i < size; ++i) {
        dy[i] *= 1.0F - saved[i] * saved[i];
      }
      break;
    case Activation::kRelu:
      for (std::size_t i = 0; i < size; ++i) {
        dy[i] = saved[i] > 0.0F ? dy[i] : 0.0F;
      }
      break;
    case Activation::kSigmoid:
      for (std::size_t i = 0; i < size; ++i) {
        dy[i] *= saved[i] * (1.0F - saved[i]);
      }
      break;
    case Activation::kGelu:
      for (std::size_t i = 0; i < size; ++i) {
        const float x = saved[i];
        const float below = 0.5F * (1.0F + Erf(x * kRootHalf));
        dy[i] *= below + x * kInverseRootTwoPi * Exp(-0.5F * x * x);
      }
      break;
    case Activation::kGeluTanh:
      for (std::size_t i = 0; i < size; ++i) {
        const float x = saved[i];
        const float t = Tanh(kRootTwoOverPi * (x + kCubic * x * x * x));
        const float slope = kRootTwoOverPi * (1.0F + 3.0F * kCubic * x * x);
        dy[i] *= 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * slope;
      }
      break;
  }
}

void SumRows(const float* x, std::size_t rows, std::size_t columns, std::size_t first,
             std::size_t count, float* sums) {
  constexpr std::size_t kAtOnce = 64;
  for (std::size_t begin = 0; begin < count; begin += kAtOnce) {
    const std::size_t width = begin + kAtOnce < count ? kAtOnce : count - begin;
    double totals[kAtOnce] = {};
    for (std::size_t row = 0; row < rows; ++row) {
      const float* const in = x + row * columns + first + begin;
      for (std::size_t c = 0; c < width; ++c) {
        totals[c] += static_cast<double>(in[c]);
      }
    }
    for (std::size_t c = 0; c < width; ++c) {
      sums[first + begin + c] = static_cast<float>(totals[c]);
    }
  }
}

void Dropout(std::uint64_t key, std::uint64_t first, float rate, const float* x, std::size_t size,
             float* y) {
  const std::uint32_t threshold = DropThreshold(rate);
  const float grow = 1.0F / (1.0F - rate);
  for (std::size_t i = 0; i < size; ++i) {
    y[i] = MaskBits(key, first + i) >= threshold ? x[i] * grow : 0.0F;
  }
}

void SoftmaxRow(float* x, std::size_t size) {
  const float largest = ConstArrayMap(x, Size(size)).maxCoeff();
  if (!(largest > -3.0e38F)) {
    for (std::size_t i = 0; i < size; ++i) {
      x[i] = 0;
    }
    return;
  }
  for (std::size_t i = 0; i < size; ++i) {
    const float value = Exp(x[i] - largest);
    // Exp does not reach 0; a masked key must.
    x[i] = x[i] < -3.0e38F ? 0.0F : value;
  }
  ArrayMap values(x, Size(size));
  values *= 1.0F / values.sum();
}

}  // namespace domicile::models::kernels

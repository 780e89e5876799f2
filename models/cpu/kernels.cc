// Compiled with -O3 and -march=DOMICILE_ISA; see kernels.h for what that forbids here.
#include "models/cpu/kernels.h"

#include <cmath>

#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>

namespace domicile::models::kernels {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const RowMajor>;
using Map = Eigen::Map<RowMajor>;
using ConstRow = Eigen::Map<const Eigen::RowVectorXf>;
using ArrayMap = Eigen::Map<Eigen::ArrayXf>;

// The numbers of models::Activation, which this file does not include.
constexpr unsigned kTanh = 1;
constexpr unsigned kRelu = 2;
constexpr unsigned kSigmoid = 3;

Eigen::Index Size(std::size_t value) { return static_cast<Eigen::Index>(value); }

void Activate(unsigned activation, std::size_t size, float* y) {
  ArrayMap values(y, Size(size));
  switch (activation) {
    case kTanh:
      values = values.tanh();
      break;
    case kRelu:
      values = values.max(0.0F);
      break;
    case kSigmoid:
      values = values.logistic();
      break;
    default:
      break;
  }
}

}  // namespace

void Dense(const float* x, const float* w, const float* bias, unsigned activation, std::size_t rows,
           std::size_t ins, std::size_t outs, float* y) {
  const ConstMap inputs(x, Size(rows), Size(ins));
  Map outputs(y, Size(rows), Size(outs));
  if (outs == 1) {
    outputs.noalias() = inputs * Eigen::Map<const Eigen::VectorXf>(w, Size(ins));
  } else {
    outputs.noalias() = inputs * ConstMap(w, Size(ins), Size(outs));
  }
  outputs.rowwise() += ConstRow(bias, Size(outs));
  Activate(activation, rows * outs, y);
}

void DenseWeightGradient(const float* x, const float* dy, std::size_t rows, std::size_t ins,
                         std::size_t outs, std::size_t first, std::size_t count, float* dw) {
  const ConstMap inputs(x, Size(rows), Size(ins));
  const ConstMap gradient(dy, Size(rows), Size(outs));
  Map(dw + first * outs, Size(count), Size(outs)).noalias() =
      inputs.middleCols(Size(first), Size(count)).transpose() * gradient;
}

void DenseBiasGradient(const float* dy, std::size_t rows, std::size_t outs, float* db) {
  for (std::size_t out = 0; out < outs; ++out) {
    double sum = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      sum += static_cast<double>(dy[row * outs + out]);
    }
    db[out] = static_cast<float>(sum);
  }
}

void DenseInputGradient(const float* dy, const float* w, std::size_t rows, std::size_t ins,
                        std::size_t outs, float* dx) {
  Map(dx, Size(rows), Size(ins)).noalias() =
      ConstMap(dy, Size(rows), Size(outs)) * ConstMap(w, Size(ins), Size(outs)).transpose();
}

void ActivationGradient(unsigned activation, const float* y, std::size_t size, float* dy) {
  switch (activation) {
    case kTanh:
      for (std::size_t i = 0; i < size; ++i) {
        dy[i] *= 1.0F - y[i] * y[i];
      }
      break;
    case kRelu:
      for (std::size_t i = 0; i < size; ++i) {
        dy[i] = y[i] > 0.0F ? dy[i] : 0.0F;
      }
      break;
    case kSigmoid:
      for (std::size_t i = 0; i < size; ++i) {
        dy[i] *= y[i] * (1.0F - y[i]);
      }
      break;
    default:
      break;
  }
}

double BinaryCrossEntropy(const float* z, const std::uint32_t* labels, std::size_t rows,
                          float scale, float* dz) {
  double loss = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const double logit = static_cast<double>(z[row]);
    const double label = labels[row] == 0 ? 0.0 : 1.0;
    const double small = std::exp(-std::fabs(logit));
    loss += (logit > 0 ? logit : 0.0) - logit * label + std::log1p(small);
    if (dz != nullptr) {
      const double probability = (logit >= 0 ? 1.0 : small) / (1.0 + small);
      dz[row] = static_cast<float>(static_cast<double>(scale) * (probability - label));
    }
  }
  return loss;
}

double SoftmaxCrossEntropy(const float* z, const std::uint32_t* labels, std::size_t rows,
                           std::size_t classes, float scale, float* dz) {
  double loss = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const float* logits = z + row * classes;
    float largest = logits[0];
    for (std::size_t c = 1; c < classes; ++c) {
      largest = logits[c] > largest ? logits[c] : largest;
    }
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      sum += std::exp(static_cast<double>(logits[c]) - static_cast<double>(largest));
    }
    const double log_sum = static_cast<double>(largest) + std::log(sum);
    loss += log_sum - static_cast<double>(logits[labels[row]]);
    if (dz == nullptr) {
      continue;
    }
    for (std::size_t c = 0; c < classes; ++c) {
      const double probability = std::exp(static_cast<double>(logits[c]) - log_sum);
      const double wanted = c == labels[row] ? 1.0 : 0.0;
      dz[row * classes + c] =
          static_cast<float>(static_cast<double>(scale) * (probability - wanted));
    }
  }
  return loss;
}

void AddScaled(float a, const float* x, std::size_t size, float* y) {
  for (std::size_t i = 0; i < size; ++i) {
    y[i] += a * x[i];
  }
}

void Sgd(float rate, float momentum, const float* gradient, std::size_t size, float* buffer,
         float* parameters) {
  for (std::size_t i = 0; i < size; ++i) {
    // A buffer that starts at zero gives PyTorch's first step, buf = g.
    buffer[i] = momentum * buffer[i] + gradient[i];
    parameters[i] -= rate * buffer[i];
  }
}

void Adam(const AdamConstants& constants, const float* gradient, std::size_t size, float* first,
          float* second, float* parameters) {
  const float step = constants.rate / constants.correction1;
  for (std::size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    first[i] = constants.beta1 * first[i] + (1.0F - constants.beta1) * g;
    second[i] = constants.beta2 * second[i] + (1.0F - constants.beta2) * g * g;
    const float root = std::sqrt(second[i]) / constants.correction2_root + constants.epsilon;
    parameters[i] -= step * first[i] / root;
  }
}

void Multiply(const float* a, const float* b, std::size_t n, float* c) {
  Map(c, Size(n), Size(n)).noalias() =
      ConstMap(a, Size(n), Size(n)) * ConstMap(b, Size(n), Size(n));
}

}  // namespace domicile::models::kernels

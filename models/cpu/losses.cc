// Losses. Compiled with -O3 and -march=DOMICILE_ISA; see kernels.h for what that forbids here.
#include <cmath>

#include "models/cpu/kernels.h"

namespace domicile::models::kernels {

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

double SquaredError(const float* z, const float* targets, std::size_t rows, std::size_t outputs,
                    float scale, float* dz) {
  double loss = 0;
  const double share = 1.0 / static_cast<double>(outputs);
  for (std::size_t i = 0; i < rows * outputs; ++i) {
    const double difference = static_cast<double>(z[i]) - static_cast<double>(targets[i]);
    loss += share * difference * difference;
    if (dz != nullptr) {
      dz[i] = static_cast<float>(2 * share * static_cast<double>(scale) * difference);
    }
  }
  return loss;
}

}  // namespace domicile::models::kernels

// Attention and losses, by teams or element by element; sum_bodies.h says what a team is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/cuda/element_bodies.h"
#include "models/cuda/portable.h"

namespace domicile::models::cuda {

// --- Attention: an index is a query, numbered over sequences, heads and tokens
// Scores become probabilities, and `weights` (unless null) those with the dropout mask applied.
struct AttentionSoftmax {
  std::size_t length;
  std::size_t heads;
  bool causal;
  const std::uint8_t* mask;  // [sequences * length], or null
  Mask dropout;
  float* probabilities;
  float* weights;
  template <typename Team>
  DOMICILE_BOTH void operator()(Team& team, std::size_t index) const {
    const Split at = Divide(index, length);
    const std::uint8_t* const seen =
        mask == nullptr ? nullptr : mask + Divide(at.quotient, heads).quotient * length;
    const std::size_t keys = causal ? at.remainder + 1 : length;
    float* const row = probabilities + index * length;
    float largest = -3.0e38F;
    for (std::size_t key = team.Rank(); key < keys; key += team.Size()) {
      largest = seen == nullptr || seen[key] != 0 ? fmaxf(largest, row[key]) : largest;
    }
    largest = team.Max(largest);
    float sum = 0;
    for (std::size_t key = team.Rank(); key < keys; key += team.Size()) {
      sum += seen == nullptr || seen[key] != 0 ? expf(row[key] - largest) : 0.0F;
    }
    // 0 only where no key is seen: the largest score counts as 1.
    const float total = static_cast<float>(team.Sum(static_cast<double>(sum)));
    const float share = total > 0.0F ? 1.0F / total : 0.0F;
    for (std::size_t key = team.Rank(); key < length; key += team.Size()) {
      const bool counts = key < keys && (seen == nullptr || seen[key] != 0);
      const float p = counts ? expf(row[key] - largest) * share : 0.0F;
      row[key] = p;
      if (weights != nullptr) {
        weights[index * length + key] = dropout.Apply(index * length + key, p);
      }
    }
  }
};

// From the gradient of the weights to that of the scores, in place.
struct AttentionSoftmaxGradient {
  std::size_t length;
  bool drops;
  Mask dropout;
  const float* probabilities;
  float* scores;
  template <typename Team>
  DOMICILE_BOTH void operator()(Team& team, std::size_t index) const {
    const float* const p = probabilities + index * length;
    float* const row = scores + index * length;
    float sum = 0;
    for (std::size_t key = team.Rank(); key < length; key += team.Size()) {
      row[key] = drops ? dropout.Apply(index * length + key, row[key]) : row[key];
      sum += p[key] * row[key];
    }
    const float mean = static_cast<float>(team.Sum(static_cast<double>(sum)));
    for (std::size_t key = team.Rank(); key < length; key += team.Size()) {
      row[key] = p[key] * (row[key] - mean);
    }
  }
};

// --- Losses: each row's goes to losses[row]
// An element body.
struct BinaryCrossEntropy {
  const float* z;
  const std::uint32_t* labels;
  float scale;
  double* losses;
  float* dz;  // may be null
  DOMICILE_BOTH void operator()(std::size_t row) const {
    const double logit = static_cast<double>(z[row]);
    const double label = labels[row] == 0 ? 0.0 : 1.0;
    const double small = exp(-fabs(logit));
    losses[row] = (logit > 0 ? logit : 0.0) - logit * label + log1p(small);
    if (dz != nullptr) {
      const double probability = (logit >= 0 ? 1.0 : small) / (1.0 + small);
      dz[row] = static_cast<float>(static_cast<double>(scale) * (probability - label));
    }
  }
};

struct SoftmaxCrossEntropy {
  const float* z;
  const std::uint32_t* labels;
  std::size_t classes;
  float scale;
  double* losses;
  float* dz;
  template <typename Team>
  DOMICILE_BOTH void operator()(Team& team, std::size_t row) const {
    const float* const logits = z + row * classes;
    float most = logits[0];
    for (std::size_t c = team.Rank(); c < classes; c += team.Size()) {
      most = logits[c] > most ? logits[c] : most;
    }
    const double largest = static_cast<double>(team.Max(most));
    double sum = 0;
    for (std::size_t c = team.Rank(); c < classes; c += team.Size()) {
      sum += exp(static_cast<double>(logits[c]) - largest);
    }
    const double log_sum = largest + log(team.Sum(sum));
    if (team.Rank() == 0) {
      losses[row] = log_sum - static_cast<double>(logits[labels[row]]);
    }
    for (std::size_t c = team.Rank(); dz != nullptr && c < classes; c += team.Size()) {
      const double wanted = c == labels[row] ? 1.0 : 0.0;
      dz[row * classes + c] = static_cast<float>(
          static_cast<double>(scale) * (exp(static_cast<double>(logits[c]) - log_sum) - wanted));
    }
  }
};

// An element body; losses[i] is one output's part.
struct SquaredError {
  const float* z;
  const float* targets;
  std::size_t outputs;
  float scale;
  double* losses;
  float* dz;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const double share = 1.0 / static_cast<double>(outputs);
    const double difference = static_cast<double>(z[i]) - static_cast<double>(targets[i]);
    losses[i] = share * difference * difference;
    if (dz != nullptr) {
      dz[i] = static_cast<float>(2 * share * static_cast<double>(scale) * difference);
    }
  }
};

}  // namespace domicile::models::cuda

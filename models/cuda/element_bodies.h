// Kernels that compute each element by itself: body(i) for every i, in any order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/cuda/portable.h"
#include "models/layers/mask_bits.h"
#include "models/layers/shapes.h"

namespace domicile::models::cuda {

DOMICILE_BOTH inline float ActivationOf(Activation activation, float x) {
  constexpr float kRootHalf = 0.707106781F;
  constexpr float kRootTwoOverPi = 0.797884561F;
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kTanh:
      return tanhf(x);
    case Activation::kRelu:
      return x > 0.0F ? x : 0.0F;
    case Activation::kSigmoid:
      return 1.0F / (1.0F + expf(-x));
    case Activation::kGelu:
      return 0.5F * x * (1.0F + erff(x * kRootHalf));
    case Activation::kGeluTanh:
      return 0.5F * x * (1.0F + tanhf(kRootTwoOverPi * (x + 0.044715F * x * x * x)));
  }
  return x;
}

// The slope at `saved`: the activation's output, but for the GELUs its input.
DOMICILE_BOTH inline float SlopeOf(Activation activation, float saved) {
  constexpr float kRootHalf = 0.707106781F;
  constexpr float kRootTwoOverPi = 0.797884561F;
  constexpr float kInverseRootTwoPi = 0.398942280F;
  switch (activation) {
    case Activation::kNone:
      return 1;
    case Activation::kTanh:
      return 1.0F - saved * saved;
    case Activation::kRelu:
      return saved > 0.0F ? 1.0F : 0.0F;
    case Activation::kSigmoid:
      return saved * (1.0F - saved);
    case Activation::kGelu:
      return 0.5F * (1.0F + erff(saved * kRootHalf)) +
             saved * kInverseRootTwoPi * expf(-0.5F * saved * saved);
    case Activation::kGeluTanh: {
      const float cube = 0.044715F * saved * saved * saved;
      const float t = tanhf(kRootTwoOverPi * (saved + cube));
      const float slope = kRootTwoOverPi * (1.0F + 3.0F * 0.044715F * saved * saved);
      return 0.5F * (1.0F + t) + 0.5F * saved * (1.0F - t * t) * slope;
    }
  }
  return 1;
}

struct Activate {
  Activation activation;
  const float* x;
  float* y;
  DOMICILE_BOTH void operator()(std::size_t i) const { y[i] = ActivationOf(activation, x[i]); }
};

// y[rows, columns] = activation(y + bias); a null bias adds nothing.
struct BiasActivate {
  Activation activation;
  const float* bias;
  std::size_t columns;
  float* y;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const float add = bias == nullptr ? 0.0F : bias[Divide(i, columns).remainder];
    y[i] = ActivationOf(activation, y[i] + add);
  }
};

struct ActivationGradient {
  Activation activation;
  const float* saved;
  float* dy;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const float slope = SlopeOf(activation, saved[i]);
    // Not a product for a slope of 0: an infinite dy is dropped, as on the CPU.
    dy[i] = activation == Activation::kRelu ? (slope > 0.0F ? dy[i] : 0.0F) : dy[i] * slope;
  }
};

// A dropout mask with its constants worked out; nothing is dropped if the rate is 0.
struct Mask {
  std::uint64_t key;
  std::uint64_t first;
  std::uint32_t threshold;
  float grow;
  DOMICILE_BOTH float Apply(std::size_t i, float x) const {
    return MaskBits(key, first + i) >= threshold ? x * grow : 0.0F;
  }
};

inline Mask MaskFor(const DropoutMask& mask) {
  return {mask.key, mask.first, DropThreshold(mask.rate), 1.0F / (1.0F - mask.rate)};
}

struct Dropout {
  Mask mask;
  const float* x;
  float* y;
  DOMICILE_BOTH void operator()(std::size_t i) const { y[i] = mask.Apply(i, x[i]); }
};

struct AddScaled {
  float a;
  const float* x;
  float* y;
  DOMICILE_BOTH void operator()(std::size_t i) const { y[i] += a * x[i]; }
};

struct Add {
  const float* a;
  const float* b;
  float* y;
  DOMICILE_BOTH void operator()(std::size_t i) const { y[i] = a[i] + b[i]; }
};

struct Scale {
  float a;
  float* x;
  DOMICILE_BOTH void operator()(std::size_t i) const { x[i] *= a; }
};

struct Sgd {
  SgdStep step;
  const float* gradient;
  float* momentum;
  float* parameters;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const float g = gradient[i] + step.weight_decay * parameters[i];
    const float kept = step.momentum * momentum[i] + step.gradient_share * g;
    momentum[i] = kept;
    parameters[i] -= step.learning_rate * (step.nesterov ? g + step.momentum * kept : kept);
  }
};

// `rate` is the rate over correction1, `root` the root of correction2, `keep` what decoupled decay
// leaves.
struct Adam {
  AdamStep step;
  float rate;
  float root;
  float keep;
  const float* gradient;
  float* first;
  float* second;
  float* parameters;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const float g = gradient[i];
    const float m = step.beta1 * first[i] + (1.0F - step.beta1) * g;
    const float v = step.beta2 * second[i] + (1.0F - step.beta2) * g * g;
    first[i] = m;
    second[i] = v;
    parameters[i] = keep * parameters[i] - rate * m / (sqrtf(v) / root + step.epsilon);
  }
};

// --- Sequences
// y[n, columns] (+)= table[ids[n]]
struct Gather {
  const float* table;
  const std::uint32_t* ids;
  std::size_t columns;
  bool accumulate;
  float* y;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const Split at = Divide(i, columns);
    const float value = table[ids[at.quotient] * columns + at.remainder];
    y[i] = accumulate ? y[i] + value : value;
  }
};

// Rows of dy grouped by where they go: group g adds rows[starts[g], starts[g + 1]), in the order of
// the batch, to row targets[g]. No two groups have one target, so nothing is added by two at once.
struct Scatter {
  const std::uint32_t* targets;
  const std::uint32_t* starts;
  const std::uint32_t* rows;
  std::size_t columns;
  const float* dy;
  float* dtable;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const Split at = Divide(i, columns);
    float* const to = dtable + targets[at.quotient] * columns + at.remainder;
    float sum = *to;
    for (std::uint32_t r = starts[at.quotient]; r < starts[at.quotient + 1]; ++r) {
      sum += dy[rows[r] * columns + at.remainder];
    }
    *to = sum;
  }
};

DOMICILE_BOTH inline float TokenShare(std::size_t length, const std::uint8_t* mask) {
  std::size_t counted = 0;
  for (std::size_t token = 0; token < length; ++token) {
    counted += mask == nullptr || mask[token] != 0 ? 1 : 0;
  }
  return counted == 0 ? 0.0F : 1.0F / static_cast<float>(counted);
}

struct MeanOfTokens {
  const float* x;
  std::size_t length;
  std::size_t columns;
  const std::uint8_t* mask;  // null: all count
  float* y;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const Split at = Divide(i, columns);
    const std::uint8_t* const kept = mask == nullptr ? nullptr : mask + at.quotient * length;
    float sum = 0;
    for (std::size_t token = 0; token < length; ++token) {
      if (kept == nullptr || kept[token] != 0) {
        sum += x[(at.quotient * length + token) * columns + at.remainder];
      }
    }
    y[i] = sum * TokenShare(length, kept);
  }
};

// One i for each element of dy.
struct MeanOfTokensGradient {
  const float* dy;
  std::size_t length;
  std::size_t columns;
  const std::uint8_t* mask;
  float* dx;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const Split at = Divide(i, columns);
    const std::uint8_t* const kept = mask == nullptr ? nullptr : mask + at.quotient * length;
    const float share = TokenShare(length, kept) * dy[i];
    for (std::size_t token = 0; token < length; ++token) {
      dx[(at.quotient * length + token) * columns + at.remainder] =
          kept == nullptr || kept[token] != 0 ? share : 0.0F;
    }
  }
};

}  // namespace domicile::models::cuda

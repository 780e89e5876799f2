// Norms. Compiled with -O3 and -march=DOMICILE_ISA; see kernels.h for what that forbids here.
#include <cmath>

#include "models/cpu/kernels.h"

namespace domicile::models::kernels {
namespace {

// Sums in several lanes, which the compiler keeps in one vector register: a fixed order of addition
// without waiting for each. value(i) is added up over [0, size).
template <typename Value>
float SumInLanes(std::size_t size, const Value& value) {
  constexpr std::size_t kLanes = 16;
  float lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += value(i + lane);
    }
  }
  for (; i < size; ++i) {
    lanes[0] += value(i);
  }
  double sum = 0;
  for (const float lane : lanes) {
    sum += static_cast<double>(lane);
  }
  return static_cast<float>(sum);
}

}  // namespace

void GroupNormRow(const NormShape& s, const float* x, const float* scale, const float* shift,
                  float* y, float* statistics) {
  const std::size_t channels = s.channels / s.groups;
  const std::size_t size = channels * s.positions;
  for (std::size_t g = 0; g < s.groups; ++g) {
    const float* const in = x + g * size;
    float* const out = y + g * size;
    const float mean =
        SumInLanes(size, [in](std::size_t i) { return in[i]; }) / static_cast<float>(size);
    // The second pass avoids the cancellation of E[x^2] - E[x]^2.
    const float variance =
        SumInLanes(size, [in, mean](std::size_t i) { return (in[i] - mean) * (in[i] - mean); }) /
        static_cast<float>(size);
    const float inverse = 1.0F / std::sqrt(variance + s.epsilon);
    statistics[2 * g] = mean;
    statistics[2 * g + 1] = inverse;
    if (s.positions == 1) {
      const float* const scales = scale + g * channels;
      const float* const shifts = shift + g * channels;
      for (std::size_t i = 0; i < size; ++i) {
        out[i] = (in[i] - mean) * inverse * scales[i] + shifts[i];
      }
      continue;
    }
    for (std::size_t c = 0; c < channels; ++c) {
      const float a = inverse * scale[g * channels + c];
      const float b = shift[g * channels + c];
      for (std::size_t i = c * s.positions; i < (c + 1) * s.positions; ++i) {
        out[i] = (in[i] - mean) * a + b;
      }
    }
  }
}

namespace {

struct Means {
  float of_gradient;  // mean of dxhat
  float of_product;   // mean of dxhat * xhat
};

// A group whose channels have one position: a layer norm.
void FlatGradient(const float* in, const float* scale, float mean, float inverse, const float* dy,
                  std::size_t size, float* dx, float* dscale, float* dshift) {
  if (dscale != nullptr) {
    for (std::size_t i = 0; i < size; ++i) {
      dscale[i] += dy[i] * (in[i] - mean) * inverse;
      dshift[i] += dy[i];
    }
  }
  if (dx == nullptr) {
    return;
  }
  const float share = 1.0F / static_cast<float>(size);
  const Means means = {SumInLanes(size, [=](std::size_t i) { return dy[i] * scale[i]; }) * share,
                       SumInLanes(size, [=](std::size_t i) {
                         return dy[i] * scale[i] * (in[i] - mean) * inverse;
                       }) * share};
  for (std::size_t i = 0; i < size; ++i) {
    const float xhat = (in[i] - mean) * inverse;
    dx[i] = inverse * (dy[i] * scale[i] - means.of_gradient - xhat * means.of_product);
  }
}

void GroupGradient(std::size_t channels, std::size_t positions, const float* in, const float* scale,
                   float mean, float inverse, const float* dy, float* dx, float* dscale,
                   float* dshift) {
  double of_gradient = 0;
  double of_product = 0;
  for (std::size_t c = 0; c < channels; ++c) {
    const float* const x = in + c * positions;
    const float* const d = dy + c * positions;
    const float sum = SumInLanes(positions, [d](std::size_t i) { return d[i]; });
    const float product =
        SumInLanes(positions, [=](std::size_t i) { return d[i] * (x[i] - mean) * inverse; });
    if (dscale != nullptr) {
      dscale[c] += product;
      dshift[c] += sum;
    }
    of_gradient += static_cast<double>(sum * scale[c]);
    of_product += static_cast<double>(product * scale[c]);
  }
  if (dx == nullptr) {
    return;
  }
  const double share = 1.0 / static_cast<double>(channels * positions);
  const Means means = {static_cast<float>(of_gradient * share),
                       static_cast<float>(of_product * share)};
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = c * positions; i < (c + 1) * positions; ++i) {
      const float xhat = (in[i] - mean) * inverse;
      dx[i] = inverse * (dy[i] * scale[c] - means.of_gradient - xhat * means.of_product);
    }
  }
}

}  // namespace

void GroupNormGradientRow(const NormShape& s, const float* x, const float* scale,
                          const float* statistics, const float* dy, float* dx, float* dscale,
                          float* dshift) {
  const std::size_t channels = s.channels / s.groups;
  const std::size_t size = channels * s.positions;
  for (std::size_t g = 0; g < s.groups; ++g) {
    const float mean = statistics[2 * g];
    const float inverse = statistics[2 * g + 1];
    float* const out = dx == nullptr ? nullptr : dx + g * size;
    float* const scales = dscale == nullptr ? nullptr : dscale + g * channels;
    float* const shifts = dshift == nullptr ? nullptr : dshift + g * channels;
    if (s.positions == 1) {
      FlatGradient(x + g * size, scale + g * channels, mean, inverse, dy + g * size, size, out,
                   scales, shifts);
    } else {
      GroupGradient(channels, s.positions, x + g * size, scale + g * channels, mean, inverse,
                    dy + g * size, out, scales, shifts);
    }
  }
}

void ChannelSums(const float* x, float origin, const float* z, float centre, std::size_t rows,
                 std::size_t row_size, std::size_t positions, double* first, double* second) {
  double sum = 0;
  double product = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = row * row_size; i < row * row_size + positions; ++i) {
      const double value = static_cast<double>(x[i]) - static_cast<double>(origin);
      sum += value;
      product += value * (static_cast<double>(z[i]) - static_cast<double>(centre));
    }
  }
  *first = sum;
  *second = product;
}

void ChannelAffineRow(const float* x, const float* a, const float* z, const float* b,
                      const float* d, std::size_t channels, std::size_t positions, float* y) {
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = c * positions; i < (c + 1) * positions; ++i) {
      const float other = z == nullptr ? 0.0F : z[i] * b[c];
      y[i] = x[i] * a[c] + other + d[c];
    }
  }
}

}  // namespace domicile::models::kernels

// Kernels that add up: body(team, index) for every index, each by a team of threads that share its
// work. A team has Rank(), Size(), and Sum() and Max(), which every thread of it calls and which
// give all of them the same bits by one fixed tree. What a team computes depends on its size, and
// that on the shape alone (launch.h); nothing is ever added by atomic operations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/cuda/element_bodies.h"
#include "models/cuda/portable.h"
#include "models/layers/shapes.h"

namespace domicile::models::cuda {

// --- Sums in two steps: partial results of stretches, then the sum of those in order

// partial[index] = sum of term(i) over stretch number `index` of [0, size).
template <typename Term>
struct SumStretch {
  Term term;
  std::size_t size;
  std::size_t per_stretch;
  double* partial;
  template <typename Team>
  DOMICILE_BOTH void operator()(Team& team, std::size_t index) const {
    const std::size_t last = Least((index + 1) * per_stretch, size);
    double sum = 0;
    for (std::size_t i = index * per_stretch + team.Rank(); i < last; i += team.Size()) {
      sum += term(i);
    }
    sum = team.Sum(sum);
    if (team.Rank() == 0) {
      partial[index] = sum;
    }
  }
};

struct SquareOf {
  const float* x;
  DOMICILE_BOTH double operator()(std::size_t i) const {
    return static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
};

struct ValueOf {
  const double* x;
  DOMICILE_BOTH double operator()(std::size_t i) const { return x[i]; }
};

// An element body: sums[c] = sum over stretches of partial[stretch * columns + first + c].
template <typename T>
struct SumOfStretches {
  const double* partial;
  std::size_t stretches;
  std::size_t columns;
  std::size_t first;
  T* sums;
  DOMICILE_BOTH void operator()(std::size_t c) const {
    double sum = 0;
    for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
      sum += partial[stretch * columns + first + c];
    }
    sums[c] = static_cast<T>(sum);
  }
};

// An element body for each (stretch of rows, column): a thread a column, so that neighbours read
// neighbours.
struct SumRowsStretch {
  const float* x;
  std::size_t rows;
  std::size_t columns;
  std::size_t per_stretch;
  double* partial;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const Split at = Divide(i, columns);
    const std::size_t last = Least((at.quotient + 1) * per_stretch, rows);
    double sum = 0;
    for (std::size_t row = at.quotient * per_stretch; row < last; ++row) {
      sum += static_cast<double>(x[row * columns + at.remainder]);
    }
    partial[i] = sum;
  }
};

// --- Norms
// An index is (row, group).
struct GroupNorm {
  NormShape shape;
  const float* x;
  const float* scale;
  const float* shift;
  float* y;
  float* statistics;
  template <typename Team>
  DOMICILE_BOTH void operator()(Team& team, std::size_t index) const {
    const std::size_t channels = shape.channels / shape.groups;
    const std::size_t size = channels * shape.positions;
    const std::size_t first = Divide(index, shape.groups).remainder * channels;
    const float* const in = x + index * size;
    float sum = 0;
    for (std::size_t i = team.Rank(); i < size; i += team.Size()) {
      sum += in[i];
    }
    const float mean =
        static_cast<float>(team.Sum(static_cast<double>(sum)) / static_cast<double>(size));
    // The second pass avoids the cancellation of E[x^2] - E[x]^2.
    float squares = 0;
    for (std::size_t i = team.Rank(); i < size; i += team.Size()) {
      squares += (in[i] - mean) * (in[i] - mean);
    }
    const float variance =
        static_cast<float>(team.Sum(static_cast<double>(squares)) / static_cast<double>(size));
    const float inverse = 1.0F / sqrtf(variance + shape.epsilon);
    if (team.Rank() == 0) {
      statistics[2 * index] = mean;
      statistics[2 * index + 1] = inverse;
    }
    for (std::size_t i = team.Rank(); i < size; i += team.Size()) {
      const std::size_t c = first + Divide(i, shape.positions).quotient;
      y[index * size + i] = (in[i] - mean) * inverse * scale[c] + shift[c];
    }
  }
};

// An index is (row, group); dx may be dy.
struct GroupNormInputGradient {
  NormShape shape;
  const float* x;
  const float* scale;
  const float* statistics;
  const float* dy;
  float* dx;
  template <typename Team>
  DOMICILE_BOTH void operator()(Team& team, std::size_t index) const {
    const std::size_t channels = shape.channels / shape.groups;
    const std::size_t size = channels * shape.positions;
    const std::size_t first = Divide(index, shape.groups).remainder * channels;
    const float mean = statistics[2 * index];
    const float inverse = statistics[2 * index + 1];
    const float* const in = x + index * size;
    float of_gradient = 0;
    float of_product = 0;
    for (std::size_t i = team.Rank(); i < size; i += team.Size()) {
      const float g = dy[index * size + i] * scale[first + Divide(i, shape.positions).quotient];
      of_gradient += g;
      of_product += g * (in[i] - mean) * inverse;
    }
    const double share = 1.0 / static_cast<double>(size);
    const float mean_gradient =
        static_cast<float>(team.Sum(static_cast<double>(of_gradient)) * share);
    const float mean_product =
        static_cast<float>(team.Sum(static_cast<double>(of_product)) * share);
    for (std::size_t i = team.Rank(); i < size; i += team.Size()) {
      const float g = dy[index * size + i] * scale[first + Divide(i, shape.positions).quotient];
      const float xhat = (in[i] - mean) * inverse;
      dx[index * size + i] = inverse * (g - mean_gradient - xhat * mean_product);
    }
  }
};

// partial[stretch, 2 * channels]: the sums of dy * xhat and of dy over a stretch of rows. An
// element body with an i for each (stretch, channel), for shapes of one position.
struct NormSumsFlat {
  NormShape shape;
  std::size_t rows;
  std::size_t per_stretch;
  const float* x;
  const float* statistics;
  const float* dy;
  double* partial;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const Split at = Divide(i, shape.channels);
    const std::size_t group = at.remainder / (shape.channels / shape.groups);
    const std::size_t last = Least((at.quotient + 1) * per_stretch, rows);
    double of_scale = 0;
    double of_shift = 0;
    for (std::size_t row = at.quotient * per_stretch; row < last; ++row) {
      const float* const s = statistics + 2 * (row * shape.groups + group);
      const float d = dy[row * shape.channels + at.remainder];
      of_scale += static_cast<double>(d * (x[row * shape.channels + at.remainder] - s[0]) * s[1]);
      of_shift += static_cast<double>(d);
    }
    partial[at.quotient * 2 * shape.channels + at.remainder] = of_scale;
    partial[(at.quotient * 2 + 1) * shape.channels + at.remainder] = of_shift;
  }
};

// The same by teams, for images: an index is (stretch, channel).
struct NormSums {
  NormShape shape;
  std::size_t rows;
  std::size_t per_stretch;
  const float* x;
  const float* statistics;
  const float* dy;
  double* partial;
  template <typename Team>
  DOMICILE_BOTH void operator()(Team& team, std::size_t index) const {
    const Split at = Divide(index, shape.channels);
    const std::size_t group = at.remainder / (shape.channels / shape.groups);
    const std::size_t last = Least((at.quotient + 1) * per_stretch, rows);
    double of_scale = 0;
    double of_shift = 0;
    for (std::size_t row = at.quotient * per_stretch; row < last; ++row) {
      const float* const s = statistics + 2 * (row * shape.groups + group);
      const std::size_t first = (row * shape.channels + at.remainder) * shape.positions;
      for (std::size_t i = team.Rank(); i < shape.positions; i += team.Size()) {
        of_scale += static_cast<double>(dy[first + i] * (x[first + i] - s[0]) * s[1]);
        of_shift += static_cast<double>(dy[first + i]);
      }
    }
    of_scale = team.Sum(of_scale);
    of_shift = team.Sum(of_shift);
    if (team.Rank() == 0) {
      partial[at.quotient * 2 * shape.channels + at.remainder] = of_scale;
      partial[(at.quotient * 2 + 1) * shape.channels + at.remainder] = of_shift;
    }
  }
};

// partial[stretch, 2 * channels]: sums of (x - origin) and (x - origin) * (z - centre).
struct ChannelSums {
  std::size_t rows;
  std::size_t channels;
  std::size_t positions;
  std::size_t per_stretch;
  const float* x;
  const float* origin;
  const float* z;
  const float* centre;
  double* partial;
  template <typename Team>
  DOMICILE_BOTH void operator()(Team& team, std::size_t index) const {
    const Split at = Divide(index, channels);
    const std::size_t last = Least((at.quotient + 1) * per_stretch, rows);
    const double from = static_cast<double>(origin[at.remainder]);
    const double middle = static_cast<double>(centre[at.remainder]);
    double sum = 0;
    double product = 0;
    for (std::size_t row = at.quotient * per_stretch; row < last; ++row) {
      const std::size_t first = (row * channels + at.remainder) * positions;
      for (std::size_t i = team.Rank(); i < positions; i += team.Size()) {
        const double value = static_cast<double>(x[first + i]) - from;
        sum += value;
        product += value * (static_cast<double>(z[first + i]) - middle);
      }
    }
    sum = team.Sum(sum);
    product = team.Sum(product);
    if (team.Rank() == 0) {
      partial[at.quotient * 2 * channels + at.remainder] = sum;
      partial[(at.quotient * 2 + 1) * channels + at.remainder] = product;
    }
  }
};

// partial[filter] of by_filter[F, N]: the sums of its rows, an index a filter.
struct SumFilters {
  std::size_t columns;
  const float* by_filter;
  double* partial;
  template <typename Team>
  DOMICILE_BOTH void operator()(Team& team, std::size_t index) const {
    double sum = 0;
    for (std::size_t i = team.Rank(); i < columns; i += team.Size()) {
      sum += static_cast<double>(by_filter[index * columns + i]);
    }
    sum = team.Sum(sum);
    if (team.Rank() == 0) {
      partial[index] = sum;
    }
  }
};

}  // namespace domicile::models::cuda

// Kernels of images, element by element: body(i) for every i, in any order. Whatever several places
// would add to is gathered instead, in the CPU's order, so nothing depends on which thread is
// first.
//
// Columns are [patch, images * positions]: one product serves a whole batch. P is positions of an
// output, N = images * P.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/cuda/element_bodies.h"
#include "models/cuda/portable.h"
#include "models/layers/shapes.h"

namespace domicile::models::cuda {

struct ImagesToColumns {
  ConvShape shape;
  std::size_t images;
  const float* x;
  float* columns;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const std::size_t positions = shape.out_height * shape.out_width;
    const Split row = Divide(i, images * positions);
    const Split image = Divide(row.remainder, positions);
    const Split place = Divide(image.remainder, shape.out_width);
    const Split channel = Divide(row.quotient, shape.kernel * shape.kernel);
    const Split offset = Divide(channel.remainder, shape.kernel);
    // Unsigned: what lies before the image is a large number.
    const std::size_t y = place.quotient * shape.stride + offset.quotient - shape.padding;
    const std::size_t at = place.remainder * shape.stride + offset.remainder - shape.padding;
    const bool inside = y < shape.height && at < shape.width;
    const std::size_t first = (image.quotient * shape.channels + channel.quotient) * shape.height;
    columns[i] = inside ? x[(first + y) * shape.width + at] : 0.0F;
  }
};

// One i for each element of dx.
struct ColumnsToImages {
  ConvShape shape;
  std::size_t images;
  const float* columns;
  float* dx;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const std::size_t positions = shape.out_height * shape.out_width;
    const Split line = Divide(i, shape.width);
    const Split channel = Divide(line.quotient, shape.height);
    const Split image = Divide(channel.quotient, shape.channels);
    float sum = 0;
    for (std::size_t ky = 0; ky < shape.kernel; ++ky) {
      const Split oy = Divide(channel.remainder + shape.padding - ky, shape.stride);
      if (channel.remainder + shape.padding < ky || oy.remainder != 0 ||
          oy.quotient >= shape.out_height) {
        continue;
      }
      for (std::size_t kx = 0; kx < shape.kernel; ++kx) {
        const Split ox = Divide(line.remainder + shape.padding - kx, shape.stride);
        if (line.remainder + shape.padding < kx || ox.remainder != 0 ||
            ox.quotient >= shape.out_width) {
          continue;
        }
        const std::size_t patch = (image.remainder * shape.kernel + ky) * shape.kernel + kx;
        sum += columns[(patch * images + image.quotient) * positions +
                       oy.quotient * shape.out_width + ox.quotient];
      }
    }
    dx[i] = sum;
  }
};

// by_filter[F, N] = y[images, F, P]
struct ImagesToFilters {
  std::size_t filters;
  std::size_t images;
  std::size_t positions;
  const float* y;
  float* by_filter;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const Split filter = Divide(i, images * positions);
    const Split image = Divide(filter.remainder, positions);
    by_filter[i] = y[(image.quotient * filters + filter.quotient) * positions + image.remainder];
  }
};

// y[images, F, P] = activation(by_filter[F, N] + bias[F])
struct FiltersToImages {
  std::size_t filters;
  std::size_t images;
  std::size_t positions;
  const float* by_filter;
  const float* bias;
  Activation activation;
  float* y;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const Split row = Divide(i, positions);
    const Split image = Divide(row.quotient, filters);
    const std::size_t from =
        (image.remainder * images + image.quotient) * positions + row.remainder;
    y[i] = ActivationOf(activation, by_filter[from] + bias[image.remainder]);
  }
};

// Element i of a pool's output: the corner of its window within its row of x.
struct Window {
  std::size_t row;
  std::size_t corner;
};
DOMICILE_BOTH inline Window WindowOf(const PoolShape& s, std::size_t i) {
  const Split row = Divide(i, s.outputs);
  const Split channel = Divide(row.remainder, s.out_height * s.out_width);
  const Split place = Divide(channel.remainder, s.out_width);
  return {row.quotient, (channel.quotient * s.height + place.quotient * s.stride) * s.width +
                            place.remainder * s.stride};
}

struct MaxPool {
  PoolShape shape;
  const float* x;
  float* y;
  std::uint32_t* chosen;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const Window window = WindowOf(shape, i);
    const float* const in = x + window.row * shape.channels * shape.height * shape.width;
    std::size_t best = window.corner;
    for (std::size_t ky = 0; ky < shape.window; ++ky) {
      for (std::size_t kx = 0; kx < shape.window; ++kx) {
        const std::size_t at = window.corner + ky * shape.width + kx;
        // NaN wins, so that it is seen; the first of equals stays.
        best = in[at] > in[best] || in[at] != in[at] ? at : best;
      }
    }
    y[i] = in[best];
    chosen[i] = static_cast<std::uint32_t>(best);
  }
};

struct AveragePool {
  PoolShape shape;
  const float* x;
  float* y;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const Window window = WindowOf(shape, i);
    const float* const in = x + window.row * shape.channels * shape.height * shape.width;
    float sum = 0;
    for (std::size_t ky = 0; ky < shape.window; ++ky) {
      for (std::size_t kx = 0; kx < shape.window; ++kx) {
        sum += in[window.corner + ky * shape.width + kx];
      }
    }
    y[i] = sum * (1.0F / static_cast<float>(shape.window * shape.window));
  }
};

// The windows along one axis that hold place `at`: [first, last).
struct Windows {
  std::size_t first;
  std::size_t last;
};
DOMICILE_BOTH inline Windows WindowsWith(std::size_t at, std::size_t window, std::size_t stride,
                                         std::size_t outputs) {
  const std::size_t first = at < window ? 0 : (at - window) / stride + 1;
  return {first, Least(at / stride + 1, outputs)};
}

// One i for each element of dx. With `chosen`: of a max pool, else of an average pool.
struct PoolGradient {
  PoolShape shape;
  const std::uint32_t* chosen;
  const float* dy;
  float* dx;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const std::size_t inputs = shape.channels * shape.height * shape.width;
    const Split row = Divide(i, inputs);
    const Split line = Divide(row.remainder, shape.width);
    const Split channel = Divide(line.quotient, shape.height);
    const Windows down =
        WindowsWith(channel.remainder, shape.window, shape.stride, shape.out_height);
    const Windows along = WindowsWith(line.remainder, shape.window, shape.stride, shape.out_width);
    const float share = 1.0F / static_cast<float>(shape.window * shape.window);
    float sum = 0;
    for (std::size_t oy = down.first; oy < down.last; ++oy) {
      for (std::size_t ox = along.first; ox < along.last; ++ox) {
        const std::size_t out = row.quotient * shape.outputs +
                                (channel.quotient * shape.out_height + oy) * shape.out_width + ox;
        if (chosen == nullptr) {
          sum += dy[out] * share;
        } else if (chosen[out] == row.remainder) {
          sum += dy[out];
        }
      }
    }
    dx[i] = sum;
  }
};

// y = x * a[c] + z * b[c] + d[c]; z may be null.
struct ChannelAffine {
  std::size_t channels;
  std::size_t positions;
  const float* x;
  const float* a;
  const float* z;
  const float* b;
  const float* d;
  float* y;
  DOMICILE_BOTH void operator()(std::size_t i) const {
    const std::size_t c = Divide(Divide(i, positions).quotient, channels).remainder;
    y[i] = x[i] * a[c] + (z == nullptr ? 0.0F : z[i] * b[c]) + d[c];
  }
};

}  // namespace domicile::models::cuda

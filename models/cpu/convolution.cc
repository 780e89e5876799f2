// Images. Compiled with -O3 and -march=DOMICILE_ISA; see kernels.h for what that forbids here.
#include <cstring>

#include "models/cpu/kernels.h"

namespace domicile::models::kernels {
namespace {

struct Range {
  std::size_t first;
  std::size_t last;  // not in the range
};

// The output places o whose input o * stride + offset - padding lies in [0, size).
Range InsideOf(std::size_t offset, std::size_t size, std::size_t outputs, std::size_t stride,
               std::size_t padding) {
  std::size_t first = 0;
  if (offset < padding) {
    first = (padding - offset + stride - 1) / stride;
  }
  std::size_t last = 0;
  if (offset < size + padding) {
    last = (size + padding - offset - 1) / stride + 1;
  }
  last = last < outputs ? last : outputs;
  return {first < last ? first : last, last};
}

// run(column, image, count): `count` neighbours in a row of columns and where they are in the image
// (from one to the next: stride). The places between are padding.
template <typename Run>
void ForEachStretch(const ConvShape& s, const Run& run) {
  std::size_t column = 0;
  for (std::size_t c = 0; c < s.channels; ++c) {
    for (std::size_t ky = 0; ky < s.kernel; ++ky) {
      const Range rows = InsideOf(ky, s.height, s.out_height, s.stride, s.padding);
      for (std::size_t kx = 0; kx < s.kernel; ++kx) {
        const Range places = InsideOf(kx, s.width, s.out_width, s.stride, s.padding);
        for (std::size_t oy = rows.first; oy < rows.last && places.first < places.last; ++oy) {
          const std::size_t y = oy * s.stride + ky - s.padding;
          const std::size_t x = places.first * s.stride + kx - s.padding;
          run(column + oy * s.out_width + places.first, (c * s.height + y) * s.width + x,
              places.last - places.first);
        }
        column += s.out_height * s.out_width;
      }
    }
  }
}

}  // namespace

void ImageToColumns(const ConvShape& s, const float* x, float* columns) {
  if (s.padding > 0) {
    std::memset(columns, 0, s.patch * s.out_height * s.out_width * sizeof(float));
  }
  ForEachStretch(s, [&](std::size_t column, std::size_t image, std::size_t count) {
    float* const to = columns + column;
    const float* const from = x + image;
    if (s.stride == 1) {
      for (std::size_t i = 0; i < count; ++i) {
        to[i] = from[i];
      }
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        to[i] = from[i * s.stride];
      }
    }
  });
}

void ColumnsToImage(const ConvShape& s, const float* columns, float* dx) {
  ForEachStretch(s, [&](std::size_t column, std::size_t image, std::size_t count) {
    const float* const from = columns + column;
    float* const to = dx + image;
    if (s.stride == 1) {
      for (std::size_t i = 0; i < count; ++i) {
        to[i] += from[i];
      }
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        to[i * s.stride] += from[i];
      }
    }
  });
}

void BiasActivateImage(const ConvShape& s, const float* bias, Activation activation, float* y) {
  const std::size_t positions = s.out_height * s.out_width;
  for (std::size_t f = 0; f < s.filters; ++f) {
    float* const out = y + f * positions;
    const float add = bias[f];
    if (activation == Activation::kRelu) {
      for (std::size_t i = 0; i < positions; ++i) {
        const float value = out[i] + add;
        out[i] = value > 0.0F ? value : 0.0F;
      }
    } else {
      for (std::size_t i = 0; i < positions; ++i) {
        out[i] += add;
      }
    }
  }
  if (activation != Activation::kNone && activation != Activation::kRelu) {
    Activate(activation, y, s.outputs, y);
  }
}

void AddImageBiasGradient(const ConvShape& s, const float* dy, float* dbias) {
  const std::size_t positions = s.out_height * s.out_width;
  for (std::size_t f = 0; f < s.filters; ++f) {
    double sum = 0;
    for (std::size_t i = 0; i < positions; ++i) {
      sum += static_cast<double>(dy[f * positions + i]);
    }
    dbias[f] += static_cast<float>(sum);
  }
}

void MaxPool(const PoolShape& s, const float* x, float* y, std::uint32_t* chosen) {
  std::size_t out = 0;
  for (std::size_t c = 0; c < s.channels; ++c) {
    for (std::size_t oy = 0; oy < s.out_height; ++oy) {
      for (std::size_t ox = 0; ox < s.out_width; ++ox, ++out) {
        const std::size_t corner = (c * s.height + oy * s.stride) * s.width + ox * s.stride;
        std::size_t best = corner;
        for (std::size_t ky = 0; ky < s.window; ++ky) {
          for (std::size_t kx = 0; kx < s.window; ++kx) {
            const std::size_t at = corner + ky * s.width + kx;
            // NaN wins, so that it is seen; the first of equals stays.
            best = x[at] > x[best] || x[at] != x[at] ? at : best;
          }
        }
        y[out] = x[best];
        chosen[out] = static_cast<std::uint32_t>(best);
      }
    }
  }
}

void MaxPoolGradient(const PoolShape& s, const std::uint32_t* chosen, const float* dy, float* dx) {
  std::memset(dx, 0, s.channels * s.height * s.width * sizeof(float));
  for (std::size_t i = 0; i < s.outputs; ++i) {
    dx[chosen[i]] += dy[i];
  }
}

void AveragePool(const PoolShape& s, const float* x, float* y) {
  const float share = 1.0F / static_cast<float>(s.window * s.window);
  std::size_t out = 0;
  for (std::size_t c = 0; c < s.channels; ++c) {
    for (std::size_t oy = 0; oy < s.out_height; ++oy) {
      for (std::size_t ox = 0; ox < s.out_width; ++ox, ++out) {
        const float* const corner = x + (c * s.height + oy * s.stride) * s.width + ox * s.stride;
        float sum = 0;
        for (std::size_t ky = 0; ky < s.window; ++ky) {
          for (std::size_t kx = 0; kx < s.window; ++kx) {
            sum += corner[ky * s.width + kx];
          }
        }
        y[out] = sum * share;
      }
    }
  }
}

void AveragePoolGradient(const PoolShape& s, const float* dy, float* dx) {
  std::memset(dx, 0, s.channels * s.height * s.width * sizeof(float));
  const float share = 1.0F / static_cast<float>(s.window * s.window);
  std::size_t out = 0;
  for (std::size_t c = 0; c < s.channels; ++c) {
    for (std::size_t oy = 0; oy < s.out_height; ++oy) {
      for (std::size_t ox = 0; ox < s.out_width; ++ox, ++out) {
        float* const corner = dx + (c * s.height + oy * s.stride) * s.width + ox * s.stride;
        for (std::size_t ky = 0; ky < s.window; ++ky) {
          for (std::size_t kx = 0; kx < s.window; ++kx) {
            corner[ky * s.width + kx] += dy[out] * share;
          }
        }
      }
    }
  }
}

}  // namespace domicile::models::kernels

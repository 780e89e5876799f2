// Convolutions and pools of the CPU device. One image at a time: its columns stay in the cache
// between being written and multiplied.
#include <memory>

#include "models/cpu/internal/operations.h"
#include "models/cpu/kernels.h"

namespace domicile::models {
namespace {

constexpr std::size_t kMostPartials = 16;

std::size_t Inputs(const ConvShape& s) { return s.channels * s.height * s.width; }
std::size_t Inputs(const PoolShape& s) { return s.channels * s.height * s.width; }
std::size_t Positions(const ConvShape& s) { return s.out_height * s.out_width; }

// Not zeroed: all of it is written.
// NOLINTNEXTLINE(modernize-avoid-c-arrays): an array of a size known at run time
std::unique_ptr<float[]> Columns(const ConvShape& shape) {
  // NOLINTNEXTLINE(modernize-avoid-c-arrays): as above
  return std::make_unique_for_overwrite<float[]>(shape.patch * Positions(shape));
}

std::size_t ImagesPerPiece(std::size_t images) {
  return std::max<std::size_t>(2, (images + kMostPartials - 1) / kMostPartials);
}

}  // namespace

void CpuDevice::Conv2d(const ConvShape& shape, ConstMatrix x, std::span<const float> filters,
                       std::span<const float> bias, Activation activation, Matrix y) {
  DOMICILE_CHECK(x.columns == Inputs(shape) && y.columns == shape.outputs && x.rows == y.rows &&
                 filters.size() == shape.filters * shape.patch && bias.size() == shape.filters);
  const std::size_t positions = Positions(shape);
  Cut(x.rows, ImagesPerPiece(x.rows), [&](std::size_t first, std::size_t count) {
    const auto columns = Columns(shape);
    for (std::size_t row = first; row < first + count; ++row) {
      kernels::ImageToColumns(shape, x.data + row * x.columns, columns.get());
      float* const out = y.data + row * y.columns;
      kernels::Gemm({.m = shape.filters,
                     .n = positions,
                     .k = shape.patch,
                     .a = filters.data(),
                     .lda = shape.patch,
                     .b = columns.get(),
                     .ldb = positions,
                     .c = out,
                     .ldc = positions});
      kernels::BiasActivateImage(shape, bias.data(), activation, out);
    }
  });
}

void CpuDevice::Conv2dWeightGradient(const ConvShape& shape, ConstMatrix x, ConstMatrix dy,
                                     std::span<float> dfilters, std::span<float> dbias) {
  DOMICILE_CHECK(x.columns == Inputs(shape) && dy.columns == shape.outputs && x.rows == dy.rows &&
                 dfilters.size() == shape.filters * shape.patch && dbias.size() == shape.filters);
  if (x.rows == 0) {
    std::fill(dfilters.begin(), dfilters.end(), 0.0F);
    std::fill(dbias.begin(), dbias.end(), 0.0F);
    return;
  }
  const std::size_t positions = Positions(shape);
  const std::size_t per_piece = ImagesPerPiece(x.rows);
  const std::size_t pieces = NumPieces(x.rows, per_piece);
  // Filters and, after all of them, biases: each piece adds into its own.
  const std::size_t filters_size = dfilters.size();
  const std::size_t all_filters = pieces * filters_size;
  std::vector<float> biases(pieces * shape.filters, 0.0F);
  partials_.resize(std::max(partials_.size(), all_filters));
  Cut(x.rows, per_piece, [&](std::size_t first, std::size_t count) {
    const auto columns = Columns(shape);
    float* const partial = partials_.data() + first / per_piece * filters_size;
    for (std::size_t row = first; row < first + count; ++row) {
      kernels::ImageToColumns(shape, x.data + row * x.columns, columns.get());
      const float* const gradient = dy.data + row * dy.columns;
      kernels::Gemm({.m = shape.filters,
                     .n = shape.patch,
                     .k = positions,
                     .a = gradient,
                     .lda = positions,
                     .b = columns.get(),
                     .ldb = positions,
                     .transpose_b = true,
                     .c = partial,
                     .ldc = shape.patch,
                     .accumulate = row > first});
      kernels::AddImageBiasGradient(shape, gradient,
                                    biases.data() + first / per_piece * shape.filters);
    }
  });
  SumPartials(pieces, filters_size, dfilters);
  std::copy_n(biases.begin(), shape.filters, dbias.begin());
  for (std::size_t piece = 1; piece < pieces; ++piece) {
    kernels::Add(dbias.data(), biases.data() + piece * shape.filters, shape.filters, dbias.data());
  }
}

void CpuDevice::Conv2dInputGradient(const ConvShape& shape, ConstMatrix dy,
                                    std::span<const float> filters, Matrix dx) {
  DOMICILE_CHECK(dx.columns == Inputs(shape) && dy.columns == shape.outputs && dx.rows == dy.rows &&
                 filters.size() == shape.filters * shape.patch);
  const std::size_t positions = Positions(shape);
  Cut(dy.rows, ImagesPerPiece(dy.rows), [&](std::size_t first, std::size_t count) {
    const auto columns = Columns(shape);
    for (std::size_t row = first; row < first + count; ++row) {
      kernels::Gemm({.m = shape.patch,
                     .n = positions,
                     .k = shape.filters,
                     .a = filters.data(),
                     .lda = shape.patch,
                     .transpose_a = true,
                     .b = dy.data + row * dy.columns,
                     .ldb = positions,
                     .c = columns.get(),
                     .ldc = positions});
      float* const image = dx.data + row * dx.columns;
      std::fill_n(image, dx.columns, 0.0F);
      kernels::ColumnsToImage(shape, columns.get(), image);
    }
  });
}

void CpuDevice::MaxPool(const PoolShape& shape, ConstMatrix x, Matrix y,
                        std::span<std::uint32_t> chosen) {
  DOMICILE_CHECK(x.columns == Inputs(shape) && y.columns == shape.outputs && x.rows == y.rows &&
                 chosen.size() == y.rows * y.columns);
  ForEachRow(x.rows, x.columns, [&](std::size_t row) {
    kernels::MaxPool(shape, x.data + row * x.columns, y.data + row * y.columns,
                     chosen.data() + row * y.columns);
  });
}

void CpuDevice::MaxPoolGradient(const PoolShape& shape, std::span<const std::uint32_t> chosen,
                                ConstMatrix dy, Matrix dx) {
  DOMICILE_CHECK(dx.columns == Inputs(shape) && dy.columns == shape.outputs && dx.rows == dy.rows &&
                 chosen.size() == dy.rows * dy.columns);
  ForEachRow(dy.rows, dx.columns, [&](std::size_t row) {
    kernels::MaxPoolGradient(shape, chosen.data() + row * dy.columns, dy.data + row * dy.columns,
                             dx.data + row * dx.columns);
  });
}

void CpuDevice::AveragePool(const PoolShape& shape, ConstMatrix x, Matrix y) {
  DOMICILE_CHECK(x.columns == Inputs(shape) && y.columns == shape.outputs && x.rows == y.rows);
  ForEachRow(x.rows, x.columns, [&](std::size_t row) {
    kernels::AveragePool(shape, x.data + row * x.columns, y.data + row * y.columns);
  });
}

void CpuDevice::AveragePoolGradient(const PoolShape& shape, ConstMatrix dy, Matrix dx) {
  DOMICILE_CHECK(dx.columns == Inputs(shape) && dy.columns == shape.outputs && dx.rows == dy.rows);
  ForEachRow(dy.rows, dx.columns, [&](std::size_t row) {
    kernels::AveragePoolGradient(shape, dy.data + row * dy.columns, dx.data + row * dx.columns);
  });
}

}  // namespace domicile::models

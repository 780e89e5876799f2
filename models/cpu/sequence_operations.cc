// Norms, embeddings and attention of the CPU device.
#include <memory>

#include "models/cpu/internal/operations.h"
#include "models/cpu/kernels.h"

namespace domicile::models {
namespace {

constexpr std::size_t kMostPartials = 16;

// One head of one sequence of the three operands, which all have the layout of `x`.
kernels::Head HeadOf(const AttentionShape& shape, ConstMatrix q, ConstMatrix k, ConstMatrix v,
                     const DropoutMask& dropout, std::size_t index) {
  const std::size_t sequence = index / shape.heads;
  const std::size_t at = sequence * shape.length * q.columns + (index % shape.heads) * shape.width;
  return {.q = q.data + at,
          .k = k.data + at,
          .v = v.data + at,
          .stride = q.columns,
          .length = shape.length,
          .width = shape.width,
          .causal = shape.causal,
          .mask = nullptr,
          .dropout_key = dropout.key,
          .dropout_first = dropout.first + index * shape.length * shape.length,
          .dropout_rate = dropout.rate};
}

bool Fits(const AttentionShape& shape, ConstMatrix x) {
  return shape.length > 0 && x.columns == shape.heads * shape.width && x.rows % shape.length == 0;
}

// Not zeroed.
// NOLINTNEXTLINE(modernize-avoid-c-arrays): an array of a size known at run time
std::unique_ptr<float[]> Scratch(std::size_t size) {
  // NOLINTNEXTLINE(modernize-avoid-c-arrays): as above
  return std::make_unique_for_overwrite<float[]>(size);
}

float TokenShare(std::size_t length, const std::uint8_t* mask) {
  const std::size_t counted =
      mask == nullptr
          ? length
          : length - static_cast<std::size_t>(std::count(mask, mask + length, std::uint8_t{0}));
  return counted == 0 ? 0.0F : 1.0F / static_cast<float>(counted);
}

}  // namespace

void CpuDevice::GroupNorm(const NormShape& shape, ConstMatrix x, std::span<const float> scale,
                          std::span<const float> shift, Matrix y, std::span<float> statistics) {
  DOMICILE_CHECK(x.columns == shape.channels * shape.positions && y.rows == x.rows &&
                 y.columns == x.columns && scale.size() == shape.channels &&
                 shift.size() == shape.channels && shape.channels % shape.groups == 0 &&
                 statistics.size() == 2 * x.rows * shape.groups);
  ForEachRow(x.rows, x.columns, [&](std::size_t row) {
    kernels::GroupNormRow(shape, x.data + row * x.columns, scale.data(), shift.data(),
                          y.data + row * y.columns, statistics.data() + 2 * row * shape.groups);
  });
}

void CpuDevice::GroupNormGradient(const NormShape& shape, ConstMatrix x,
                                  std::span<const float> scale, std::span<const float> statistics,
                                  ConstMatrix dy, Matrix dx, std::span<float> dscale,
                                  std::span<float> dshift) {
  DOMICILE_CHECK(x.columns == shape.channels * shape.positions && dy.rows == x.rows &&
                 dy.columns == x.columns && statistics.size() == 2 * x.rows * shape.groups &&
                 dscale.size() == dshift.size() &&
                 (dscale.empty() || dscale.size() == shape.channels));
  const std::size_t per_piece =
      std::max<std::size_t>(4, (x.rows + kMostPartials - 1) / kMostPartials);
  const std::size_t pieces = std::max<std::size_t>(1, NumPieces(x.rows, per_piece));
  const bool wanted = !dscale.empty();
  std::vector<float> sums(wanted ? 2 * pieces * shape.channels : 0, 0.0F);
  Cut(x.rows, per_piece, [&](std::size_t first, std::size_t count) {
    float* const partial =
        wanted ? sums.data() + 2 * (first / per_piece) * shape.channels : nullptr;
    for (std::size_t row = first; row < first + count; ++row) {
      kernels::GroupNormGradientRow(
          shape, x.data + row * x.columns, scale.data(), statistics.data() + 2 * row * shape.groups,
          dy.data + row * dy.columns, dx.data == nullptr ? nullptr : dx.data + row * dx.columns,
          partial, wanted ? partial + shape.channels : nullptr);
    }
  });
  for (std::size_t c = 0; wanted && c < shape.channels; ++c) {
    double of_scale = 0;
    double of_shift = 0;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      of_scale += static_cast<double>(sums[2 * piece * shape.channels + c]);
      of_shift += static_cast<double>(sums[(2 * piece + 1) * shape.channels + c]);
    }
    dscale[c] = static_cast<float>(of_scale);
    dshift[c] = static_cast<float>(of_shift);
  }
}

void CpuDevice::ChannelSums(ConstMatrix x, std::span<const float> origin, ConstMatrix z,
                            std::span<const float> centre, std::span<double> first,
                            std::span<double> second) {
  const std::size_t channels = origin.size();
  DOMICILE_CHECK(channels > 0 && x.columns % channels == 0 && z.rows == x.rows &&
                 z.columns == x.columns && centre.size() == channels && first.size() == channels &&
                 second.size() == channels);
  const std::size_t positions = x.columns / channels;
  ForEachRow(channels, x.rows * positions, [&](std::size_t c) {
    kernels::ChannelSums(x.data + c * positions, origin[c], z.data + c * positions, centre[c],
                         x.rows, x.columns, positions, &first[c], &second[c]);
  });
}

void CpuDevice::ChannelAffine(ConstMatrix x, std::span<const float> a, ConstMatrix z,
                              std::span<const float> b, std::span<const float> d, Matrix y) {
  const std::size_t channels = a.size();
  DOMICILE_CHECK(channels > 0 && x.columns % channels == 0 && y.rows == x.rows &&
                 y.columns == x.columns && b.size() == channels && d.size() == channels &&
                 (z.data == nullptr || (z.rows == x.rows && z.columns == x.columns)));
  ForEachRow(x.rows, x.columns, [&](std::size_t row) {
    kernels::ChannelAffineRow(x.data + row * x.columns, a.data(),
                              z.data == nullptr ? nullptr : z.data + row * x.columns, b.data(),
                              d.data(), channels, x.columns / channels, y.data + row * y.columns);
  });
}

void CpuDevice::Gather(ConstMatrix table, std::span<const std::uint32_t> ids, bool accumulate,
                       Matrix y) {
  DOMICILE_CHECK(y.rows == ids.size() && y.columns == table.columns);
  ForEachRow(y.rows, y.columns, [&](std::size_t row) {
    DOMICILE_CHECK(ids[row] < table.rows);
    const float* const from = table.data + ids[row] * table.columns;
    float* const to = y.data + row * y.columns;
    if (accumulate) {
      kernels::Add(to, from, y.columns, to);
    } else {
      std::copy_n(from, y.columns, to);
    }
  });
}

void CpuDevice::ScatterAdd(std::span<const std::uint32_t> ids, ConstMatrix dy, Matrix dtable) {
  DOMICILE_CHECK(dy.rows == ids.size() && dy.columns == dtable.columns);
  // One thread: two rows may have one id, and the order of additions is part of the result.
  for (std::size_t row = 0; row < dy.rows; ++row) {
    DOMICILE_CHECK(ids[row] < dtable.rows);
    float* const to = dtable.data + ids[row] * dtable.columns;
    kernels::Add(to, dy.data + row * dy.columns, dy.columns, to);
  }
}

void CpuDevice::Attention(const AttentionShape& shape, ConstMatrix q, ConstMatrix k, ConstMatrix v,
                          std::span<const std::uint8_t> mask, const DropoutMask& dropout,
                          std::span<float> probabilities, Matrix y) {
  const std::size_t square = shape.length * shape.length;
  DOMICILE_CHECK(Fits(shape, q) && k.rows == q.rows && v.rows == q.rows && y.rows == q.rows &&
                 k.columns == q.columns && v.columns == q.columns && y.columns == q.columns &&
                 (mask.empty() || mask.size() == q.rows));
  const std::size_t heads = q.rows / shape.length * shape.heads;
  DOMICILE_CHECK(probabilities.size() == heads * square);
  Cut(heads, 1, [&](std::size_t index, std::size_t /*count*/) {
    kernels::Head head = HeadOf(shape, q, k, v, dropout, index);
    if (!mask.empty()) {
      head.mask = mask.data() + index / shape.heads * shape.length;
    }
    const auto scratch = Scratch(dropout.rate > 0 ? square : 1);
    kernels::Attention(head, probabilities.data() + index * square, scratch.get(),
                       y.data + (head.q - q.data));
  });
}

void CpuDevice::AttentionGradient(const AttentionShape& shape, ConstMatrix q, ConstMatrix k,
                                  ConstMatrix v, std::span<const float> probabilities,
                                  const DropoutMask& dropout, ConstMatrix dy, Matrix dq, Matrix dk,
                                  Matrix dv) {
  const std::size_t square = shape.length * shape.length;
  DOMICILE_CHECK(Fits(shape, q) && dy.rows == q.rows && dy.columns == q.columns &&
                 dq.rows == q.rows && dk.rows == q.rows && dv.rows == q.rows &&
                 dq.columns == q.columns && dk.columns == q.columns && dv.columns == q.columns);
  const std::size_t heads = q.rows / shape.length * shape.heads;
  DOMICILE_CHECK(probabilities.size() == heads * square);
  Cut(heads, 1, [&](std::size_t index, std::size_t /*count*/) {
    const kernels::Head head = HeadOf(shape, q, k, v, dropout, index);
    const std::ptrdiff_t at = head.q - q.data;
    const auto scratch = Scratch(2 * square);
    kernels::AttentionGradient(head, probabilities.data() + index * square, dy.data + at,
                               scratch.get(), dq.data + at, dk.data + at, dv.data + at);
  });
}

void CpuDevice::MeanOfTokens(ConstMatrix x, std::size_t length, std::span<const std::uint8_t> mask,
                             Matrix y) {
  DOMICILE_CHECK(length > 0 && x.rows == y.rows * length && x.columns == y.columns &&
                 (mask.empty() || mask.size() == x.rows));
  ForEachRow(y.rows, length * x.columns, [&](std::size_t sequence) {
    const std::uint8_t* const kept = mask.empty() ? nullptr : mask.data() + sequence * length;
    float* const out = y.data + sequence * y.columns;
    std::fill_n(out, y.columns, 0.0F);
    for (std::size_t token = 0; token < length; ++token) {
      if (kept == nullptr || kept[token] != 0) {
        kernels::Add(out, x.data + (sequence * length + token) * x.columns, x.columns, out);
      }
    }
    kernels::Scale(TokenShare(length, kept), y.columns, out);
  });
}

void CpuDevice::MeanOfTokensGradient(ConstMatrix dy, std::size_t length,
                                     std::span<const std::uint8_t> mask, Matrix dx) {
  DOMICILE_CHECK(length > 0 && dx.rows == dy.rows * length && dx.columns == dy.columns &&
                 (mask.empty() || mask.size() == dx.rows));
  ForEachRow(dy.rows, length * dx.columns, [&](std::size_t sequence) {
    const std::uint8_t* const kept = mask.empty() ? nullptr : mask.data() + sequence * length;
    const float share = TokenShare(length, kept);
    for (std::size_t token = 0; token < length; ++token) {
      float* const out = dx.data + (sequence * length + token) * dx.columns;
      std::fill_n(out, dx.columns, 0.0F);
      if (kept == nullptr || kept[token] != 0) {
        kernels::AddScaled(share, dy.data + sequence * dy.columns, dx.columns, out);
      }
    }
  });
}

}  // namespace domicile::models

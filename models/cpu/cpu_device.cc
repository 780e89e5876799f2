#include "models/cpu/cpu_device.h"

#include <chrono>

#include "models/cpu/internal/operations.h"
#include "models/cpu/kernels.h"

namespace domicile::models {

void CpuDevice::Dense(ConstMatrix x, const Weight& w, std::span<const float> bias,
                      Activation activation, Matrix y) {
  DOMICILE_CHECK(x.columns == w.inputs && y.rows == x.rows && y.columns == w.outputs &&
                 (bias.empty() || bias.size() == w.outputs));
  const bool out_in = w.layout == WeightLayout::kOutIn;
  CutProduct({.m = x.rows,
              .n = w.outputs,
              .k = w.inputs,
              .a = x.data,
              .lda = x.columns,
              .b = w.data,
              .ldb = out_in ? w.inputs : w.outputs,
              .transpose_b = out_in,
              .c = y.data,
              .ldc = w.outputs},
             [&](const kernels::Product& piece) {
               kernels::Gemm(piece);
               const auto first_column =
                   static_cast<std::size_t>(piece.c - y.data) % std::max<std::size_t>(1, piece.ldc);
               kernels::BiasActivate(bias.empty() ? nullptr : bias.data() + first_column,
                                     activation, piece.m, piece.n, piece.c, piece.ldc);
             });
}

void CpuDevice::DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) {
  DOMICILE_CHECK(x.rows == dy.rows && dw.rows == x.columns && dw.columns == dy.columns);
  CutProduct({.m = x.columns,
              .n = dy.columns,
              .k = x.rows,
              .a = x.data,
              .lda = x.columns,
              .transpose_a = true,
              .b = dy.data,
              .ldb = dy.columns,
              .c = dw.data,
              .ldc = dy.columns},
             &kernels::Gemm);
}

void CpuDevice::DenseBiasGradient(ConstMatrix dy, std::span<float> db) {
  DOMICILE_CHECK(db.size() == dy.columns);
  const std::size_t elements = dy.rows * dy.columns;
  Cut(dy.columns, elements <= kElementsPerPiece ? dy.columns : 64,
      [&](std::size_t first, std::size_t count) {
        kernels::SumRows(dy.data, dy.rows, dy.columns, first, count, db.data());
      });
}

void CpuDevice::DenseInputGradient(ConstMatrix dy, const Weight& w, bool accumulate, Matrix dx) {
  DOMICILE_CHECK(dy.columns == w.outputs && dx.columns == w.inputs && dx.rows == dy.rows);
  const bool out_in = w.layout == WeightLayout::kOutIn;
  CutProduct({.m = dy.rows,
              .n = w.inputs,
              .k = w.outputs,
              .a = dy.data,
              .lda = dy.columns,
              .b = w.data,
              .ldb = out_in ? w.inputs : w.outputs,
              .transpose_b = !out_in,
              .c = dx.data,
              .ldc = dx.columns,
              .accumulate = accumulate},
             &kernels::Gemm);
}

void CpuDevice::Activate(Activation activation, ConstMatrix x, Matrix y) {
  DOMICILE_CHECK(x.rows == y.rows && x.columns == y.columns);
  Cut(x.rows * x.columns, kElementsPerPiece, [&](std::size_t first, std::size_t count) {
    kernels::Activate(activation, x.data + first, count, y.data + first);
  });
}

void CpuDevice::ActivationGradient(Activation activation, ConstMatrix saved, Matrix dy) {
  DOMICILE_CHECK(saved.rows == dy.rows && saved.columns == dy.columns);
  if (activation == Activation::kNone) {
    return;
  }
  Cut(dy.rows * dy.columns, kElementsPerPiece, [&](std::size_t first, std::size_t count) {
    kernels::ActivationGradient(activation, saved.data + first, count, dy.data + first);
  });
}

void CpuDevice::Dropout(const DropoutMask& mask, ConstMatrix x, Matrix y) {
  DOMICILE_CHECK(x.rows == y.rows && x.columns == y.columns && mask.rate >= 0 && mask.rate < 1);
  Cut(x.rows * x.columns, kElementsPerPiece, [&](std::size_t first, std::size_t count) {
    kernels::Dropout(mask.key, mask.first + first, mask.rate, x.data + first, count,
                     y.data + first);
  });
}

double CpuDevice::BinaryCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels,
                                     float scale, Matrix dz) {
  DOMICILE_CHECK(z.columns == 1 && labels.size() == z.rows);
  return kernels::BinaryCrossEntropy(z.data, labels.data(), z.rows, scale, dz.data);
}

double CpuDevice::SoftmaxCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels,
                                      float scale, Matrix dz) {
  DOMICILE_CHECK(labels.size() == z.rows);
  return kernels::SoftmaxCrossEntropy(z.data, labels.data(), z.rows, z.columns, scale, dz.data);
}

double CpuDevice::SquaredError(ConstMatrix z, ConstMatrix targets, float scale, Matrix dz) {
  DOMICILE_CHECK(targets.rows == z.rows && targets.columns == z.columns);
  return kernels::SquaredError(z.data, targets.data, z.rows, z.columns, scale, dz.data);
}

void CpuDevice::AddScaled(float a, std::span<const float> x, std::span<float> y) {
  DOMICILE_CHECK(x.size() == y.size());
  Cut(x.size(), kElementsPerPiece, [&](std::size_t first, std::size_t count) {
    kernels::AddScaled(a, x.data() + first, count, y.data() + first);
  });
}

void CpuDevice::Add(std::span<const float> a, std::span<const float> b, std::span<float> y) {
  DOMICILE_CHECK(a.size() == y.size() && b.size() == y.size());
  Cut(y.size(), kElementsPerPiece, [&](std::size_t first, std::size_t count) {
    kernels::Add(a.data() + first, b.data() + first, count, y.data() + first);
  });
}

void CpuDevice::Scale(float a, std::span<float> x) {
  Cut(x.size(), kElementsPerPiece,
      [&](std::size_t first, std::size_t count) { kernels::Scale(a, count, x.data() + first); });
}

double CpuDevice::SquaredNorm(std::span<const float> x) {
  std::vector<double> parts(NumPieces(x.size(), kElementsPerPiece));
  Cut(x.size(), kElementsPerPiece, [&](std::size_t first, std::size_t count) {
    parts[first / kElementsPerPiece] = kernels::SquaredNorm(x.data() + first, count);
  });
  double sum = 0;
  for (const double part : parts) {
    sum += part;
  }
  return sum;
}

void CpuDevice::Sgd(const SgdStep& step, std::span<const float> gradient, std::span<float> momentum,
                    std::span<float> parameters) {
  DOMICILE_CHECK(gradient.size() == parameters.size() && momentum.size() == parameters.size());
  Cut(gradient.size(), kElementsPerPiece, [&](std::size_t first, std::size_t count) {
    kernels::Sgd(step, gradient.data() + first, count, momentum.data() + first,
                 parameters.data() + first);
  });
}

void CpuDevice::Adam(const AdamStep& step, std::span<const float> gradient,
                     std::span<float> first_moment, std::span<float> second_moment,
                     std::span<float> parameters) {
  DOMICILE_CHECK(gradient.size() == parameters.size() && first_moment.size() == parameters.size() &&
                 second_moment.size() == parameters.size());
  Cut(gradient.size(), kElementsPerPiece, [&](std::size_t first, std::size_t count) {
    kernels::Adam(step, gradient.data() + first, count, first_moment.data() + first,
                  second_moment.data() + first, parameters.data() + first);
  });
}

void CpuDevice::SumPartials(std::size_t count, std::size_t size, std::span<float> sum) {
  DOMICILE_CHECK(sum.size() == size && partials_.size() >= count * size);
  Cut(size, kElementsPerPiece / 8, [&](std::size_t first, std::size_t length) {
    std::copy_n(partials_.begin() + static_cast<std::ptrdiff_t>(first), length,
                sum.begin() + static_cast<std::ptrdiff_t>(first));
    for (std::size_t partial = 1; partial < count; ++partial) {
      kernels::Add(sum.data() + first, partials_.data() + partial * size + first, length,
                   sum.data() + first);
    }
  });
}

std::unique_ptr<Device> MakeCpuDevice(std::size_t num_threads) {
  return std::make_unique<CpuDevice>(num_threads);
}

std::string_view GemmKernel() { return kernels::GemmName(); }

double MeasureGemmGflops(std::size_t n, double seconds) {
  using Clock = std::chrono::steady_clock;
  Tensor a({n, n});
  Tensor b({n, n});
  Tensor c({n, n});
  std::fill(a.Values().begin(), a.Values().end(), 0.5F);
  std::fill(b.Values().begin(), b.Values().end(), 0.25F);
  const kernels::Product product = {.m = n,
                                    .n = n,
                                    .k = n,
                                    .a = a.Values().data(),
                                    .lda = n,
                                    .b = b.Values().data(),
                                    .ldb = n,
                                    .c = c.Values().data(),
                                    .ldc = n};
  const double operations =
      2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  double best = 0;
  const auto start = Clock::now();
  do {
    const auto before = Clock::now();
    kernels::Gemm(product);
    const double took = std::chrono::duration<double>(Clock::now() - before).count();
    best = std::max(best, operations / took / 1e9);
  } while (std::chrono::duration<double>(Clock::now() - start).count() < seconds);
  return best;
}

}  // namespace domicile::models

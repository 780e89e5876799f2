#include "models/cpu/cpu_device.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "models/cpu/kernels.h"
#include "models/thread_pool.h"

namespace domicile::models {
namespace {

// INVARIANT: how an operation is cut depends on its shape alone, never on the number of threads.
// A piece is worth waking a thread for (some 10 us) and large enough for a good matrix product.
constexpr std::size_t kRowsPerPiece = 64;
constexpr std::size_t kInputsPerPiece = 128;
constexpr std::size_t kElementsPerPiece = std::size_t{1} << 16U;
constexpr std::size_t kSmallWork = std::size_t{1} << 18U;  // multiplications done in one piece

std::size_t NumPieces(std::size_t size, std::size_t per_piece) {
  return (size + per_piece - 1) / per_piece;
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(std::size_t num_threads) : pool_(num_threads) {}

  void Dense(ConstMatrix x, ConstMatrix w, std::span<const float> bias, Activation activation,
             Matrix y) override {
    DOMICILE_CHECK(x.columns == w.rows && y.rows == x.rows && y.columns == w.columns &&
                   bias.size() == w.columns);
    ForRows(x.rows, w.rows * w.columns, [&](std::size_t first, std::size_t count) {
      kernels::Dense(x.data + first * x.columns, w.data, bias.data(),
                     static_cast<unsigned>(activation), count, w.rows, w.columns,
                     y.data + first * y.columns);
    });
  }

  void DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) override {
    DOMICILE_CHECK(x.rows == dy.rows && dw.rows == x.columns && dw.columns == dy.columns);
    const std::size_t work = x.rows * x.columns * dy.columns;
    Cut(x.columns, work <= kSmallWork ? x.columns : kInputsPerPiece,
        [&](std::size_t first, std::size_t count) {
          kernels::DenseWeightGradient(x.data, dy.data, x.rows, x.columns, dy.columns, first, count,
                                       dw.data);
        });
  }

  void DenseBiasGradient(ConstMatrix dy, std::span<float> db) override {
    DOMICILE_CHECK(db.size() == dy.columns);
    kernels::DenseBiasGradient(dy.data, dy.rows, dy.columns, db.data());
  }

  void DenseInputGradient(ConstMatrix dy, ConstMatrix w, Matrix dx) override {
    DOMICILE_CHECK(dy.columns == w.columns && dx.columns == w.rows && dx.rows == dy.rows);
    ForRows(dy.rows, w.rows * w.columns, [&](std::size_t first, std::size_t count) {
      kernels::DenseInputGradient(dy.data + first * dy.columns, w.data, count, w.rows, w.columns,
                                  dx.data + first * dx.columns);
    });
  }

  void ActivationGradient(Activation activation, ConstMatrix y, Matrix dy) override {
    DOMICILE_CHECK(y.rows == dy.rows && y.columns == dy.columns);
    Cut(y.rows * y.columns, kElementsPerPiece, [&](std::size_t first, std::size_t count) {
      kernels::ActivationGradient(static_cast<unsigned>(activation), y.data + first, count,
                                  dy.data + first);
    });
  }

  double BinaryCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels, float scale,
                            Matrix dz) override {
    DOMICILE_CHECK(z.columns == 1 && labels.size() == z.rows);
    return kernels::BinaryCrossEntropy(z.data, labels.data(), z.rows, scale, dz.data);
  }

  double SoftmaxCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels, float scale,
                             Matrix dz) override {
    DOMICILE_CHECK(labels.size() == z.rows);
    return kernels::SoftmaxCrossEntropy(z.data, labels.data(), z.rows, z.columns, scale, dz.data);
  }

  void AddScaled(float a, std::span<const float> x, std::span<float> y) override {
    DOMICILE_CHECK(x.size() == y.size());
    Cut(x.size(), kElementsPerPiece, [&](std::size_t first, std::size_t count) {
      kernels::AddScaled(a, x.data() + first, count, y.data() + first);
    });
  }

  void Sgd(const SgdStep& step, std::span<const float> gradient, std::span<float> momentum,
           std::span<float> parameters) override {
    DOMICILE_CHECK(gradient.size() == parameters.size() && momentum.size() == parameters.size());
    Cut(gradient.size(), kElementsPerPiece, [&](std::size_t first, std::size_t count) {
      kernels::Sgd(step.learning_rate, step.momentum, gradient.data() + first, count,
                   momentum.data() + first, parameters.data() + first);
    });
  }

  void Adam(const AdamStep& step, std::span<const float> gradient, std::span<float> first_moment,
            std::span<float> second_moment, std::span<float> parameters) override {
    DOMICILE_CHECK(gradient.size() == parameters.size() &&
                   first_moment.size() == parameters.size() &&
                   second_moment.size() == parameters.size());
    const kernels::AdamConstants constants = {.rate = step.learning_rate,
                                              .beta1 = step.beta1,
                                              .beta2 = step.beta2,
                                              .epsilon = step.epsilon,
                                              .correction1 = step.correction1,
                                              .correction2_root = std::sqrt(step.correction2)};
    Cut(gradient.size(), kElementsPerPiece, [&](std::size_t first, std::size_t count) {
      kernels::Adam(constants, gradient.data() + first, count, first_moment.data() + first,
                    second_moment.data() + first, parameters.data() + first);
    });
  }

 private:
  // run(first, count) for consecutive stretches of `per_piece`, the last one shorter.
  template <typename Run>
  void Cut(std::size_t size, std::size_t per_piece, const Run& run) {
    if (size == 0) {
      return;
    }
    pool_.Run(NumPieces(size, per_piece), [&](std::size_t piece) {
      const std::size_t first = piece * per_piece;
      run(first, std::min(per_piece, size - first));
    });
  }

  template <typename Run>
  void ForRows(std::size_t rows, std::size_t work_per_row, const Run& run) {
    Cut(rows, rows * work_per_row <= kSmallWork ? rows : kRowsPerPiece, run);
  }

  ThreadPool pool_;
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice(std::size_t num_threads) {
  return std::make_unique<CpuDevice>(num_threads);
}

double MeasureGemmGflops(std::size_t n, double seconds) {
  using Clock = std::chrono::steady_clock;
  Tensor a({n, n});
  Tensor b({n, n});
  Tensor c({n, n});
  std::fill(a.Values().begin(), a.Values().end(), 0.5F);
  std::fill(b.Values().begin(), b.Values().end(), 0.25F);
  const double operations =
      2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  double best = 0;
  const auto start = Clock::now();
  do {
    const auto before = Clock::now();
    kernels::Multiply(a.Values().data(), b.Values().data(), n, c.Values().data());
    const double took = std::chrono::duration<double>(Clock::now() - before).count();
    best = std::max(best, operations / took / 1e9);
  } while (std::chrono::duration<double>(Clock::now() - start).count() < seconds);
  return best;
}

}  // namespace domicile::models

// The CPU device as a class, for the files that implement it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/cpu/kernels.h"
#include "models/layers/device.h"
#include "models/tensor.h"
#include "models/thread_pool.h"

namespace domicile::models {

// INVARIANT: no bit of a result depends on the number of threads. What adds up partial results is
// cut by shape alone; what computes each element by itself (matrix products among them, see
// kernels::Gemm) may be cut by the number of threads.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(std::size_t num_threads) : pool_(num_threads) {}

  void Dense(ConstMatrix x, const Weight& w, std::span<const float> bias, Activation activation,
             Matrix y) override;
  void DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) override;
  void DenseBiasGradient(ConstMatrix dy, std::span<float> db) override;
  void DenseInputGradient(ConstMatrix dy, const Weight& w, bool accumulate, Matrix dx) override;

  void Activate(Activation activation, ConstMatrix x, Matrix y) override;
  void ActivationGradient(Activation activation, ConstMatrix saved, Matrix dy) override;
  void Dropout(const DropoutMask& mask, ConstMatrix x, Matrix y) override;

  void Conv2d(const ConvShape& shape, ConstMatrix x, std::span<const float> filters,
              std::span<const float> bias, Activation activation, Matrix y) override;
  void Conv2dWeightGradient(const ConvShape& shape, ConstMatrix x, ConstMatrix dy,
                            std::span<float> dfilters, std::span<float> dbias) override;
  void Conv2dInputGradient(const ConvShape& shape, ConstMatrix dy, std::span<const float> filters,
                           Matrix dx) override;
  void MaxPool(const PoolShape& shape, ConstMatrix x, Matrix y,
               std::span<std::uint32_t> chosen) override;
  void MaxPoolGradient(const PoolShape& shape, std::span<const std::uint32_t> chosen,
                       ConstMatrix dy, Matrix dx) override;
  void AveragePool(const PoolShape& shape, ConstMatrix x, Matrix y) override;
  void AveragePoolGradient(const PoolShape& shape, ConstMatrix dy, Matrix dx) override;

  void GroupNorm(const NormShape& shape, ConstMatrix x, std::span<const float> scale,
                 std::span<const float> shift, Matrix y, std::span<float> statistics) override;
  void GroupNormGradient(const NormShape& shape, ConstMatrix x, std::span<const float> scale,
                         std::span<const float> statistics, ConstMatrix dy, Matrix dx,
                         std::span<float> dscale, std::span<float> dshift) override;
  void ChannelSums(ConstMatrix x, std::span<const float> origin, ConstMatrix z,
                   std::span<const float> centre, std::span<double> first,
                   std::span<double> second) override;
  void ChannelAffine(ConstMatrix x, std::span<const float> a, ConstMatrix z,
                     std::span<const float> b, std::span<const float> d, Matrix y) override;

  void Gather(ConstMatrix table, std::span<const std::uint32_t> ids, bool accumulate,
              Matrix y) override;
  void ScatterAdd(std::span<const std::uint32_t> ids, ConstMatrix dy, Matrix dtable) override;
  void Attention(const AttentionShape& shape, ConstMatrix q, ConstMatrix k, ConstMatrix v,
                 std::span<const std::uint8_t> mask, const DropoutMask& dropout,
                 std::span<float> probabilities, Matrix y) override;
  void AttentionGradient(const AttentionShape& shape, ConstMatrix q, ConstMatrix k, ConstMatrix v,
                         std::span<const float> probabilities, const DropoutMask& dropout,
                         ConstMatrix dy, Matrix dq, Matrix dk, Matrix dv) override;
  void MeanOfTokens(ConstMatrix x, std::size_t length, std::span<const std::uint8_t> mask,
                    Matrix y) override;
  void MeanOfTokensGradient(ConstMatrix dy, std::size_t length, std::span<const std::uint8_t> mask,
                            Matrix dx) override;

  double BinaryCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels, float scale,
                            Matrix dz) override;
  double SoftmaxCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels, float scale,
                             Matrix dz) override;
  double SquaredError(ConstMatrix z, ConstMatrix targets, float scale, Matrix dz) override;

  void AddScaled(float a, std::span<const float> x, std::span<float> y) override;
  void Add(std::span<const float> a, std::span<const float> b, std::span<float> y) override;
  void Scale(float a, std::span<float> x) override;
  double SquaredNorm(std::span<const float> x) override;
  void Sgd(const SgdStep& step, std::span<const float> gradient, std::span<float> momentum,
           std::span<float> parameters) override;
  void Adam(const AdamStep& step, std::span<const float> gradient, std::span<float> first,
            std::span<float> second, std::span<float> parameters) override;

 private:
  // A piece is worth waking a thread for (some 10 us) and large enough for a good matrix product.
  static constexpr std::size_t kElementsPerPiece = std::size_t{1} << 16U;
  static constexpr std::size_t kSmallWork = std::size_t{1} << 18U;  // done in one piece

  static std::size_t NumPieces(std::size_t size, std::size_t per_piece) {
    return (size + per_piece - 1) / per_piece;
  }

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

  // run(piece) for one piece of c a thread. Where c has more rows than columns, rows are cut, else
  // columns: each piece packs the operand again that is not cut, so that is the smaller one.
  template <typename Run>
  void CutProduct(const kernels::Product& whole, const Run& run) {
    const std::size_t threads = whole.m * whole.n * whole.k <= kSmallWork ? 1 : pool_.NumThreads();
    const bool rows = whole.m >= whole.n;
    const std::size_t size = rows ? whole.m : whole.n;
    const std::size_t share = (size + threads - 1) / threads;
    // Of whole tiles.
    const std::size_t per_piece = threads == 1 ? size : (share + 31) / 32 * 32;
    Cut(size, per_piece, [&](std::size_t first, std::size_t count) {
      kernels::Product piece = whole;
      if (rows) {
        piece.m = count;
        piece.a += whole.transpose_a ? first : first * whole.lda;
        piece.c += first * whole.ldc;
      } else {
        piece.n = count;
        piece.b += whole.transpose_b ? first * whole.ldb : first;
        piece.c += first;
      }
      run(piece);
    });
  }

  // Single rows that touch `elements` numbers each.
  template <typename Run>
  void ForEachRow(std::size_t rows, std::size_t elements, const Run& run) {
    const std::size_t per_piece =
        std::max<std::size_t>(1, (kElementsPerPiece / 4) / (elements + 1));
    Cut(rows, per_piece, [&](std::size_t first, std::size_t count) {
      for (std::size_t row = first; row < first + count; ++row) {
        run(row);
      }
    });
  }

  // Sums `count` partial results of `size`, one after another in partials_, into `sum`.
  void SumPartials(std::size_t count, std::size_t size, std::span<float> sum);

  ThreadPool pool_;
  std::vector<float> partials_;
};

}  // namespace domicile::models

// The operations a device offers to layers and optimizers. models/cpu implements them and is the
// oracle for every other device. Shapes: B rows of a batch, I inputs, O outputs of a layer.
//
// Each operation is deterministic: one binary on one instruction set gives the same bits for any
// number of threads. Buffers do not overlap unless stated; sizes that do not fit together are a bug
// and abort. Gradients are overwritten unless stated. One thread at a time.
//
// An operand lies in the device's memory() or in the host's. Where the two differ, one in host
// memory is copied for the call, there or back: right, but slow, so what is large and stays belongs
// into memory(). Token ids, labels, masks and the sums of ChannelSums are host memory always.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "models/layers/shapes.h"
#include "models/memory.h"
#include "models/tensor.h"

namespace domicile::models {

// Adds up over devices where their values lie, without the host, while the devices go on. A failure
// is one of the device (Device::Check).
class DeviceSum {
 public:
  virtual ~DeviceSum() = default;
  // Every rank makes the same calls in the same order, each from its own thread, with buffers of
  // one size in its device's memory. They hold what the device has been asked for so far, and may
  // not be touched before Finish.
  virtual void Begin(std::size_t rank, std::span<float> values) = 0;
  // What is asked of the device afterwards finds, in all that was begun, the same bits at all
  // ranks: the element-wise sum.
  virtual void Finish(std::size_t rank) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  // Where its operands are best kept.
  virtual Memory& memory() { return HostMemory(); }
  // Errors: kUnavailable: the device has failed, or has no memory left; results since then are
  // worthless, and every later call fails too. To be asked after each step.
  virtual Status Check() { return OkStatus(); }

  // The device that computes, where this one hands on.
  virtual Device& Innermost() { return *this; }
  // Over these devices (innermost; this one is among them), each with its place as its rank; they
  // must outlive it. Null where they have nothing better than the host. Errors: kInvalidArgument:
  // devices of different kinds; kFailedPrecondition: they cannot be connected.
  virtual StatusOr<std::unique_ptr<DeviceSum>> Connect(std::span<Device* const> /*devices*/) {
    return std::unique_ptr<DeviceSum>();
  }

  // --- Dense layers
  // y[B, O] = x[B, I] w + bias[O], and then the activation (none of the GELUs, whose gradient needs
  // the sum before it). An empty bias adds nothing.
  virtual void Dense(ConstMatrix x, const Weight& w, std::span<const float> bias,
                     Activation activation, Matrix y) = 0;
  // dw[I, O] = x^T[I, B] dy[B, O]. With the operands swapped it gives dw[O, I].
  virtual void DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) = 0;
  // db[O] = sum over rows of dy
  virtual void DenseBiasGradient(ConstMatrix dy, std::span<float> db) = 0;
  // dx[B, I] = dy[B, O] w^T, added to what dx holds if `accumulate`.
  virtual void DenseInputGradient(ConstMatrix dy, const Weight& w, bool accumulate, Matrix dx) = 0;

  // --- Activations
  virtual void Activate(Activation activation, ConstMatrix x, Matrix y) = 0;
  // dy *= activation'. `saved` is the activation's output, but for the GELUs its input. For kRelu
  // the gradient at 0 is 0.
  virtual void ActivationGradient(Activation activation, ConstMatrix saved, Matrix dy) = 0;
  // y = x with the mask applied; y may be x. Its own gradient, with dy for x.
  virtual void Dropout(const DropoutMask& mask, ConstMatrix x, Matrix y) = 0;

  // --- Images
  virtual void Conv2d(const ConvShape& shape, ConstMatrix x, std::span<const float> filters,
                      std::span<const float> bias, Activation activation, Matrix y) = 0;
  virtual void Conv2dWeightGradient(const ConvShape& shape, ConstMatrix x, ConstMatrix dy,
                                    std::span<float> dfilters, std::span<float> dbias) = 0;
  virtual void Conv2dInputGradient(const ConvShape& shape, ConstMatrix dy,
                                   std::span<const float> filters, Matrix dx) = 0;
  // chosen[B * outputs]: the index within its row of each maximum, the first one where several tie.
  virtual void MaxPool(const PoolShape& shape, ConstMatrix x, Matrix y,
                       std::span<std::uint32_t> chosen) = 0;
  virtual void MaxPoolGradient(const PoolShape& shape, std::span<const std::uint32_t> chosen,
                               ConstMatrix dy, Matrix dx) = 0;
  virtual void AveragePool(const PoolShape& shape, ConstMatrix x, Matrix y) = 0;
  virtual void AveragePoolGradient(const PoolShape& shape, ConstMatrix dy, Matrix dx) = 0;

  // --- Normalisation
  // statistics[B * groups * 2]: mean and 1 / sqrt(variance + epsilon) of each group.
  virtual void GroupNorm(const NormShape& shape, ConstMatrix x, std::span<const float> scale,
                         std::span<const float> shift, Matrix y, std::span<float> statistics) = 0;
  // dscale and dshift may be empty, dx.data null: then they are not computed. dx may be dy.
  virtual void GroupNormGradient(const NormShape& shape, ConstMatrix x,
                                 std::span<const float> scale, std::span<const float> statistics,
                                 ConstMatrix dy, Matrix dx, std::span<float> dscale,
                                 std::span<float> dshift) = 0;
  // first[c] = sum of (x - origin[c]), second[c] = sum of (x - origin[c]) * (z - centre[c]) over
  // rows and positions of channel c; x and z are [B, channels * positions].
  virtual void ChannelSums(ConstMatrix x, std::span<const float> origin, ConstMatrix z,
                           std::span<const float> centre, std::span<double> first,
                           std::span<double> second) = 0;
  // y = x * a[c] + z * b[c] + d[c] by channel; z.data may be null (no such term). y may be x or z.
  virtual void ChannelAffine(ConstMatrix x, std::span<const float> a, ConstMatrix z,
                             std::span<const float> b, std::span<const float> d, Matrix y) = 0;

  // --- Sequences
  // y[N, H] = table[ids[n]], added to what y holds if `accumulate`.
  virtual void Gather(ConstMatrix table, std::span<const std::uint32_t> ids, bool accumulate,
                      Matrix y) = 0;
  // dtable[ids[n]] += dy[n], in the order of n.
  virtual void ScatterAdd(std::span<const std::uint32_t> ids, ConstMatrix dy, Matrix dtable) = 0;
  // y = softmax(q k^T / sqrt(width), over the keys whose mask is not 0) v for each sequence and
  // head. mask[B * length], or empty: all keys count. probabilities[B * heads * length * length]
  // are kept for the gradient; the dropout mask applies to them. A query without any key gives
  // zeros.
  virtual void Attention(const AttentionShape& shape, ConstMatrix q, ConstMatrix k, ConstMatrix v,
                         std::span<const std::uint8_t> mask, const DropoutMask& dropout,
                         std::span<float> probabilities, Matrix y) = 0;
  virtual void AttentionGradient(const AttentionShape& shape, ConstMatrix q, ConstMatrix k,
                                 ConstMatrix v, std::span<const float> probabilities,
                                 const DropoutMask& dropout, ConstMatrix dy, Matrix dq, Matrix dk,
                                 Matrix dv) = 0;
  // y[s] = the mean of the rows of sequence s whose mask is not 0 (empty mask: all); zeros if none.
  virtual void MeanOfTokens(ConstMatrix x, std::size_t length, std::span<const std::uint8_t> mask,
                            Matrix y) = 0;
  virtual void MeanOfTokensGradient(ConstMatrix dy, std::size_t length,
                                    std::span<const std::uint8_t> mask, Matrix dx) = 0;

  // --- Losses: each returns the sum over the rows (float64); unless dz.data is null, dz is `scale`
  // times the gradient of that sum.
  // Binary cross-entropy with logits z[B, 1] and labels 0 or 1, stable for any finite z:
  // loss_i = max(z, 0) - z * y + log(1 + exp(-|z|)).
  virtual double BinaryCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels,
                                    float scale, Matrix dz) = 0;
  // Softmax cross-entropy of logits z[B, O] and labels in [0, O), by log-sum-exp.
  virtual double SoftmaxCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels,
                                     float scale, Matrix dz) = 0;
  // loss_i = the mean over the outputs of (z - target)^2.
  virtual double SquaredError(ConstMatrix z, ConstMatrix targets, float scale, Matrix dz) = 0;

  // --- Vectors
  // y += a * x
  virtual void AddScaled(float a, std::span<const float> x, std::span<float> y) = 0;
  // y = a + b; y may be either.
  virtual void Add(std::span<const float> a, std::span<const float> b, std::span<float> y) = 0;
  // x *= a
  virtual void Scale(float a, std::span<float> x) = 0;
  // The sum of squares, in float64; infinite or NaN if x holds such a value.
  virtual double SquaredNorm(std::span<const float> x) = 0;
  virtual void Sgd(const SgdStep& step, std::span<const float> gradient, std::span<float> momentum,
                   std::span<float> parameters) = 0;
  virtual void Adam(const AdamStep& step, std::span<const float> gradient, std::span<float> first,
                    std::span<float> second, std::span<float> parameters) = 0;
};

}  // namespace domicile::models

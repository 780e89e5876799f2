// The operations a device offers to layers and optimizers. models/cpu implements them and is the
// oracle for every other device. Shapes: B rows of a batch, I inputs, O outputs of a layer.
//
// Each operation is deterministic: one binary on one instruction set gives the same bits for any
// number of threads. Buffers do not overlap unless stated. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/tensor.h"

namespace domicile::models {

// Stored in plans elsewhere under the same numbers: append, never renumber.
enum class Activation : std::uint8_t { kNone = 0, kTanh = 1, kRelu = 2, kSigmoid = 3 };

// The constants of one optimizer step; optimizer.h has the formulas.
struct SgdStep {
  float learning_rate = 0;
  float momentum = 0;
};

struct AdamStep {
  float learning_rate = 0;
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  float correction1 = 0;  // 1 - beta1^t
  float correction2 = 0;  // 1 - beta2^t
};

class Device {
 public:
  virtual ~Device() = default;

  // y[B, O] = x[B, I] w[I, O] + bias[O], and then the activation.
  virtual void Dense(ConstMatrix x, ConstMatrix w, std::span<const float> bias,
                     Activation activation, Matrix y) = 0;
  // dw[I, O] = x^T[I, B] dy[B, O]
  virtual void DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) = 0;
  // db[O] = sum over rows of dy
  virtual void DenseBiasGradient(ConstMatrix dy, std::span<float> db) = 0;
  // dx[B, I] = dy[B, O] w^T[O, I]
  virtual void DenseInputGradient(ConstMatrix dy, ConstMatrix w, Matrix dx) = 0;
  // dy *= activation'(y), from the activation's output y; for kRelu the gradient at 0 is 0.
  virtual void ActivationGradient(Activation activation, ConstMatrix y, Matrix dy) = 0;

  // Binary cross-entropy with logits z[B, 1] and labels 0 or 1, stable for any finite z:
  // loss_i = max(z, 0) - z * y + log(1 + exp(-|z|)). Returns the sum of loss_i (float64); unless
  // dz.data is null, dz_i = scale * (sigmoid(z_i) - y_i).
  virtual double BinaryCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels,
                                    float scale, Matrix dz) = 0;
  // Softmax cross-entropy of logits z[B, O] and labels in [0, O), by log-sum-exp. Returns the sum
  // over rows (float64); unless dz.data is null, dz = scale * (softmax(z) - onehot(label)).
  virtual double SoftmaxCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels,
                                     float scale, Matrix dz) = 0;

  // y += a * x
  virtual void AddScaled(float a, std::span<const float> x, std::span<float> y) = 0;
  // buffer = momentum * buffer + gradient; parameters -= learning_rate * buffer
  virtual void Sgd(const SgdStep& step, std::span<const float> gradient, std::span<float> momentum,
                   std::span<float> parameters) = 0;
  virtual void Adam(const AdamStep& step, std::span<const float> gradient, std::span<float> first,
                    std::span<float> second, std::span<float> parameters) = 0;
};

}  // namespace domicile::models

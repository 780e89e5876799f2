// A device that hands every operation on to another one: the base of those that add something.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "models/layers/device.h"

namespace domicile::models {

// As thread-safe as the device inside, which it owns.
class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}

  Memory& memory() override { return inner_->memory(); }
  Status Check() override { return inner_->Check(); }
  Device& Innermost() override { return inner_->Innermost(); }

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

 protected:
  // Called before each operation is handed on.
  virtual void Begin(const char* /*operation*/) {}
  Device& inner() { return *inner_; }

 private:
  std::unique_ptr<Device> inner_;
};

}  // namespace domicile::models

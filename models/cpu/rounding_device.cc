#include "models/cpu/rounding_device.h"

#include <utility>

#include "models/layers/forwarding_device.h"

namespace domicile::models {
namespace {

std::span<float> Flat(Matrix m) { return {m.data, m.rows * m.columns}; }
std::span<const float> Flat(ConstMatrix m) { return {m.data, m.rows * m.columns}; }

class RoundingDevice final : public ForwardingDevice {
 public:
  RoundingDevice(Precision precision, std::unique_ptr<Device> inner)
      : ForwardingDevice(std::move(inner)), precision_(precision) {
    DOMICILE_CHECK(memory().IsHost());
  }

  void Dense(ConstMatrix x, const Weight& w, std::span<const float> bias, Activation activation,
             Matrix y) override {
    inner().Dense(Rounded(x, first_), RoundedWeight(w), bias, activation, y);
    Round(y);
  }
  void DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) override {
    inner().DenseWeightGradient(Rounded(x, first_), Rounded(dy, second_), dw);
    Round(dw);
  }
  void DenseBiasGradient(ConstMatrix dy, std::span<float> db) override {
    inner().DenseBiasGradient(Rounded(dy, first_), db);
    RoundTo(precision_, db, db);
  }
  void DenseInputGradient(ConstMatrix dy, const Weight& w, bool accumulate, Matrix dx) override {
    inner().DenseInputGradient(Rounded(dy, first_), RoundedWeight(w), accumulate, dx);
    Round(dx);
  }

  void Activate(Activation activation, ConstMatrix x, Matrix y) override {
    inner().Activate(activation, x, y);
    Round(y);
  }
  void ActivationGradient(Activation activation, ConstMatrix saved, Matrix dy) override {
    inner().ActivationGradient(activation, saved, dy);
    Round(dy);
  }
  void Dropout(const DropoutMask& mask, ConstMatrix x, Matrix y) override {
    inner().Dropout(mask, x, y);
    Round(y);
  }

  void Conv2d(const ConvShape& shape, ConstMatrix x, std::span<const float> filters,
              std::span<const float> bias, Activation activation, Matrix y) override {
    inner().Conv2d(shape, Rounded(x, first_), Rounded(filters, weight_), bias, activation, y);
    Round(y);
  }
  void Conv2dWeightGradient(const ConvShape& shape, ConstMatrix x, ConstMatrix dy,
                            std::span<float> dfilters, std::span<float> dbias) override {
    inner().Conv2dWeightGradient(shape, Rounded(x, first_), Rounded(dy, second_), dfilters, dbias);
    RoundTo(precision_, dfilters, dfilters);
    RoundTo(precision_, dbias, dbias);
  }
  void Conv2dInputGradient(const ConvShape& shape, ConstMatrix dy, std::span<const float> filters,
                           Matrix dx) override {
    inner().Conv2dInputGradient(shape, Rounded(dy, first_), Rounded(filters, weight_), dx);
    Round(dx);
  }
  void MaxPoolGradient(const PoolShape& shape, std::span<const std::uint32_t> chosen,
                       ConstMatrix dy, Matrix dx) override {
    inner().MaxPoolGradient(shape, chosen, dy, dx);
    Round(dx);  // windows may overlap, and then their gradients are added
  }
  void AveragePool(const PoolShape& shape, ConstMatrix x, Matrix y) override {
    inner().AveragePool(shape, x, y);
    Round(y);
  }
  void AveragePoolGradient(const PoolShape& shape, ConstMatrix dy, Matrix dx) override {
    inner().AveragePoolGradient(shape, dy, dx);
    Round(dx);
  }

  void GroupNorm(const NormShape& shape, ConstMatrix x, std::span<const float> scale,
                 std::span<const float> shift, Matrix y, std::span<float> statistics) override {
    inner().GroupNorm(shape, x, scale, shift, y, statistics);
    Round(y);
  }
  void GroupNormGradient(const NormShape& shape, ConstMatrix x, std::span<const float> scale,
                         std::span<const float> statistics, ConstMatrix dy, Matrix dx,
                         std::span<float> dscale, std::span<float> dshift) override {
    inner().GroupNormGradient(shape, x, scale, statistics, dy, dx, dscale, dshift);
    if (dx.data != nullptr) {
      Round(dx);
    }
  }
  void ChannelAffine(ConstMatrix x, std::span<const float> a, ConstMatrix z,
                     std::span<const float> b, std::span<const float> d, Matrix y) override {
    inner().ChannelAffine(x, a, z, b, d, y);
    Round(y);
  }

  void Gather(ConstMatrix table, std::span<const std::uint32_t> ids, bool accumulate,
              Matrix y) override {
    inner().Gather(table, ids, accumulate, y);
    Round(y);
  }
  void Attention(const AttentionShape& shape, ConstMatrix q, ConstMatrix k, ConstMatrix v,
                 std::span<const std::uint8_t> mask, const DropoutMask& dropout,
                 std::span<float> probabilities, Matrix y) override {
    inner().Attention(shape, Rounded(q, first_), Rounded(k, second_), Rounded(v, third_), mask,
                      dropout, probabilities, y);
    Round(y);
  }
  void AttentionGradient(const AttentionShape& shape, ConstMatrix q, ConstMatrix k, ConstMatrix v,
                         std::span<const float> probabilities, const DropoutMask& dropout,
                         ConstMatrix dy, Matrix dq, Matrix dk, Matrix dv) override {
    inner().AttentionGradient(shape, Rounded(q, first_), Rounded(k, second_), Rounded(v, third_),
                              probabilities, dropout, Rounded(dy, weight_), dq, dk, dv);
    Round(dq);
    Round(dk);
    Round(dv);
  }
  void MeanOfTokens(ConstMatrix x, std::size_t length, std::span<const std::uint8_t> mask,
                    Matrix y) override {
    inner().MeanOfTokens(x, length, mask, y);
    Round(y);
  }
  void MeanOfTokensGradient(ConstMatrix dy, std::size_t length, std::span<const std::uint8_t> mask,
                            Matrix dx) override {
    inner().MeanOfTokensGradient(dy, length, mask, dx);
    Round(dx);
  }

  // The losses are float32; what goes back from them is not.
  double BinaryCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels, float scale,
                            Matrix dz) override {
    const double loss = inner().BinaryCrossEntropy(z, labels, scale, dz);
    RoundGradient(dz);
    return loss;
  }
  double SoftmaxCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels, float scale,
                             Matrix dz) override {
    const double loss = inner().SoftmaxCrossEntropy(z, labels, scale, dz);
    RoundGradient(dz);
    return loss;
  }
  double SquaredError(ConstMatrix z, ConstMatrix targets, float scale, Matrix dz) override {
    const double loss = inner().SquaredError(z, targets, scale, dz);
    RoundGradient(dz);
    return loss;
  }

  // Layers add activations with it; gradients of parameters are added by AddScaled.
  void Add(std::span<const float> a, std::span<const float> b, std::span<float> y) override {
    inner().Add(a, b, y);
    RoundTo(precision_, y, y);
  }

 private:
  void Round(Matrix m) const { RoundTo(precision_, Flat(m), Flat(m)); }
  void RoundGradient(Matrix dz) const {
    if (dz.data != nullptr) {
      Round(dz);
    }
  }

  std::span<const float> Rounded(std::span<const float> values, Tensor& copy) const {
    copy.ResizeMatrix(1, values.size());
    RoundTo(precision_, values, copy.Values());
    return copy.Values();
  }
  ConstMatrix Rounded(ConstMatrix m, Tensor& copy) const {
    return {Rounded(Flat(m), copy).data(), m.rows, m.columns};
  }
  Weight RoundedWeight(Weight w) {
    w.data = Rounded(std::span(w.data, w.inputs * w.outputs), weight_).data();
    return w;
  }

  Precision precision_;
  // Rounded copies of the operands of one operation.
  Tensor first_;
  Tensor second_;
  Tensor third_;
  Tensor weight_;
};

}  // namespace

std::unique_ptr<Device> WithPrecision(Precision precision, std::unique_ptr<Device> inner) {
  if (precision == Precision::kFloat32) {
    return inner;
  }
  return std::make_unique<RoundingDevice>(precision, std::move(inner));
}

}  // namespace domicile::models

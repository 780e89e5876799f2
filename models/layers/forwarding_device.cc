#include "models/layers/forwarding_device.h"

namespace domicile::models {

void ForwardingDevice::Dense(ConstMatrix x, const Weight& w, std::span<const float> bias,
                             Activation activation, Matrix y) {
  Begin("Dense");
  inner_->Dense(x, w, bias, activation, y);
}

void ForwardingDevice::DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) {
  Begin("DenseWeightGradient");
  inner_->DenseWeightGradient(x, dy, dw);
}

void ForwardingDevice::DenseBiasGradient(ConstMatrix dy, std::span<float> db) {
  Begin("DenseBiasGradient");
  inner_->DenseBiasGradient(dy, db);
}

void ForwardingDevice::DenseInputGradient(ConstMatrix dy, const Weight& w, bool accumulate,
                                          Matrix dx) {
  Begin("DenseInputGradient");
  inner_->DenseInputGradient(dy, w, accumulate, dx);
}

void ForwardingDevice::Activate(Activation activation, ConstMatrix x, Matrix y) {
  Begin("Activate");
  inner_->Activate(activation, x, y);
}

void ForwardingDevice::ActivationGradient(Activation activation, ConstMatrix saved, Matrix dy) {
  Begin("ActivationGradient");
  inner_->ActivationGradient(activation, saved, dy);
}

void ForwardingDevice::Dropout(const DropoutMask& mask, ConstMatrix x, Matrix y) {
  Begin("Dropout");
  inner_->Dropout(mask, x, y);
}

void ForwardingDevice::Conv2d(const ConvShape& shape, ConstMatrix x, std::span<const float> filters,
                              std::span<const float> bias, Activation activation, Matrix y) {
  Begin("Conv2d");
  inner_->Conv2d(shape, x, filters, bias, activation, y);
}

void ForwardingDevice::Conv2dWeightGradient(const ConvShape& shape, ConstMatrix x, ConstMatrix dy,
                                            std::span<float> dfilters, std::span<float> dbias) {
  Begin("Conv2dWeightGradient");
  inner_->Conv2dWeightGradient(shape, x, dy, dfilters, dbias);
}

void ForwardingDevice::Conv2dInputGradient(const ConvShape& shape, ConstMatrix dy,
                                           std::span<const float> filters, Matrix dx) {
  Begin("Conv2dInputGradient");
  inner_->Conv2dInputGradient(shape, dy, filters, dx);
}

void ForwardingDevice::MaxPool(const PoolShape& shape, ConstMatrix x, Matrix y,
                               std::span<std::uint32_t> chosen) {
  Begin("MaxPool");
  inner_->MaxPool(shape, x, y, chosen);
}

void ForwardingDevice::MaxPoolGradient(const PoolShape& shape,
                                       std::span<const std::uint32_t> chosen, ConstMatrix dy,
                                       Matrix dx) {
  Begin("MaxPoolGradient");
  inner_->MaxPoolGradient(shape, chosen, dy, dx);
}

void ForwardingDevice::AveragePool(const PoolShape& shape, ConstMatrix x, Matrix y) {
  Begin("AveragePool");
  inner_->AveragePool(shape, x, y);
}

void ForwardingDevice::AveragePoolGradient(const PoolShape& shape, ConstMatrix dy, Matrix dx) {
  Begin("AveragePoolGradient");
  inner_->AveragePoolGradient(shape, dy, dx);
}

void ForwardingDevice::GroupNorm(const NormShape& shape, ConstMatrix x,
                                 std::span<const float> scale, std::span<const float> shift,
                                 Matrix y, std::span<float> statistics) {
  Begin("GroupNorm");
  inner_->GroupNorm(shape, x, scale, shift, y, statistics);
}

void ForwardingDevice::GroupNormGradient(const NormShape& shape, ConstMatrix x,
                                         std::span<const float> scale,
                                         std::span<const float> statistics, ConstMatrix dy,
                                         Matrix dx, std::span<float> dscale,
                                         std::span<float> dshift) {
  Begin("GroupNormGradient");
  inner_->GroupNormGradient(shape, x, scale, statistics, dy, dx, dscale, dshift);
}

void ForwardingDevice::ChannelSums(ConstMatrix x, std::span<const float> origin, ConstMatrix z,
                                   std::span<const float> centre, std::span<double> first,
                                   std::span<double> second) {
  Begin("ChannelSums");
  inner_->ChannelSums(x, origin, z, centre, first, second);
}

void ForwardingDevice::ChannelAffine(ConstMatrix x, std::span<const float> a, ConstMatrix z,
                                     std::span<const float> b, std::span<const float> d, Matrix y) {
  Begin("ChannelAffine");
  inner_->ChannelAffine(x, a, z, b, d, y);
}

void ForwardingDevice::Gather(ConstMatrix table, std::span<const std::uint32_t> ids,
                              bool accumulate, Matrix y) {
  Begin("Gather");
  inner_->Gather(table, ids, accumulate, y);
}

void ForwardingDevice::ScatterAdd(std::span<const std::uint32_t> ids, ConstMatrix dy,
                                  Matrix dtable) {
  Begin("ScatterAdd");
  inner_->ScatterAdd(ids, dy, dtable);
}

void ForwardingDevice::Attention(const AttentionShape& shape, ConstMatrix q, ConstMatrix k,
                                 ConstMatrix v, std::span<const std::uint8_t> mask,
                                 const DropoutMask& dropout, std::span<float> probabilities,
                                 Matrix y) {
  Begin("Attention");
  inner_->Attention(shape, q, k, v, mask, dropout, probabilities, y);
}

void ForwardingDevice::AttentionGradient(const AttentionShape& shape, ConstMatrix q, ConstMatrix k,
                                         ConstMatrix v, std::span<const float> probabilities,
                                         const DropoutMask& dropout, ConstMatrix dy, Matrix dq,
                                         Matrix dk, Matrix dv) {
  Begin("AttentionGradient");
  inner_->AttentionGradient(shape, q, k, v, probabilities, dropout, dy, dq, dk, dv);
}

void ForwardingDevice::MeanOfTokens(ConstMatrix x, std::size_t length,
                                    std::span<const std::uint8_t> mask, Matrix y) {
  Begin("MeanOfTokens");
  inner_->MeanOfTokens(x, length, mask, y);
}

void ForwardingDevice::MeanOfTokensGradient(ConstMatrix dy, std::size_t length,
                                            std::span<const std::uint8_t> mask, Matrix dx) {
  Begin("MeanOfTokensGradient");
  inner_->MeanOfTokensGradient(dy, length, mask, dx);
}

double ForwardingDevice::BinaryCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels,
                                            float scale, Matrix dz) {
  Begin("BinaryCrossEntropy");
  return inner_->BinaryCrossEntropy(z, labels, scale, dz);
}

double ForwardingDevice::SoftmaxCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels,
                                             float scale, Matrix dz) {
  Begin("SoftmaxCrossEntropy");
  return inner_->SoftmaxCrossEntropy(z, labels, scale, dz);
}

double ForwardingDevice::SquaredError(ConstMatrix z, ConstMatrix targets, float scale, Matrix dz) {
  Begin("SquaredError");
  return inner_->SquaredError(z, targets, scale, dz);
}

void ForwardingDevice::AddScaled(float a, std::span<const float> x, std::span<float> y) {
  Begin("AddScaled");
  inner_->AddScaled(a, x, y);
}

void ForwardingDevice::Add(std::span<const float> a, std::span<const float> b, std::span<float> y) {
  Begin("Add");
  inner_->Add(a, b, y);
}

void ForwardingDevice::Scale(float a, std::span<float> x) {
  Begin("Scale");
  inner_->Scale(a, x);
}

double ForwardingDevice::SquaredNorm(std::span<const float> x) {
  Begin("SquaredNorm");
  return inner_->SquaredNorm(x);
}

void ForwardingDevice::Sgd(const SgdStep& step, std::span<const float> gradient,
                           std::span<float> momentum, std::span<float> parameters) {
  Begin("Sgd");
  inner_->Sgd(step, gradient, momentum, parameters);
}

void ForwardingDevice::Adam(const AdamStep& step, std::span<const float> gradient,
                            std::span<float> first, std::span<float> second,
                            std::span<float> parameters) {
  Begin("Adam");
  inner_->Adam(step, gradient, first, second, parameters);
}

}  // namespace domicile::models

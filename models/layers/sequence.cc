#include "models/layers/sequence.h"

#include <algorithm>
#include <utility>

namespace domicile::models {
namespace {

std::span<float> Flat(Matrix m) { return {m.data, m.rows * m.columns}; }
std::span<const float> Flat(ConstMatrix m) { return {m.data, m.rows * m.columns}; }

class Sequence final : public Layer {
 public:
  explicit Sequence(Layers layers) : layers_(std::move(layers)) {}

  void Declare(ParameterLayout& layout) override {
    for (const auto& layer : layers_) {
      begins_.push_back(layout.NumParameters());
      layer->Declare(layout);
    }
  }
  void Bind(const ParameterLayout& layout) override {
    for (const auto& layer : layers_) {
      layer->Bind(layout);
    }
  }
  bool IsTrained() const override {
    return std::any_of(layers_.begin(), layers_.end(),
                       [](const auto& layer) { return layer->IsTrained(); });
  }

  ConstMatrix Forward(Device& device, const Pass& pass, ConstMatrix x) override {
    for (const auto& layer : layers_) {
      x = layer->Forward(device, pass, x);
    }
    return x;
  }

  Matrix Backward(Device& device, const Pass& pass, Matrix dy, bool wants_dx,
                  std::span<float> gradient) override {
    const std::size_t lowest = LowestTrained(wants_dx);
    for (std::size_t i = layers_.size(); i-- > lowest;) {
      dy = layers_[i]->Backward(device, pass, dy, wants_dx || i > lowest, gradient);
      if (pass.final_from != nullptr) {
        (*pass.final_from)(begins_[i]);
      }
    }
    return dy;
  }

  void UpdateStatistics(Device& device, double divisor, std::span<const float> gradient,
                        std::span<float> parameters) override {
    for (const auto& layer : layers_) {
      layer->UpdateStatistics(device, divisor, gradient, parameters);
    }
  }

  double StepFlops(bool wants_dx, std::size_t& rows) const override {
    const std::size_t lowest = LowestTrained(wants_dx);
    double flops = 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      flops += layers_[i]->StepFlops(wants_dx || i > lowest, rows);
    }
    return flops;
  }

 private:
  // The layer at which the way back ends.
  std::size_t LowestTrained(bool wants_dx) const {
    std::size_t lowest = 0;
    while (!wants_dx && lowest < layers_.size() && !layers_[lowest]->IsTrained()) {
      ++lowest;
    }
    return lowest;
  }

  Layers layers_;
  std::vector<std::size_t> begins_;  // of each layer's parameters
};

class Residual final : public Layer {
 public:
  explicit Residual(std::unique_ptr<Layer> inner) : inner_(std::move(inner)) {}

  void Declare(ParameterLayout& layout) override { inner_->Declare(layout); }
  void Bind(const ParameterLayout& layout) override { inner_->Bind(layout); }
  bool IsTrained() const override { return inner_->IsTrained(); }

  ConstMatrix Forward(Device& device, const Pass& pass, ConstMatrix x) override {
    const ConstMatrix inner = inner_->Forward(device, pass, x);
    y_.ResizeMatrix(x.rows, x.columns, device.memory());
    device.Add(Flat(x), Flat(inner), y_.Values());
    return y_.AsMatrix();
  }

  Matrix Backward(Device& device, const Pass& pass, Matrix dy, bool wants_dx,
                  std::span<float> gradient) override {
    if (!wants_dx) {
      return inner_->Backward(device, pass, dy, false, gradient);
    }
    // A copy: the inner layers may write over what they are given.
    dx_.ResizeMatrix(dy.rows, dy.columns, device.memory());
    Copy(device.memory(), Flat(ConstMatrix(dy)), dx_.Values());
    const Matrix inner = inner_->Backward(device, pass, dy, true, gradient);
    device.Add(dx_.Values(), Flat(inner), dx_.Values());
    return dx_.AsMatrix();
  }

  void UpdateStatistics(Device& device, double divisor, std::span<const float> gradient,
                        std::span<float> parameters) override {
    inner_->UpdateStatistics(device, divisor, gradient, parameters);
  }

  double StepFlops(bool wants_dx, std::size_t& rows) const override {
    return inner_->StepFlops(wants_dx, rows);
  }

 private:
  std::unique_ptr<Layer> inner_;
  Tensor y_;
  Tensor dx_;
};

}  // namespace

std::unique_ptr<Layer> MakeSequence(Layers layers) {
  return std::make_unique<Sequence>(std::move(layers));
}

std::unique_ptr<Layer> MakeResidual(std::unique_ptr<Layer> inner) {
  return std::make_unique<Residual>(std::move(inner));
}

}  // namespace domicile::models

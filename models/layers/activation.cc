#include "models/layers/activation.h"

#include <utility>

namespace domicile::models {
namespace {

class ActivationLayer final : public Layer {
 public:
  explicit ActivationLayer(Activation activation) : activation_(activation) {}

  ConstMatrix Forward(Device& device, const Pass& /*pass*/, ConstMatrix x) override {
    x_ = x;
    y_.ResizeMatrix(x.rows, x.columns, device.memory());
    device.Activate(activation_, x, y_.AsMatrix());
    return y_.AsMatrix();
  }

  Matrix Backward(Device& device, const Pass& /*pass*/, Matrix dy, bool wants_dx,
                  std::span<float> /*gradient*/) override {
    if (!wants_dx) {
      return {};
    }
    const bool by_input = activation_ == Activation::kGelu || activation_ == Activation::kGeluTanh;
    device.ActivationGradient(activation_, by_input ? x_ : std::as_const(y_).AsMatrix(), dy);
    return dy;
  }

 private:
  Activation activation_;
  ConstMatrix x_;
  Tensor y_;
};

}  // namespace

std::unique_ptr<Layer> MakeActivation(Activation activation) {
  return std::make_unique<ActivationLayer>(activation);
}

}  // namespace domicile::models

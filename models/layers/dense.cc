#include "models/layers/dense.h"

#include <utility>

#include "base/status.h"

namespace domicile::models {
namespace {

class DenseLayer final : public Layer {
 public:
  explicit DenseLayer(DenseSpec spec) : spec_(std::move(spec)) {
    DOMICILE_CHECK(spec_.activation != Activation::kGelu &&
                   spec_.activation != Activation::kGeluTanh);
  }

  void Declare(ParameterLayout& layout) override {
    const std::string prefix = spec_.name.empty() ? "" : spec_.name + ".";
    std::vector<std::uint64_t> shape = {spec_.inputs, spec_.outputs};
    if (spec_.layout == WeightLayout::kOutIn) {
      std::swap(shape[0], shape[1]);
    }
    if (spec_.vector_weight) {
      shape = {spec_.inputs};
    }
    weight_.Declare(layout, {.name = prefix + "weight",
                             .shape = std::move(shape),
                             .initial_deviation = spec_.initial_deviation});
    bias_.Declare(
        layout, {.name = prefix + "bias", .shape = {spec_.outputs}, .role = ParameterRole::kBias});
  }

  void Bind(const ParameterLayout& layout) override {
    weight_.Bind(layout);
    bias_.Bind(layout);
  }

  bool IsTrained() const override { return weight_.IsTrained() || bias_.IsTrained(); }

  ConstMatrix Forward(Device& device, const Pass& pass, ConstMatrix x) override {
    x_ = x;
    y_.ResizeMatrix(x.rows, spec_.outputs, device.memory());
    device.Dense(x, WeightIn(pass), bias_.In(pass.parameters), spec_.activation, y_.AsMatrix());
    return y_.AsMatrix();
  }

  Matrix Backward(Device& device, const Pass& pass, Matrix dy, bool wants_dx,
                  std::span<float> gradient) override {
    device.ActivationGradient(spec_.activation, std::as_const(y_).AsMatrix(), dy);
    if (weight_.IsTrained()) {
      float* const dw = weight_.In(gradient).data();
      if (spec_.layout == WeightLayout::kInOut) {
        device.DenseWeightGradient(x_, dy, {dw, spec_.inputs, spec_.outputs});
      } else {
        device.DenseWeightGradient(dy, x_, {dw, spec_.outputs, spec_.inputs});
      }
    }
    if (bias_.IsTrained()) {
      device.DenseBiasGradient(dy, bias_.In(gradient));
    }
    if (!wants_dx) {
      return {};
    }
    dx_.ResizeMatrix(dy.rows, spec_.inputs, device.memory());
    device.DenseInputGradient(dy, WeightIn(pass), false, dx_.AsMatrix());
    return dx_.AsMatrix();
  }

  double StepFlops(bool wants_dx, std::size_t& rows) const override {
    const int products = 1 + (weight_.IsTrained() ? 1 : 0) + (wants_dx ? 1 : 0);
    return 2.0 * products * static_cast<double>(rows) * static_cast<double>(spec_.inputs) *
           static_cast<double>(spec_.outputs);
  }

 private:
  Weight WeightIn(const Pass& pass) const {
    return {.data = weight_.In(pass.parameters).data(),
            .inputs = spec_.inputs,
            .outputs = spec_.outputs,
            .layout = spec_.layout};
  }

  DenseSpec spec_;
  Parameter weight_;
  Parameter bias_;
  ConstMatrix x_;
  Tensor y_;
  Tensor dx_;
};

}  // namespace

std::unique_ptr<Layer> MakeDense(DenseSpec spec) {
  return std::make_unique<DenseLayer>(std::move(spec));
}

}  // namespace domicile::models

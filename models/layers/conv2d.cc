#include "models/layers/conv2d.h"

#include <utility>

#include "base/status.h"

namespace domicile::models {
namespace {

class Conv2dLayer final : public Layer {
 public:
  explicit Conv2dLayer(Conv2dSpec spec) : spec_(std::move(spec)) {
    DOMICILE_CHECK(spec_.activation != Activation::kGelu &&
                   spec_.activation != Activation::kGeluTanh && spec_.shape.outputs > 0);
  }

  void Declare(ParameterLayout& layout) override {
    const ConvShape& shape = spec_.shape;
    weight_.Declare(layout, {.name = spec_.name + ".weight",
                             .shape = {shape.filters, shape.channels, shape.kernel, shape.kernel},
                             .initial_deviation = spec_.initial_deviation});
    bias_.Declare(
        layout,
        {.name = spec_.name + ".bias", .shape = {shape.filters}, .role = ParameterRole::kBias});
  }

  void Bind(const ParameterLayout& layout) override {
    weight_.Bind(layout);
    bias_.Bind(layout);
  }

  bool IsTrained() const override { return weight_.IsTrained() || bias_.IsTrained(); }

  ConstMatrix Forward(Device& device, const Pass& pass, ConstMatrix x) override {
    x_ = x;
    y_.ResizeMatrix(x.rows, spec_.shape.outputs, device.memory());
    device.Conv2d(spec_.shape, x, weight_.In(pass.parameters), bias_.In(pass.parameters),
                  spec_.activation, y_.AsMatrix());
    return y_.AsMatrix();
  }

  Matrix Backward(Device& device, const Pass& pass, Matrix dy, bool wants_dx,
                  std::span<float> gradient) override {
    device.ActivationGradient(spec_.activation, std::as_const(y_).AsMatrix(), dy);
    if (IsTrained()) {
      // The device gives both gradients at once; one that is not wanted goes nowhere.
      const std::span<float> dw = Place(weight_, gradient, unwanted_weight_);
      device.Conv2dWeightGradient(spec_.shape, x_, dy, dw, Place(bias_, gradient, unwanted_bias_));
    }
    if (!wants_dx) {
      return {};
    }
    dx_.ResizeMatrix(dy.rows, spec_.shape.channels * spec_.shape.height * spec_.shape.width,
                     device.memory());
    device.Conv2dInputGradient(spec_.shape, dy, weight_.In(pass.parameters), dx_.AsMatrix());
    return dx_.AsMatrix();
  }

  double StepFlops(bool wants_dx, std::size_t& /*rows*/) const override {
    const int products = 1 + (IsTrained() ? 1 : 0) + (wants_dx ? 1 : 0);
    return 2.0 * products * static_cast<double>(spec_.shape.patch) *
           static_cast<double>(spec_.shape.outputs);
  }

 private:
  static std::span<float> Place(const Parameter& parameter, std::span<float> gradient,
                                std::vector<float>& unwanted) {
    if (parameter.IsTrained()) {
      return parameter.In(gradient);
    }
    unwanted.resize(parameter.size());
    return unwanted;
  }

  Conv2dSpec spec_;
  Parameter weight_;
  Parameter bias_;
  ConstMatrix x_;
  Tensor y_;
  Tensor dx_;
  std::vector<float> unwanted_weight_;
  std::vector<float> unwanted_bias_;
};

}  // namespace

ConvShape MakeConvShape(ConvShape shape) {
  DOMICILE_CHECK(shape.kernel > 0 && shape.stride > 0 && shape.padding < shape.kernel &&
                 shape.height + 2 * shape.padding >= shape.kernel &&
                 shape.width + 2 * shape.padding >= shape.kernel);
  shape.out_height = (shape.height + 2 * shape.padding - shape.kernel) / shape.stride + 1;
  shape.out_width = (shape.width + 2 * shape.padding - shape.kernel) / shape.stride + 1;
  shape.patch = shape.channels * shape.kernel * shape.kernel;
  shape.outputs = shape.filters * shape.out_height * shape.out_width;
  return shape;
}

std::unique_ptr<Layer> MakeConv2d(Conv2dSpec spec) {
  return std::make_unique<Conv2dLayer>(std::move(spec));
}

}  // namespace domicile::models

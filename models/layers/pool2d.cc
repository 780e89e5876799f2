#include "models/layers/pool2d.h"

#include <utility>

#include "base/status.h"

namespace domicile::models {
namespace {

class Pool2dLayer final : public Layer {
 public:
  Pool2dLayer(PoolKind kind, const PoolShape& shape) : kind_(kind), shape_(shape) {}

  ConstMatrix Forward(Device& device, const Pass& /*pass*/, ConstMatrix x) override {
    y_.ResizeMatrix(x.rows, shape_.outputs, device.memory());
    if (kind_ == PoolKind::kAverage) {
      device.AveragePool(shape_, x, y_.AsMatrix());
    } else {
      chosen_.Resize(x.rows * shape_.outputs, device.memory());
      device.MaxPool(shape_, x, y_.AsMatrix(), chosen_.Values());
    }
    return y_.AsMatrix();
  }

  Matrix Backward(Device& device, const Pass& /*pass*/, Matrix dy, bool wants_dx,
                  std::span<float> /*gradient*/) override {
    if (!wants_dx) {
      return {};
    }
    dx_.ResizeMatrix(dy.rows, shape_.channels * shape_.height * shape_.width, device.memory());
    if (kind_ == PoolKind::kAverage) {
      device.AveragePoolGradient(shape_, dy, dx_.AsMatrix());
    } else {
      device.MaxPoolGradient(shape_, std::as_const(chosen_).Values(), dy, dx_.AsMatrix());
    }
    return dx_.AsMatrix();
  }

 private:
  PoolKind kind_;
  PoolShape shape_;
  Buffer<std::uint32_t> chosen_;
  Tensor y_;
  Tensor dx_;
};

}  // namespace

PoolShape MakePoolShape(PoolShape shape) {
  DOMICILE_CHECK(shape.window > 0 && shape.stride > 0 && shape.height >= shape.window &&
                 shape.width >= shape.window);
  shape.out_height = (shape.height - shape.window) / shape.stride + 1;
  shape.out_width = (shape.width - shape.window) / shape.stride + 1;
  shape.outputs = shape.channels * shape.out_height * shape.out_width;
  return shape;
}

std::unique_ptr<Layer> MakePool2d(PoolKind kind, const PoolShape& shape) {
  return std::make_unique<Pool2dLayer>(kind, shape);
}

}  // namespace domicile::models

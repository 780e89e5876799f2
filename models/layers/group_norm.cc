#include "models/layers/group_norm.h"

#include <utility>

namespace domicile::models {
namespace {

class GroupNormLayer final : public Layer {
 public:
  GroupNormLayer(std::string name, const NormShape& shape)
      : name_(std::move(name)), shape_(shape) {}

  void Declare(ParameterLayout& layout) override {
    scale_.Declare(layout, {.name = name_ + ".weight",
                            .shape = {shape_.channels},
                            .role = ParameterRole::kScale,
                            .initial_value = 1});
    shift_.Declare(
        layout,
        {.name = name_ + ".bias", .shape = {shape_.channels}, .role = ParameterRole::kBias});
  }

  void Bind(const ParameterLayout& layout) override {
    scale_.Bind(layout);
    shift_.Bind(layout);
  }

  bool IsTrained() const override { return scale_.IsTrained() || shift_.IsTrained(); }

  ConstMatrix Forward(Device& device, const Pass& pass, ConstMatrix x) override {
    x_ = x;
    y_.ResizeMatrix(x.rows, x.columns, device.memory());
    statistics_.ResizeMatrix(x.rows, 2 * shape_.groups, device.memory());
    device.GroupNorm(shape_, x, scale_.In(pass.parameters), shift_.In(pass.parameters),
                     y_.AsMatrix(), statistics_.Values());
    return y_.AsMatrix();
  }

  Matrix Backward(Device& device, const Pass& pass, Matrix dy, bool wants_dx,
                  std::span<float> gradient) override {
    // The device gives both gradients at once; one that is not wanted goes nowhere.
    unwanted_.resize(IsTrained() ? shape_.channels : 0);
    const std::span<float> none = unwanted_;
    device.GroupNormGradient(shape_, x_, scale_.In(pass.parameters),
                             std::as_const(statistics_).Values(), dy, wants_dx ? dy : Matrix{},
                             scale_.IsTrained() ? scale_.In(gradient) : none,
                             shift_.IsTrained() ? shift_.In(gradient) : none);
    return wants_dx ? dy : Matrix{};
  }

 private:
  std::string name_;
  NormShape shape_;
  Parameter scale_;
  Parameter shift_;
  ConstMatrix x_;
  Tensor y_;
  Tensor statistics_;
  std::vector<float> unwanted_;
};

}  // namespace

std::unique_ptr<Layer> MakeGroupNorm(std::string name, const NormShape& shape) {
  return std::make_unique<GroupNormLayer>(std::move(name), shape);
}

std::unique_ptr<Layer> MakeLayerNorm(std::string name, std::size_t columns, float epsilon) {
  return MakeGroupNorm(std::move(name),
                       {.groups = 1, .channels = columns, .positions = 1, .epsilon = epsilon});
}

}  // namespace domicile::models

#include "models/layers/dropout.h"

namespace domicile::models {
namespace {

class DropoutLayer final : public Layer {
 public:
  DropoutLayer(std::uint64_t number, float rate) : number_(number), rate_(rate) {}

  ConstMatrix Forward(Device& device, const Pass& pass, ConstMatrix x) override {
    const DropoutMask mask = MaskFor(pass, x.rows * x.columns);
    if (mask.rate == 0) {
      return x;
    }
    y_.ResizeMatrix(x.rows, x.columns, device.memory());
    device.Dropout(mask, x, y_.AsMatrix());
    return y_.AsMatrix();
  }

  Matrix Backward(Device& device, const Pass& pass, Matrix dy, bool wants_dx,
                  std::span<float> /*gradient*/) override {
    const DropoutMask mask = MaskFor(pass, dy.rows * dy.columns);
    if (wants_dx && mask.rate > 0) {
      device.Dropout(mask, dy, dy);
    }
    return dy;
  }

 private:
  DropoutMask MaskFor(const Pass& pass, std::size_t elements) const {
    return MaskOf(pass, number_, rate_, pass.num_examples == 0 ? 0 : elements / pass.num_examples);
  }

  std::uint64_t number_;
  float rate_;
  Tensor y_;
};

}  // namespace

std::unique_ptr<Layer> MakeDropout(std::uint64_t number, float rate) {
  return std::make_unique<DropoutLayer>(number, rate);
}

}  // namespace domicile::models

#include "models/layers/attention.h"

#include <array>
#include <utility>

#include "base/status.h"

namespace domicile::models {
namespace {

class AttentionLayer final : public Layer {
 public:
  explicit AttentionLayer(AttentionSpec spec) : spec_(std::move(spec)) {}

  void Declare(ParameterLayout& layout) override {
    for (Layer* projection : Projections()) {
      projection->Declare(layout);
    }
  }
  void Bind(const ParameterLayout& layout) override {
    for (Layer* projection : Projections()) {
      projection->Bind(layout);
    }
  }
  bool IsTrained() const override {
    return spec_.query->IsTrained() || spec_.key->IsTrained() || spec_.value->IsTrained();
  }

  ConstMatrix Forward(Device& device, const Pass& pass, ConstMatrix x) override {
    q_ = spec_.query->Forward(device, pass, x);
    k_ = spec_.key->Forward(device, pass, x);
    v_ = spec_.value->Forward(device, pass, x);
    const AttentionShape shape = ShapeOf(pass);
    y_.ResizeMatrix(x.rows, q_.columns, device.memory());
    probabilities_.ResizeMatrix(x.rows * shape.heads, shape.length, device.memory());
    device.Attention(shape, q_, k_, v_, pass.tokens.mask, MaskFor(pass), probabilities_.Values(),
                     y_.AsMatrix());
    return y_.AsMatrix();
  }

  Matrix Backward(Device& device, const Pass& pass, Matrix dy, bool wants_dx,
                  std::span<float> gradient) override {
    for (Tensor* tensor : {&dq_, &dk_, &dv_}) {
      tensor->ResizeMatrix(dy.rows, dy.columns, device.memory());
    }
    device.AttentionGradient(ShapeOf(pass), q_, k_, v_, std::as_const(probabilities_).Values(),
                             MaskFor(pass), dy, dq_.AsMatrix(), dk_.AsMatrix(), dv_.AsMatrix());
    const Matrix of_value = spec_.value->Backward(device, pass, dv_.AsMatrix(), wants_dx, gradient);
    const Matrix of_key = spec_.key->Backward(device, pass, dk_.AsMatrix(), wants_dx, gradient);
    const Matrix dx = spec_.query->Backward(device, pass, dq_.AsMatrix(), wants_dx, gradient);
    if (!wants_dx) {
      return {};
    }
    const auto flat = [](Matrix m) { return std::span<float>(m.data, m.rows * m.columns); };
    device.Add(flat(dx), flat(of_key), flat(dx));
    device.Add(flat(dx), flat(of_value), flat(dx));
    return dx;
  }

  void UpdateStatistics(Device& device, double divisor, std::span<const float> gradient,
                        std::span<float> parameters) override {
    for (Layer* projection : Projections()) {
      projection->UpdateStatistics(device, divisor, gradient, parameters);
    }
  }

  double StepFlops(bool wants_dx, std::size_t& rows) const override {
    // Two products between tokens forward, four backward.
    const double products = wants_dx || IsTrained() ? 6 : 2;
    const double between = 2.0 * products * static_cast<double>(rows * rows) *
                           static_cast<double>(spec_.heads * spec_.width);
    return between + spec_.query->StepFlops(wants_dx, rows) + spec_.key->StepFlops(wants_dx, rows) +
           spec_.value->StepFlops(wants_dx, rows);
  }

 private:
  std::array<Layer*, 3> Projections() {
    return {spec_.query.get(), spec_.key.get(), spec_.value.get()};
  }
  AttentionShape ShapeOf(const Pass& pass) const {
    return {.length = pass.tokens.length,
            .heads = spec_.heads,
            .width = spec_.width,
            .causal = spec_.causal};
  }
  DropoutMask MaskFor(const Pass& pass) const {
    return MaskOf(pass, spec_.dropout_number, spec_.dropout,
                  spec_.heads * pass.tokens.length * pass.tokens.length);
  }

  AttentionSpec spec_;
  ConstMatrix q_;
  ConstMatrix k_;
  ConstMatrix v_;
  Tensor probabilities_;
  Tensor y_;
  Tensor dq_;
  Tensor dk_;
  Tensor dv_;
};

}  // namespace

std::unique_ptr<Layer> MakeAttention(AttentionSpec spec) {
  DOMICILE_CHECK(spec.query && spec.key && spec.value);
  return std::make_unique<AttentionLayer>(std::move(spec));
}

}  // namespace domicile::models

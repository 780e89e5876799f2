#include "models/layers/lora.h"

#include <array>
#include <cmath>
#include <utility>

#include "base/status.h"

namespace domicile::models {
namespace {

std::span<const float> Flat(ConstMatrix m) { return {m.data, m.rows * m.columns}; }

class LoraLayer final : public Layer {
 public:
  LoraLayer(DenseSpec dense, const LoraSpec& lora)
      : name_(dense.name),
        inputs_(dense.inputs),
        outputs_(dense.outputs),
        lora_(lora),
        scale_(static_cast<float>(lora.alpha / static_cast<double>(lora.rank))),
        base_(MakeDense(std::move(dense))) {}

  void Declare(ParameterLayout& layout) override {
    base_->Declare(layout);
    const std::array<std::string, 2> frozen = {name_ + ".weight", name_ + ".bias"};
    layout.Freeze(frozen);
    base_->Bind(layout);
    a_.Declare(layout, {.name = name_ + ".lora_A.weight",
                        .shape = {lora_.rank, inputs_},
                        .trainable = lora_.trains_a,
                        .initial_deviation = 1 / std::sqrt(static_cast<double>(inputs_))});
    b_.Declare(layout, {.name = name_ + ".lora_B.weight", .shape = {outputs_, lora_.rank}});
  }

  void Bind(const ParameterLayout& layout) override {
    base_->Bind(layout);
    a_.Bind(layout);
    b_.Bind(layout);
  }

  bool IsTrained() const override { return a_.IsTrained() || b_.IsTrained() || base_->IsTrained(); }

  ConstMatrix Forward(Device& device, const Pass& pass, ConstMatrix x) override {
    x_ = x;
    const ConstMatrix base = base_->Forward(device, pass, x);
    inner_.ResizeMatrix(x.rows, lora_.rank, device.memory());
    device.Dense(x, A(pass), {}, Activation::kNone, inner_.AsMatrix());
    device.Scale(scale_, inner_.Values());
    y_.ResizeMatrix(x.rows, outputs_, device.memory());
    device.Dense(inner_.AsMatrix(), B(pass), {}, Activation::kNone, y_.AsMatrix());
    device.Add(Flat(base), y_.Values(), y_.Values());
    return y_.AsMatrix();
  }

  Matrix Backward(Device& device, const Pass& pass, Matrix dy, bool wants_dx,
                  std::span<float> gradient) override {
    if (b_.IsTrained()) {
      device.DenseWeightGradient(dy, inner_.AsMatrix(),
                                 {b_.In(gradient).data(), outputs_, lora_.rank});
    }
    if (a_.IsTrained() || wants_dx) {
      dinner_.ResizeMatrix(dy.rows, lora_.rank, device.memory());
      device.DenseInputGradient(dy, B(pass), false, dinner_.AsMatrix());
      device.Scale(scale_, dinner_.Values());
    }
    if (a_.IsTrained()) {
      device.DenseWeightGradient(dinner_.AsMatrix(), x_,
                                 {a_.In(gradient).data(), lora_.rank, inputs_});
    }
    const Matrix dx = base_->Backward(device, pass, dy, wants_dx, gradient);
    if (wants_dx) {
      device.DenseInputGradient(dinner_.AsMatrix(), A(pass), true, dx);
    }
    return dx;
  }

  double StepFlops(bool wants_dx, std::size_t& rows) const override {
    const double rank = static_cast<double>(rows) * static_cast<double>(lora_.rank);
    const bool inner = a_.IsTrained() || wants_dx;
    const int of_a = 1 + (a_.IsTrained() ? 1 : 0) + (wants_dx ? 1 : 0);
    const int of_b = 1 + (b_.IsTrained() ? 1 : 0) + (inner ? 1 : 0);
    return base_->StepFlops(wants_dx, rows) +
           2.0 * rank *
               (of_a * static_cast<double>(inputs_) + of_b * static_cast<double>(outputs_));
  }

 private:
  Weight A(const Pass& pass) const {
    return {a_.In(pass.parameters).data(), inputs_, lora_.rank, WeightLayout::kOutIn};
  }
  Weight B(const Pass& pass) const {
    return {b_.In(pass.parameters).data(), lora_.rank, outputs_, WeightLayout::kOutIn};
  }

  std::string name_;
  std::size_t inputs_;
  std::size_t outputs_;
  LoraSpec lora_;
  float scale_;
  std::unique_ptr<Layer> base_;
  Parameter a_;
  Parameter b_;
  ConstMatrix x_;
  Tensor inner_;  // scale * x A^T
  Tensor dinner_;
  Tensor y_;
};

}  // namespace

std::unique_ptr<Layer> MakeLora(DenseSpec dense, const LoraSpec& lora) {
  DOMICILE_CHECK(lora.rank > 0 && dense.activation == Activation::kNone && !dense.name.empty());
  return std::make_unique<LoraLayer>(std::move(dense), lora);
}

}  // namespace domicile::models

#include "models/layers/token_pool.h"

namespace domicile::models {
namespace {

class TokenPoolLayer final : public Layer {
 public:
  explicit TokenPoolLayer(TokenPoolKind kind) : kind_(kind) {}

  ConstMatrix Forward(Device& device, const Pass& pass, ConstMatrix x) override {
    const std::size_t sequences = pass.tokens.NumSequences();
    y_.ResizeMatrix(sequences, x.columns, device.memory());
    if (kind_ == TokenPoolKind::kMean) {
      device.MeanOfTokens(x, pass.tokens.length, pass.tokens.mask, y_.AsMatrix());
      return y_.AsMatrix();
    }
    firsts_.resize(sequences);
    for (std::size_t i = 0; i < sequences; ++i) {
      firsts_[i] = static_cast<std::uint32_t>(i * pass.tokens.length);
    }
    device.Gather(x, firsts_, false, y_.AsMatrix());
    return y_.AsMatrix();
  }

  Matrix Backward(Device& device, const Pass& pass, Matrix dy, bool wants_dx,
                  std::span<float> /*gradient*/) override {
    if (!wants_dx) {
      return {};
    }
    dx_.ResizeMatrix(dy.rows * pass.tokens.length, dy.columns, device.memory());
    if (kind_ == TokenPoolKind::kMean) {
      device.MeanOfTokensGradient(dy, pass.tokens.length, pass.tokens.mask, dx_.AsMatrix());
    } else {
      device.memory().Zero(dx_.Values().data(), dx_.Values().size_bytes());
      device.ScatterAdd(firsts_, dy, dx_.AsMatrix());
    }
    return dx_.AsMatrix();
  }

  double StepFlops(bool /*wants_dx*/, std::size_t& rows) const override {
    rows = 1;
    return 0;
  }

 private:
  TokenPoolKind kind_;
  std::vector<std::uint32_t> firsts_;
  Tensor y_;
  Tensor dx_;
};

}  // namespace

std::unique_ptr<Layer> MakeTokenPool(TokenPoolKind kind) {
  return std::make_unique<TokenPoolLayer>(kind);
}

}  // namespace domicile::models

#include "models/layers/embedding.h"

#include <utility>

#include "base/status.h"

namespace domicile::models {
namespace {

class EmbeddingLayer final : public Layer {
 public:
  explicit EmbeddingLayer(EmbeddingSpec spec) : spec_(std::move(spec)) {}

  void Declare(ParameterLayout& layout) override {
    const auto declare = [&](Parameter& parameter, const char* suffix, std::size_t rows) {
      parameter.Declare(layout, {.name = spec_.prefix + suffix,
                                 .shape = {rows, spec_.width},
                                 .initial_deviation = spec_.initial_deviation});
    };
    declare(words_, ".word_embeddings.weight", spec_.vocabulary);
    declare(positions_, ".position_embeddings.weight", spec_.positions);
    declare(types_, ".token_type_embeddings.weight", spec_.types);
  }

  void Bind(const ParameterLayout& layout) override {
    for (Parameter* parameter : {&words_, &positions_, &types_}) {
      parameter->Bind(layout);
    }
  }

  bool IsTrained() const override {
    return words_.IsTrained() || positions_.IsTrained() || types_.IsTrained();
  }

  ConstMatrix Forward(Device& device, const Pass& pass, ConstMatrix /*x*/) override {
    const TokenView& tokens = pass.tokens;
    DOMICILE_CHECK(tokens.length > 0 && tokens.length <= spec_.positions);
    places_.resize(tokens.ids.size());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      places_[i] = static_cast<std::uint32_t>(i % tokens.length);
    }
    all_zero_.assign(tokens.types.empty() ? tokens.ids.size() : 0, 0);
    y_.ResizeMatrix(tokens.ids.size(), spec_.width, device.memory());
    const auto gather = [&](const Parameter& parameter, std::size_t rows,
                            std::span<const std::uint32_t> ids, bool accumulate) {
      device.Gather({parameter.In(pass.parameters).data(), rows, spec_.width}, ids, accumulate,
                    y_.AsMatrix());
    };
    gather(words_, spec_.vocabulary, tokens.ids, false);
    gather(positions_, spec_.positions, places_, true);
    gather(types_, spec_.types, TypesOf(tokens), true);
    return y_.AsMatrix();
  }

  Matrix Backward(Device& device, const Pass& pass, Matrix dy, bool /*wants_dx*/,
                  std::span<float> gradient) override {
    const auto scatter = [&](const Parameter& parameter, std::size_t rows,
                             std::span<const std::uint32_t> ids) {
      if (!parameter.IsTrained()) {
        return;
      }
      const std::span<float> table = parameter.In(gradient);
      device.memory().Zero(table.data(), table.size_bytes());
      device.ScatterAdd(ids, dy, {table.data(), rows, spec_.width});
    };
    scatter(words_, spec_.vocabulary, pass.tokens.ids);
    scatter(positions_, spec_.positions, places_);
    scatter(types_, spec_.types, TypesOf(pass.tokens));
    return {};
  }

 private:
  std::span<const std::uint32_t> TypesOf(const TokenView& tokens) const {
    return tokens.types.empty() ? std::span<const std::uint32_t>(all_zero_) : tokens.types;
  }

  EmbeddingSpec spec_;
  Parameter words_;
  Parameter positions_;
  Parameter types_;
  std::vector<std::uint32_t> places_;
  std::vector<std::uint32_t> all_zero_;
  Tensor y_;
};

}  // namespace

std::unique_ptr<Layer> MakeEmbedding(EmbeddingSpec spec) {
  return std::make_unique<EmbeddingLayer>(std::move(spec));
}

}  // namespace domicile::models

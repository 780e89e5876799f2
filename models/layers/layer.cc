#include "models/layers/layer.h"

#include <utility>

#include "base/status.h"

namespace domicile::models {

TokenView TokenView::Rows(std::size_t first, std::size_t count) const {
  DOMICILE_CHECK((first + count) * length <= ids.size());
  const auto cut = [this, first, count](const auto& values) {
    return values.empty() ? values : values.subspan(first * length, count * length);
  };
  return {.ids = cut(ids), .types = cut(types), .mask = cut(mask), .length = length};
}

void Layer::Declare(ParameterLayout& /*layout*/) {}
void Layer::Bind(const ParameterLayout& /*layout*/) {}
void Layer::UpdateStatistics(Device& /*device*/, double /*divisor*/,
                             std::span<const float> /*gradient*/, std::span<float> /*parameters*/) {
}

double Layer::StepFlops(bool /*wants_dx*/, std::size_t& /*rows*/) const { return 0; }

void Parameter::Declare(ParameterLayout& layout, ParameterView view) {
  index_ = layout.Add(std::move(view));
  Bind(layout);
}

void Parameter::Bind(const ParameterLayout& layout) {
  const ParameterView& view = layout.View(index_);
  offset_ = view.offset;
  size_ = view.size;
  trainable_ = view.trainable;
}

std::uint64_t MixKey(std::uint64_t key, std::uint64_t layer) {
  // The finaliser of SplitMix64 over both.
  std::uint64_t mixed = key + (layer + 1) * 0x9e3779b97f4a7c15U;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31U);
}

DropoutMask MaskOf(const Pass& pass, std::uint64_t layer, float rate, std::size_t elements) {
  return {.key = MixKey(pass.dropout_key, layer),
          .first = pass.first_example * elements,
          .rate = pass.training ? rate : 0};
}

}  // namespace domicile::models

#include "bench/workloads.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/random.h"

namespace domicile {
namespace {

const models::OptimizerSpec kSgd = {
    .kind = models::OptimizerKind::kSgd, .learning_rate = 0.01, .momentum = 0.9};

}  // namespace

std::vector<Workload> Workloads() {
  models::EncoderSpec minilm = models::MiniLmSpec();
  minilm.dropout = 0.1F;
  minilm.pooling = models::Pooling::kFirst;
  minilm.num_outputs = 2;
  return {
      {"logistic", models::NetworkSpec{.num_inputs = 30, .hidden = {}, .num_outputs = 1}, kSgd, 64},
      {"mlp",
       models::NetworkSpec{.num_inputs = 784,
                           .hidden = {256, 128},
                           .activation = models::Activation::kRelu,
                           .num_outputs = 10},
       kSgd, 64},
      {"cnn",
       models::ConvNetSpec{.channels = 1,
                           .height = 28,
                           .width = 28,
                           .blocks = {{.filters = 32, .kernel = 3, .pool_window = 2},
                                      {.filters = 64, .kernel = 3, .pool_window = 2}},
                           .hidden = {128},
                           .num_outputs = 10},
       kSgd, 64},
      {"minilm",
       minilm,
       {.kind = models::OptimizerKind::kAdamW, .learning_rate = 2e-5, .weight_decay = 0.01},
       16}};
}

Examples::Examples(const Workload& workload, std::size_t count)
    : inputs_({count, models::NumInputs(workload.model)}) {
  SeededRandom random(1);
  for (float& value : inputs_.Values()) {
    value = static_cast<float>(static_cast<double>(random.Below(2001)) / 1000 - 1);
  }
  const std::size_t outputs = models::NumOutputs(workload.model);
  for (std::size_t row = 0; row < count; ++row) {
    labels_.push_back(static_cast<std::uint32_t>(random.Below(outputs == 1 ? 2 : outputs)));
  }
  if (const auto* encoder = std::get_if<models::EncoderSpec>(&workload.model)) {
    for (std::size_t token = 0; token < count * kBenchTokens; ++token) {
      ids_.push_back(static_cast<std::uint32_t>(random.Below(encoder->vocabulary)));
    }
  }
}

Examples::Examples(const Examples& all, std::span<const std::size_t> indices)
    : inputs_({indices.size(), all.inputs_.shape()[1]}) {
  const std::size_t columns = inputs_.shape()[1];
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::size_t row = indices[i];
    labels_.push_back(all.labels_[row]);
    std::copy_n(all.inputs_.Values().subspan(row * columns).begin(), columns,
                inputs_.Values().subspan(i * columns).begin());
    if (!all.ids_.empty()) {
      const auto first = all.ids_.begin() + static_cast<std::ptrdiff_t>(row * kBenchTokens);
      ids_.insert(ids_.end(), first, first + kBenchTokens);
    }
  }
}

models::BatchView Examples::View() const {
  models::BatchView view;
  view.labels = labels_;
  if (ids_.empty()) {
    view.inputs = inputs_.AsMatrix();
  } else {
    view.tokens = {.ids = ids_, .types = {}, .mask = {}, .length = kBenchTokens};
  }
  return view;
}

std::uint64_t Examples::Bytes() const {
  return inputs_.NumElements() * sizeof(float) +
         (labels_.size() + ids_.size()) * sizeof(std::uint32_t);
}

}  // namespace domicile

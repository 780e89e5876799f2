// The models that the training benches train, and data for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/strategy/strategy.h"

namespace domicile {

inline constexpr std::size_t kBenchTokens = 128;  // of a sequence

struct Workload {
  const char* name;
  models::ModelSpec model;
  models::OptimizerSpec optimizer;
  std::size_t batch;
};

// logistic, mlp, cnn, minilm.
std::vector<Workload> Workloads();

// Made-up examples of a workload: whole sequences for an encoder, else rows of numbers.
class Examples {
 public:
  Examples(const Workload& workload, std::size_t count);
  // Some of another's, in that order.
  Examples(const Examples& all, std::span<const std::size_t> indices);
  Examples(Examples&&) noexcept = default;
  Examples& operator=(Examples&&) noexcept = default;

  models::BatchView View() const;
  std::uint64_t Bytes() const;

 private:
  models::Tensor inputs_;
  std::vector<std::uint32_t> labels_;
  std::vector<std::uint32_t> ids_;
};

}  // namespace domicile

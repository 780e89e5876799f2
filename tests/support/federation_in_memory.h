// Federated averaging in a few lines of float64, for tests that look at what trainers compute.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "contracts/plan.h"
#include "site_agent/trainer/execute.h"

namespace domicile::tests {

using Model = std::vector<models::NamedTensor>;

// The weights of a model in the order of the plan, as one list.
inline std::vector<double> Flatten(const contracts::Plan& plan, const Model& model) {
  std::vector<double> flat;
  for (const contracts::TensorSpec& spec : plan.Tensors()) {
    const models::NamedTensor* const tensor = models::FindTensor(model, spec.name);
    DOMICILE_CHECK(tensor != nullptr);
    flat.insert(flat.end(), tensor->values.begin(), tensor->values.end());
  }
  return flat;
}

struct Constants {
  std::vector<double> mean;
  std::vector<double> deviation;
};

// Mean and population deviation from the sites' grid integers.
inline Constants PoolConstants(const contracts::Plan& plan,
                               const std::vector<site_agent::StatisticsResult>& sites) {
  Constants constants;
  for (std::size_t input = 0; input < plan.NumInputs(); ++input) {
    std::int64_t count = 0;
    std::int64_t sum = 0;
    std::int64_t squares = 0;
    for (const site_agent::StatisticsResult& site : sites) {
      count += site.counts[input];
      sum += site.sums[input];
      squares += site.squares[input];
    }
    const double unit = std::ldexp(1.0, -static_cast<int>(plan.normalisation.scale_bits));
    const double first = unit * static_cast<double>(sum) / static_cast<double>(count);
    const double second = unit * static_cast<double>(squares) / static_cast<double>(count);
    constants.mean.push_back(plan.normalisation.offsets[input] + first);
    constants.deviation.push_back(std::sqrt(second - first * first));
  }
  return constants;
}

inline models::NamedTensor Vector(std::string name, const std::vector<double>& values) {
  models::NamedTensor tensor = {.name = std::move(name), .shape = {values.size()}};
  tensor.values.assign(values.begin(), values.end());
  return tensor;
}

// One round: every site trains from `model`, and the mean of the deltas, weighted by rows, is
// added.
inline void AddRound(const contracts::Plan& plan,
                     const std::vector<site_agent::LoadedDataset>& sites, RoundNumber round,
                     Model& model, const site_agent::TrainOptions& options = {}) {
  std::vector<std::vector<double>> sums;
  double weight = 0;
  for (const site_agent::LoadedDataset& site : sites) {
    const auto trained = site_agent::Train(plan, site, model, round, options);
    DOMICILE_CHECK(trained.ok());
    const double rows = static_cast<double>(trained->rows);
    sums.resize(trained->delta.size());
    for (std::size_t t = 0; t < sums.size(); ++t) {
      sums[t].resize(trained->delta[t].values.size(), 0);
      for (std::size_t i = 0; i < sums[t].size(); ++i) {
        sums[t][i] += rows * static_cast<double>(trained->delta[t].values[i]);
      }
    }
    weight += rows;
  }
  for (std::size_t t = 0; t < sums.size(); ++t) {
    for (std::size_t i = 0; i < sums[t].size(); ++i) {
      float& value = model[t].values[i];
      value = static_cast<float>(static_cast<double>(value) + sums[t][i] / weight);
    }
  }
}

}  // namespace domicile::tests

#include "cli/demo/partition.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace domicile::cli {

namespace {

void ShuffleRows(std::vector<std::size_t>& rows, Random& random) {
  for (std::size_t i = rows.size(); i > 1; --i) {
    std::swap(rows[i - 1], rows[random.Below(i)]);
  }
}

std::vector<std::size_t> Numbers(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

double Uniform(Random& random) {
  return (static_cast<double>(random.Next64() >> 11U) + 0.5) * 0x1p-53;
}

// The square of a normal number: twice a Gamma(1/2), whose shares of their sum are Dirichlet.
double SquaredNormal(Random& random) {
  const double radius = -2 * std::log(Uniform(random));
  const double cosine = std::cos(2 * std::numbers::pi * Uniform(random));
  return radius * cosine * cosine;
}

}  // namespace

Partition SplitEvenly(std::size_t rows, std::size_t sites, Random& random) {
  Partition partition(sites);
  const std::vector<double> weights(sites, 1);
  DealByWeights(Numbers(rows), weights, random, partition);
  return partition;
}

Partition SplitByDirichlet(std::span<const std::uint32_t> labels, std::size_t sites,
                           Random& random) {
  Partition partition(sites);
  const std::uint32_t classes =
      labels.empty() ? 0 : *std::max_element(labels.begin(), labels.end()) + 1;
  for (std::uint32_t label = 0; label < classes; ++label) {
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < labels.size(); ++row) {
      if (labels[row] == label) {
        rows.push_back(row);
      }
    }
    std::vector<double> weights;
    for (std::size_t site = 0; site < sites; ++site) {
      weights.push_back(SquaredNormal(random));
    }
    DealByWeights(std::move(rows), weights, random, partition);
  }
  return partition;
}

Partition SplitByClasses(std::span<const std::uint32_t> labels, std::size_t sites, Random& random) {
  std::vector<std::size_t> rows = Numbers(labels.size());
  std::stable_sort(rows.begin(), rows.end(),
                   [labels](std::size_t a, std::size_t b) { return labels[a] < labels[b]; });
  const std::size_t runs = 2 * sites;
  std::vector<std::size_t> order = Numbers(runs);
  ShuffleRows(order, random);
  Partition partition(sites);
  for (std::size_t i = 0; i < runs; ++i) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(order[i] * rows.size() / runs);
    const auto end =
        rows.begin() + static_cast<std::ptrdiff_t>((order[i] + 1) * rows.size() / runs);
    partition[i / 2].insert(partition[i / 2].end(), begin, end);
  }
  for (std::vector<std::size_t>& own : partition) {
    ShuffleRows(own, random);
  }
  return partition;
}

void DealByWeights(std::vector<std::size_t> rows, std::span<const double> weights, Random& random,
                   Partition& partition) {
  ShuffleRows(rows, random);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double before = 0;
  std::size_t begin = 0;
  for (std::size_t site = 0; site < weights.size(); ++site) {
    before += weights[site];
    const std::size_t end =
        site + 1 == weights.size()
            ? rows.size()
            : std::min(rows.size(), static_cast<std::size_t>(std::llround(
                                        before / sum * static_cast<double>(rows.size()))));
    partition[site].insert(partition[site].end(), rows.begin() + static_cast<std::ptrdiff_t>(begin),
                           rows.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
}

}  // namespace domicile::cli

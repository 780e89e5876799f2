// How a data set that has no sites of its own is cut up for a demonstration. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"

namespace domicile::cli {

// Numbers of rows, one list a site; each row is in one list at most once.
using Partition = std::vector<std::vector<std::size_t>>;

// Every row, dealt out by chance.
Partition SplitEvenly(std::size_t rows, std::size_t sites, Random& random);

// Of each class, every site gets a share drawn from a Dirichlet distribution of parameter 1/2:
// some sites have nearly all of a class, some nearly none of it.
Partition SplitByDirichlet(std::span<const std::uint32_t> labels, std::size_t sites,
                           Random& random);

// Two runs of the rows in order of their class a site, so mostly two classes each.
Partition SplitByClasses(std::span<const std::uint32_t> labels, std::size_t sites, Random& random);

// Of the rows of one class, each site gets its share in proportion to the weights.
void DealByWeights(std::vector<std::size_t> rows, std::span<const double> weights, Random& random,
                   Partition& partition);

}  // namespace domicile::cli

// Batch norm, and how its statistics may travel. They describe records, so they never go out beside
// the weights: a site keeps them (with scale and shift: FedBN), freezes those it was given, or
// hands out additive sums that the statistics phase adds up as integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "models/layers/layer.h"

namespace domicile::models {

enum class BatchNormMode : std::uint8_t {
  kBatch = 0,   // training normalises by the batch and follows it with running statistics
  kFrozen = 1,  // training too normalises by the stored statistics, which stay as they are
};

struct BatchNormSpec {
  // NAME.weight, NAME.bias, NAME.running_mean, NAME.running_var, [channels] each
  std::string name;
  std::size_t channels = 0;
  std::size_t positions = 1;
  float epsilon = 1e-5F;
  float momentum = 0.1F;  // share of the newest batch in the running statistics
  BatchNormMode mode = BatchNormMode::kBatch;
};

// Each slice of a global batch is normalised by itself, as replicas do everywhere; the running
// statistics are those of the whole (the biased variance normalises, the unbiased one is kept).
// They are formed about the running mean, so a first batch far from it costs precision once.
std::unique_ptr<Layer> MakeBatchNorm(BatchNormSpec spec);

// What one site says about one channel, about a public origin. Sums of sites are sums over sites.
struct MomentSums {
  double count = 0;
  double first = 0;   // sum of (x - origin)
  double second = 0;  // sum of (x - origin)^2
};

MomentSums SumsOf(double count, double mean, double variance, double origin);

// Mean and (biased) variance of all sites together: the variance has the term between the sites,
// which a mean of variances lacks. Errors: kInvalidArgument: no examples, or a value not finite.
struct Moments {
  double mean = 0;
  double variance = 0;
};
StatusOr<Moments> MomentsOf(const MomentSums& sums, double origin);

}  // namespace domicile::models

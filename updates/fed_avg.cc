#include "updates/fed_avg.h"

#include <cmath>
#include <string>

namespace domicile::updates {

Status FedAvg(const GridPlan& plan, std::span<const float> old, std::span<const std::int64_t> sum,
              std::int64_t total_weight, double learning_rate, std::span<float> next) {
  if (old.size() != sum.size() || next.size() != sum.size()) {
    return Error(StatusCode::kInvalidArgument, "a model of " + std::to_string(old.size()) +
                                                   " weights does not fit a sum of " +
                                                   std::to_string(sum.size()));
  }
  if (!std::isfinite(learning_rate) || learning_rate <= 0) {
    return Error(StatusCode::kInvalidArgument, "the server's learning rate must be above 0");
  }
  if (total_weight < 0) {
    return Error(StatusCode::kInvalidArgument, "the total weight is negative");
  }
  if (total_weight == 0) {
    return Error(StatusCode::kFailedPrecondition, "no examples at any site: there is no mean");
  }
  const auto divisor = static_cast<double>(total_weight);
  const double step = plan.Step();
  bool finite = true;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const double mean = static_cast<double>(sum[i]) / divisor;
    const double change = learning_rate * (mean * step);
    next[i] = static_cast<float>(static_cast<double>(old[i]) + change);
    finite = finite && std::isfinite(next[i]);
  }
  if (!finite) {
    std::size_t i = 0;
    while (std::isfinite(next[i])) {
      ++i;
    }
    return Error(StatusCode::kOutOfRange,
                 "weight " + std::to_string(i) + " of the result is not finite");
  }
  return OkStatus();
}

}  // namespace domicile::updates

#include "models/data/tuning.h"

#include <algorithm>
#include <cmath>

namespace domicile::models {
namespace {

constexpr double kHeadroom = 1.1;
constexpr double kTolerableWait = 0.01;

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

PipelineTuning Tune(const PipelineTuning& now, const PipelineMeasure& measure,
                    const PipelineLimits& limits) {
  if (measure.taken == 0 || measure.made == 0 || measure.elapsed.count() <= 0) {
    return now;
  }
  PipelineTuning next = now;
  const double make = Seconds(measure.making) / static_cast<double>(measure.made);
  const double use = Seconds(measure.elapsed - measure.waited) / static_cast<double>(measure.taken);
  // A consumer that takes no time of its own gets all there is.
  const double wanted =
      use > 0 ? std::ceil(kHeadroom * make / use) : static_cast<double>(limits.max_threads);
  next.threads =
      static_cast<std::size_t>(std::clamp(wanted, 1.0, static_cast<double>(limits.max_threads)));
  next.threads = std::max(next.threads, now.threads - (now.threads > 1 ? 1 : 0));
  if (Seconds(measure.waited) > kTolerableWait * Seconds(measure.elapsed)) {
    next.depth *= 2;
  }
  next.depth = std::min(std::max(next.depth, next.threads), limits.max_depth);
  if (measure.largest_bytes > 0) {
    next.depth = std::min<std::uint64_t>(next.depth, limits.memory_bytes / measure.largest_bytes);
  }
  next.depth = std::max<std::size_t>(next.depth, 1);
  next.threads = std::min({next.threads, next.depth, limits.max_threads});
  return next;
}

}  // namespace domicile::models

// The parameters of a model cut up over servers, each with its own lock and its own part of the
// optimizer's state, so that workers read and update them at the same time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "models/model.h"
#include "models/optimizer.h"
#include "models/strategy/strategy.h"

namespace domicile::models {

// Thread-safe, but for what says otherwise.
class ParameterServers {
 public:
  ParameterServers(const TrainingSpec& training, std::size_t num_servers,
                   std::span<const float> initial);

  // Server by server: a reader may see an update at one server that is not yet at another.
  void Read(std::span<float> parameters);
  // One step of each server's optimizer. `gradient` is ready for the optimizer, and of `examples`.
  // An update is never lost: servers are locked one after another, each for its part.
  void Update(std::span<const float> gradient, double rate_share, std::size_t examples);

  // Only while nobody reads or updates.
  std::span<const float> Parameters() const { return parameters_.Values(); }
  // Of one optimizer over all trained tensors.
  OptimizerState State() const;
  // Errors, nothing changed: kInvalidArgument.
  Status Restore(std::span<const float> parameters, const OptimizerState& state);

  std::uint64_t StateBytes() const;

 private:
  struct Server {
    Server(const TrainingSpec& training, std::vector<ParameterRange> its_ranges);

    std::vector<ParameterRange> ranges;
    Mutex mutex;  // guards the ranges of parameters_ and the optimizer
    std::unique_ptr<Device> device;
    Optimizer optimizer;
  };

  bool two_moments_;  // of the optimizer
  // Knows where running statistics are, and brings them up to date.
  std::unique_ptr<Device> device_;
  Model model_;
  Mutex rest_mutex_;                  // guards what no server has: frozen tensors and statistics
  std::vector<ParameterRange> rest_;  // of it, the statistics
  Tensor parameters_;
  std::vector<std::unique_ptr<Server>> servers_;
};

// `ranges` in `parts` consecutive parts of about the same size; a range may be cut. Parts may be
// empty where there are more parts than elements.
std::vector<std::vector<ParameterRange>> CutRanges(std::span<const ParameterRange> ranges,
                                                   std::size_t parts);

}  // namespace domicile::models

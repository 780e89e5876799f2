// Where a model trains: on one device, or mirrored over replicas of one host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "models/model.h"
#include "models/optimizer.h"
#include "models/strategy/worker_group.h"

namespace domicile::models {

enum class StrategyKind : std::uint8_t {
  kNone = 0,
  kOneDevice = 1,
  kMirrored = 2,
  kMultiWorkerMirrored = 5
};

struct StrategySpec {
  StrategyKind kind = StrategyKind::kOneDevice;
  std::size_t threads = 1;   // kOneDevice: of the device. The bits do not depend on it
  std::size_t replicas = 1;  // kMirrored: one thread each. Another number may give other last bits
  WorkerGroup* workers = nullptr;  // kMultiWorkerMirrored: must outlive the strategy
};

struct TrainingSpec {
  ModelSpec model;
  OptimizerSpec optimizer;
  double l2 = 0;         // part of the loss: gradient + l2 * w for weights, never for biases
  double clip_norm = 0;  // of the global norm of the gradient with L2; 0: none
  Schedule schedule{};
  // Examples of a replica's slice that go through the model at once; 0: all. The gradients of the
  // pieces add up to that of the whole, so only memory (and batch norm) depend on it.
  std::size_t micro_batch = 0;
  std::vector<std::string> frozen{};  // patterns of the names of tensors that are not trained
  std::uint64_t seed = 0;             // of dropout
};

// One thread at a time.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // One optimizer step on the mean loss over the batch. Returns the sum of the losses before the
  // step, without L2. Errors: kInvalidArgument: no rows, a shape or a label that does not fit.
  virtual StatusOr<double> Step(const BatchView& batch) = 0;

  // The sum of the losses over the rows, without L2 and without a step. Errors as Step.
  virtual StatusOr<double> Loss(const BatchView& batch) = 0;

  // Valid until the next Step.
  virtual std::span<const float> Parameters() const = 0;

  // How many equal copies of the parameters there are, and each of them.
  virtual std::size_t NumReplicas() const = 0;
  virtual std::span<const float> ReplicaParameters(std::size_t replica) const = 0;
};

// Errors: kInvalidArgument: a spec that does not pass its check, `initial` of another size, a
// pattern of `frozen` that matches nothing, nothing left to train, no or more than 1024 threads or
// replicas.
StatusOr<std::unique_ptr<Strategy>> MakeStrategy(const StrategySpec& strategy,
                                                 const TrainingSpec& training,
                                                 std::span<const float> initial);

}  // namespace domicile::models

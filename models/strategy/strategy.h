// Where a model trains: on one device, or on replicas of one host, each with a device of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "models/model.h"
#include "models/optimizer.h"
#include "models/precision.h"
#include "models/strategy/worker_group.h"

namespace domicile::models {

enum class StrategyKind : std::uint8_t {
  kNone = 0,
  kOneDevice = 1,
  // Each replica holds all parameters and works on its slice of every batch; gradients are added up
  // before each step.
  kMirrored = 2,
  // One copy of the parameters and of the optimizer, on the host; replicas compute gradients.
  kCentralStorage = 3,
  // Workers take whole batches, each at its own pace; the parameters are cut up over servers.
  kParameterServer = 4,
  // One replica on each of several hosts.
  kMultiWorkerMirrored = 5,
};

// The device of each replica (from 0). Errors: its own, and kUnavailable.
using DeviceFactory = std::function<StatusOr<std::unique_ptr<Device>>(std::size_t replica)>;

// The site's business. Weights after a number of steps are those of one device with the same
// batches, up to the last bits, for every kind but kParameterServer with `staleness` above 0.
struct StrategySpec {
  StrategyKind kind = StrategyKind::kOneDevice;
  // Of kOneDevice, and of the host in kCentralStorage. The bits do not depend on it.
  std::size_t threads = 1;
  // One thread each: replicas, or workers of kParameterServer. Another number may give other last
  // bits.
  std::size_t replicas = 1;
  // kParameterServer: how many servers share the parameters, and how many updates of others may at
  // most come between a worker's reading of the parameters and its own update. 0: one at a time.
  std::size_t servers = 1;
  std::uint64_t staleness = 0;
  // kMirrored: steps from one comparison of the replicas' parameters to the next; 0: none.
  std::uint64_t check_every = 100;
  // A replica that has finished no operation of its device for so long is given up.
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
  DeviceFactory make_device{};     // empty: CPU devices
  const Clock* clock = nullptr;    // null: the system's; must outlive the strategy
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
  // Where in the schedule the first step stands.
  std::uint64_t schedule_step = 0;
  // Mixed precision: emulated by CPU devices. kFloat16 scales the loss; a step whose gradient
  // overflows changes nothing but the scale.
  Precision precision = Precision::kFloat32;
  LossScaleSpec loss_scale{};
};

// All that a strategy knows after a step: what another one of the same training spec goes on from.
struct TrainingState {
  std::uint64_t step = 0;  // batches so far; what dropout drops follows from it
  std::vector<float> parameters{};
  OptimizerState optimizer{};
  LossScale loss_scale{};

  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

// What each replica has done since the strategy was made.
struct ReplicaReport {
  std::uint64_t examples = 0;
  std::chrono::nanoseconds computing{0};
  // What adding up gradients and losses held it up, waiting for others included: not what went on
  // behind its computing.
  std::chrono::nanoseconds communicating{0};
  // Parameters, gradients and the optimizer's moments; activations are not counted.
  std::uint64_t state_bytes = 0;

  // Of the time of both, from 0 to 1.
  double CommunicationShare() const;
};

struct StepReport {
  std::uint64_t steps = 0;    // batches
  std::uint64_t skipped = 0;  // of them, for a gradient that overflowed
  double loss_scale = 1;
  std::uint64_t greatest_staleness = 0;  // kParameterServer
  std::vector<ReplicaReport> replicas{};
};

// One thread at a time.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // One optimizer step on the mean loss over the batch. Returns the sum of the losses before the
  // step, without L2. kParameterServer gives the batch to a worker and returns the sum of the
  // losses of batches finished since the last call, often of none. Errors: kInvalidArgument: no
  // rows, a shape or a label that does not fit. kUnavailable: a device or replica has failed or no
  // longer answers (it is named); the strategy cannot be used any more. kDataLoss: replicas differ.
  virtual StatusOr<double> Step(const BatchView& batch) = 0;

  // Waits for what Step has begun. Returns the sum of the losses that no Step has returned. To be
  // called after the last step of a round: an error of a batch under way shows here. Errors as
  // Step.
  virtual StatusOr<double> Finish() { return 0.0; }

  // The sum of the losses over the rows, without L2 and without a step. Errors as Step.
  virtual StatusOr<double> Loss(const BatchView& batch) = 0;

  // Valid until the next call.
  virtual std::span<const float> Parameters() const = 0;

  // How many equal copies of the parameters there are, and each of them.
  virtual std::size_t NumReplicas() const = 0;
  virtual std::span<const float> ReplicaParameters(std::size_t replica) const = 0;

  // After the steps so far (Finish). From its state a synchronous strategy goes on to the same
  // bits. Restore errors: kInvalidArgument: the state of another model or optimizer.
  virtual TrainingState State() const = 0;
  virtual Status Restore(const TrainingState& state) = 0;

  virtual StepReport Report() const = 0;
};

// Errors: kInvalidArgument: a spec that does not pass its check, `initial` of another size, a
// pattern of `frozen` that matches nothing, nothing left to train, no or more than 1024 threads,
// replicas or servers. Those of make_device.
StatusOr<std::unique_ptr<Strategy>> MakeStrategy(const StrategySpec& strategy,
                                                 const TrainingSpec& training,
                                                 std::span<const float> initial);

}  // namespace domicile::models

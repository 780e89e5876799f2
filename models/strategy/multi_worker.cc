#include "models/strategy/multi_worker.h"

#include <utility>
#include <vector>

#include "models/memory.h"
#include "models/strategy/buckets.h"
#include "models/strategy/replica_devices.h"
#include "models/strategy/side_thread.h"
#include "models/strategy/single_replica.h"
#include "models/strategy/slice.h"
#include "models/tensor.h"

namespace domicile::models {
namespace {

class MultiWorker final : public SingleReplica {
 public:
  MultiWorker(const StrategySpec& strategy, const TrainingSpec& training,
              std::unique_ptr<Device> device, std::span<const float> initial)
      : SingleReplica(strategy, training, std::move(device), initial),
        group_(*strategy.workers),
        buckets_(CutIntoBuckets(replica_.layout())),
        packed_(buckets_.size()) {}

  StatusOr<double> Step(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    const std::size_t examples = batch.NumExamples();
    const Slice slice = SliceOf(group_.Rank(), group_.NumRanks(), examples);
    StatusOr<double> loss = 0.0;
    const ExchangesEnd end(exchanges_);
    StepTimer timer(clock_);
    BucketQueue queue(buckets_);
    const FinalFrom begin = [this, &queue](std::size_t entry) {
      queue.Advance(entry, [this](const Bucket& bucket) { BeginAddingUp(bucket); });
    };
    const double part = replica_.ComputeGradient(batch.Rows(slice.first, slice.count), slice.first,
                                                 examples, &begin);
    RETURN_IF_ERROR(replica_.Check());
    timer.MarkInto(report_.computing);
    RETURN_IF_ERROR(exchanges_.Finish());
    Unpack();
    timer.MarkInto(report_.communicating);
    // The losses meet while the update is made.
    exchanges_.Begin([this, part, &loss] {
      loss = group_.AllReduceSum(part);
      return loss.status();
    });
    replica_.Apply(examples);
    RETURN_IF_ERROR(replica_.Check());
    timer.MarkInto(report_.computing);
    RETURN_IF_ERROR(exchanges_.Finish());
    timer.MarkInto(report_.communicating);
    report_.examples += slice.count;
    return loss;
  }

  StatusOr<double> Loss(const BatchView& batch) override {
    RETURN_IF_ERROR(CheckBatch(model_, batch));
    const Slice slice = SliceOf(group_.Rank(), group_.NumRanks(), batch.NumExamples());
    const double part = replica_.Loss(batch.Rows(slice.first, slice.count));
    RETURN_IF_ERROR(replica_.Check());
    return group_.AllReduceSum(part);
  }

 private:
  // However a step ends: afterwards nothing is under way between the workers.
  class ExchangesEnd {
   public:
    explicit ExchangesEnd(SideThread& exchanges) : exchanges_(exchanges) {}
    ~ExchangesEnd() { exchanges_.GiveUp(); }
    ExchangesEnd(const ExchangesEnd&) = delete;
    ExchangesEnd& operator=(const ExchangesEnd&) = delete;

   private:
    SideThread& exchanges_;
  };

  // Where it can be handed to the workers as it lies.
  bool IsOnePiece(const Bucket& bucket) {
    return bucket.runs.size() == 1 && replica_.device().memory().IsHost();
  }

  std::span<float> RunOf(const GradientRun& run) {
    return replica_.Gradient().subspan(run.offset, run.size);
  }

  // By way of a copy on the host where it lies in several places or in a device's memory: this
  // thread alone may touch the latter.
  void BeginAddingUp(const Bucket& bucket) {
    std::span<float> values;
    if (IsOnePiece(bucket)) {
      values = RunOf(bucket.runs[0]);
    } else {
      Tensor& packed = packed_[static_cast<std::size_t>(&bucket - buckets_.data())];
      packed.ResizeMatrix(1, bucket.size);
      values = packed.Values();
      std::span<float> rest = values;
      for (const GradientRun& run : bucket.runs) {
        Copy(replica_.device().memory(), std::span<const float>(RunOf(run)), rest);
        rest = rest.subspan(run.size);
      }
    }
    exchanges_.Begin([this, values] { return group_.AllReduceSum(values); });
  }

  void Unpack() {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (IsOnePiece(buckets_[i])) {
        continue;
      }
      std::span<const float> rest = std::as_const(packed_[i]).Values();
      for (const GradientRun& run : buckets_[i].runs) {
        Copy(replica_.device().memory(), rest.first(run.size), RunOf(run));
        rest = rest.subspan(run.size);
      }
    }
  }

  WorkerGroup& group_;
  std::vector<Bucket> buckets_;
  std::vector<Tensor> packed_;  // of each bucket that needs a copy
  SideThread exchanges_;        // last: its thread uses what is above
};

}  // namespace

StatusOr<std::unique_ptr<Strategy>> MakeMultiWorker(const StrategySpec& strategy,
                                                    const TrainingSpec& training,
                                                    std::span<const float> initial) {
  if (strategy.workers == nullptr) {
    return Error(StatusCode::kInvalidArgument, "the strategy needs a group of workers");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, MakeDevice(strategy, 0, strategy.threads));
  return std::make_unique<MultiWorker>(strategy, training, std::move(device), initial);
}

}  // namespace domicile::models

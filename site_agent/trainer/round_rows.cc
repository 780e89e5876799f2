#include "site_agent/trainer/round_rows.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/random.h"

namespace domicile::site_agent {
namespace {

// The seeds of a plan. What is held out is drawn by one of its own: no round's order tells it.
struct Seeds {
  explicit Seeds(const contracts::TrainingPlan& training) {
    SeededRandom mixer(training.shuffle_seed);
    order = mixer.Next64();
    held_out = mixer.Next64();
  }
  std::uint64_t order = 0;
  std::uint64_t held_out = 0;
};

class ListStage final : public models::Stage<std::size_t> {
 public:
  explicit ListStage(std::vector<std::size_t> list) : list_(std::move(list)) {}
  std::optional<std::size_t> Next() override {
    return next_ < list_.size() ? std::optional(list_[next_++]) : std::nullopt;
  }
  void Restart(std::uint64_t /*epoch*/) override { next_ = 0; }

 private:
  std::vector<std::size_t> list_;
  std::size_t next_ = 0;
};

}  // namespace

RoundRows SplitRows(const contracts::TrainingPlan& training, std::size_t num_rows) {
  RoundRows rows;
  if (!training.early_stopping.enabled) {
    rows.steps.resize(num_rows);
    std::iota(rows.steps.begin(), rows.steps.end(), std::size_t{0});
    return rows;
  }
  const double share = training.early_stopping.validation_share;
  const auto held_out =
      std::max<std::size_t>(1, static_cast<std::size_t>(share * static_cast<double>(num_rows)));
  const models::StagePtr<std::size_t> order =
      models::Shuffle(models::Range(num_rows), Seeds(training).held_out, num_rows);
  while (const std::optional<std::size_t> row = order->Next()) {
    (rows.validation.size() < held_out ? rows.validation : rows.steps).push_back(*row);
  }
  std::sort(rows.validation.begin(), rows.validation.end());
  std::sort(rows.steps.begin(), rows.steps.end());
  return rows;
}

std::uint64_t StepsInEpoch(const contracts::TrainingPlan& training, std::size_t num_rows) {
  if (training.batch == 0) {
    return 1;
  }
  const bool keeps = training.last_batch != contracts::LastBatch::kDrop;
  return num_rows / training.batch + (keeps && num_rows % training.batch != 0 ? 1 : 0);
}

models::StagePtr<std::vector<std::size_t>> Batches(const contracts::TrainingPlan& training,
                                                   std::vector<std::size_t> rows,
                                                   RoundNumber round) {
  const std::size_t num_rows = rows.size();
  models::StagePtr<std::size_t> stage = std::make_unique<ListStage>(std::move(rows));
  if (training.shuffle) {
    // The order differs from round to round, and is the same for a round done again.
    stage = models::Shuffle(std::move(stage), Seeds(training).order + round, num_rows);
  }
  return models::Repeat(models::Batch(std::move(stage), training.batch,
                                      training.last_batch == contracts::LastBatch::kDrop
                                          ? models::LastBatch::kDrop
                                          : models::LastBatch::kKeep));
}

}  // namespace domicile::site_agent

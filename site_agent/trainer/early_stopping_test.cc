// When a round stops, what it holds out, and that an interrupted one ends the same.
#include "site_agent/trainer/early_stopping.h"

#include <algorithm>
#include <barrier>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "contracts/testing_jobs.h"
#include "models/plans/plan_model.h"
#include "site_agent/trainer/execute.h"
#include "site_agent/trainer/round_rows.h"
#include "tests/support/federation_in_memory.h"

namespace domicile::site_agent {
namespace {

using contracts::Plan;
using policy::Reason;

// Epochs until the end, and the best of them (from 1), for these validation losses.
std::pair<std::size_t, std::uint64_t> EndOf(const contracts::EarlyStoppingPlan& plan,
                                            const std::vector<double>& losses) {
  EarlyStopping stopping(plan);
  std::size_t epochs = 0;
  while (epochs < losses.size() && !stopping.Ended()) {
    stopping.Note(losses[epochs], epochs + 1);
    ++epochs;
  }
  return {epochs, stopping.State().best};
}

TEST_CASE("EarlyStopping: ends after `patience` epochs without improvement, and names the best") {
  const struct {
    const char* name;
    std::uint32_t patience;
    double min_improvement;
    std::vector<double> losses;
    std::size_t epochs;
    std::uint64_t best;
  } cases[] = {
      {"better and better", 1, 0, {3, 2, 1}, 3, 3},
      {"worse at once", 1, 0, {1, 2, 0.5}, 2, 1},
      {"worse for a while", 2, 0, {1, 2, 0.5, 3, 4, 0.1}, 5, 3},
      {"the same is no improvement", 2, 0, {1, 1, 1, 0}, 3, 1},
      {"too small an improvement is none, but the best is the best",
       2,
       0.5,
       {3, 2.6, 2.55, 1},
       3,
       3},
      {"exactly `min_improvement` is not more", 1, 0.5, {3, 2.5, 1}, 2, 2},
      {"small ones add up to one", 2, 0.5, {3, 2.7, 2.4, 2.1, 1.8}, 5, 5},
      {"of equal ones the first", 3, 0, {2, 1, 1, 3, 0}, 5, 5},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    CHECK(EndOf({true, c.patience, c.min_improvement, 0.1}, c.losses) ==
          std::pair(c.epochs, c.best));
  }
}

Plan PlanOf(std::string_view training, std::string_view stopping) {
  return contracts::MustPlan(contracts::JobOf(
      contracts::kTwoNumbers, contracts::kTwoClasses,
      "kind = \"mlp\"\nhidden = [3]\nactivation = \"tanh\"\nseed = 1\n",
      std::string(training) + "[training.early_stopping]\n" + std::string(stopping)));
}

TEST_CASE("SplitRows: holds out a share, one row at least, the same in every round (C41)") {
  Plan plan = PlanOf(
      "optimizer = \"sgd\"\nlearning_rate = 1\nlocal_epochs = 5\nbatch = 4\nshuffle_seed = 9\n",
      "patience = 1\nvalidation_share = 0.25\n");
  const struct {
    std::size_t rows;
    std::size_t held_out;
  } cases[] = {{1, 1}, {2, 1}, {3, 1}, {7, 1}, {8, 2}, {64, 16}, {65, 16}};
  for (const auto& c : cases) {
    CAPTURE(c.rows);
    const RoundRows split = SplitRows(plan.training, c.rows);
    CHECK(split.validation.size() == c.held_out);
    std::set<std::size_t> all(split.steps.begin(), split.steps.end());
    all.insert(split.validation.begin(), split.validation.end());
    CHECK(all.size() == c.rows);
    CHECK(split.steps.size() + split.validation.size() == c.rows);
    CHECK(std::is_sorted(split.steps.begin(), split.steps.end()));
    CHECK(SplitRows(plan.training, c.rows).validation == split.validation);

    // No batch of any round holds one of them.
    for (RoundNumber round = 1; round <= 3 && !split.steps.empty(); ++round) {
      auto batches = Batches(plan.training, split.steps, round);
      for (int i = 0; i < 40; ++i) {
        const std::vector<std::size_t> batch = batches->Next().value();
        for (const std::size_t row : batch) {
          REQUIRE_FALSE(std::binary_search(split.validation.begin(), split.validation.end(), row));
        }
      }
    }
  }
  const auto before = SplitRows(plan.training, 64).validation;
  plan.training.shuffle_seed = 10;
  CHECK(SplitRows(plan.training, 64).validation != before);
  plan.training.early_stopping = {};
  CHECK(SplitRows(plan.training, 64).validation.empty());
  CHECK(SplitRows(plan.training, 64).steps.size() == 64);
}

// Rows of two classes that a small network soon learns by heart: a third have the wrong class.
LoadedDataset Noisy(const Plan& plan, std::size_t rows) {
  LoadedDataset data;
  data.alias = DatasetAlias::Parse("toy").value();
  data.input_names = plan.schema.InputNames();
  data.num_classes = 2;
  data.training.num_inputs = 2;
  for (std::size_t row = 0; row < rows; ++row) {
    const double f1 = static_cast<double>(row * 7 % 11) / 5 - 1;
    const double f2 = static_cast<double>(row * 5 % 13) / 6 - 1;
    data.training.inputs.insert(data.training.inputs.end(), {f1, f2});
    data.training.labels.push_back((f1 + f2 > 0) != (row % 3 == 0) ? 1 : 0);
  }
  data.training.missing.assign(2 * rows, 0);
  data.test = data.training;
  return data;
}

tests::Model FirstModel(const Plan& plan) {
  return models::TravellingTensors(plan, models::FirstParameters(plan, {}).value());
}

constexpr std::string_view kBatches =
    "optimizer = \"adam\"\nlearning_rate = 0.3\nlocal_epochs = 12\nbatch = 16\nshuffle_seed = 1\n";
constexpr std::string_view kAllRows =
    "optimizer = \"adam\"\nlearning_rate = 0.8\nlocal_epochs = 12\n";
constexpr std::string_view kStopping = "patience = 2\nvalidation_share = 0.25\n";

// The same training for so many epochs, without early stopping, of the rows that steps use.
Outcome<TrainResult> Epochs(Plan plan, const LoadedDataset& data, std::uint32_t epochs) {
  const RoundRows split = SplitRows(plan.training, data.training.NumRows());
  LoadedDataset left = data;
  left.training.inputs.clear();
  left.training.labels.clear();
  for (const std::size_t row : split.steps) {
    left.training.inputs.push_back(data.training.inputs[2 * row]);
    left.training.inputs.push_back(data.training.inputs[2 * row + 1]);
    left.training.labels.push_back(data.training.labels[row]);
  }
  left.training.missing.assign(left.training.inputs.size(), 0);
  plan.training.early_stopping = {};
  plan.training.local_epochs = epochs;
  return Train(plan, left, FirstModel(plan), 1);
}

TEST_CASE("Train: what is sent is the best epoch, as though the round had been so long") {
  for (const std::string_view training : {kBatches, kAllRows}) {
    const Plan plan = PlanOf(training, kStopping);
    const LoadedDataset data = Noisy(plan, 40);

    const auto result = *Train(plan, data, FirstModel(plan), 1);

    // This job stops early, and neither its first nor its last epoch is the best.
    CHECK(result.epochs == result.best_epoch + 2);
    CHECK(result.epochs < 12);
    REQUIRE(result.best_epoch > 1);
    CHECK(result.delta == Epochs(plan, data, static_cast<std::uint32_t>(result.best_epoch))->delta);
    CHECK(result.rows == 30);      // no row that was held out
    CHECK(result.examples == 40);  // the model received was measured on all
    Plan whole = plan;
    whole.training.early_stopping = {};
    CHECK(result.loss_sum == Train(whole, data, FirstModel(plan), 1)->loss_sum);
  }
}

TEST_CASE("Train: at least one epoch is sent, though the model received may be better") {
  // Of this rate every step makes it worse.
  const Plan plan = PlanOf("optimizer = \"sgd\"\nlearning_rate = 30\nlocal_epochs = 9\nbatch = 8\n",
                           "patience = 1\nvalidation_share = 0.25\n");
  const LoadedDataset data = Noisy(plan, 40);

  const auto result = *Train(plan, data, FirstModel(plan), 1);

  CHECK(result.best_epoch >= 1);
  CHECK(std::any_of(result.delta[0].values.begin(), result.delta[0].values.end(),
                    [](float value) { return value != 0; }));
}

TEST_CASE("Train: a site with too few rows to hold one out has nothing to train on") {
  const Plan plan = PlanOf(kBatches, kStopping);
  const auto one = Train(plan, Noisy(plan, 1), FirstModel(plan), 1);

  REQUIRE_FALSE(one.ok());
  CHECK(one.TheFault().Travels().reason == Reason::kNoExamples);
  CHECK(one.TheFault().LocalLines()[0] == "the plan has the only training row held out");
  CHECK(Train(plan, Noisy(plan, 2), FirstModel(plan), 1)->rows == 1);
}

// Workers as threads of this process.
class Threads {
 public:
  explicit Threads(std::size_t ranks)
      : arrived_(static_cast<std::ptrdiff_t>(ranks)), parts_(ranks) {}

  class Worker final : public models::WorkerGroup {
   public:
    Worker(Threads& all, std::size_t rank) : all_(all), rank_(rank) {}
    std::size_t NumRanks() const override { return all_.parts_.size(); }
    std::size_t Rank() const override { return rank_; }
    Status AllReduceSum(std::span<float> values) override {
      std::vector<double> part(values.begin(), values.end());
      const std::vector<double> sum = all_.Sum(rank_, std::move(part));
      std::transform(sum.begin(), sum.end(), values.begin(),
                     [](double value) { return static_cast<float>(value); });
      return OkStatus();
    }
    StatusOr<double> AllReduceSum(double value) override { return all_.Sum(rank_, {value})[0]; }

   private:
    Threads& all_;
    std::size_t rank_;
  };

 private:
  std::vector<double> Sum(std::size_t rank, std::vector<double> part) {
    parts_[rank] = std::move(part);
    arrived_.arrive_and_wait();
    std::vector<double> sum(parts_[rank].size(), 0);
    for (const std::vector<double>& one : parts_) {
      std::transform(sum.begin(), sum.end(), one.begin(), sum.begin(), std::plus<>());
    }
    arrived_.arrive_and_wait();  // before anybody overwrites its part
    return sum;
  }

  std::barrier<> arrived_;
  std::vector<std::vector<double>> parts_;
};

std::string Folder(std::size_t rank) {
  return DOMICILE_BINARY_DIR "/early_stopping_test.checkpoints/" + std::to_string(rank);
}

std::string NameOf(std::uint64_t step) {
  const std::string digits = std::to_string(step);
  return "step-" + std::string(12 - digits.size(), '0') + digits + ".safetensors";
}

models::CheckpointStore Store(std::size_t rank) {
  return models::CheckpointStore::Open(Folder(rank), Digest{}).value();
}

constexpr std::size_t kWorkers = 2;

// One attempt of each worker (or of the only one), which ends after so many steps; 0: at the end.
std::vector<Outcome<TrainResult>> Attempt(const Plan& plan, const LoadedDataset& data,
                                          const models::StrategySpec& strategy,
                                          std::uint64_t checkpoint_steps, std::size_t stop_after) {
  const bool has_workers = strategy.kind == models::StrategyKind::kMultiWorkerMirrored;
  Threads threads(kWorkers);
  std::vector<std::optional<Outcome<TrainResult>>> ended(has_workers ? kWorkers : 1);
  const auto work = [&](std::size_t rank) {
    Threads::Worker worker(threads, rank);
    models::CheckpointStore store = Store(rank);
    std::stop_source stop;
    std::size_t steps = 0;
    TrainOptions options;
    options.strategy = strategy;
    options.strategy.workers = has_workers ? &worker : nullptr;
    options.checkpoints = &store;
    options.checkpoint_steps = checkpoint_steps;
    options.stop = stop.get_token();
    // Every step of these jobs is at least one per cent.
    options.progress = [&](const TaskProgress& /*told*/) {
      if (++steps == stop_after) {
        stop.request_stop();
      }
    };
    ended[rank] = Train(plan, data, FirstModel(plan), 1, options);
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t rank = 1; rank < ended.size(); ++rank) {
      others.emplace_back(work, rank);
    }
    work(0);
  }
  std::vector<Outcome<TrainResult>> outcomes;
  outcomes.reserve(ended.size());
  for (std::optional<Outcome<TrainResult>>& outcome : ended) {
    outcomes.push_back(*std::move(outcome));
  }
  return outcomes;
}

void ClearAll() {
  for (std::size_t rank = 0; rank < kWorkers; ++rank) {
    REQUIRE(Store(rank).Clear().ok());
  }
}

bool SameEnd(const TrainResult& a, const TrainResult& b) {
  return a.delta == b.delta && a.rows == b.rows && a.loss_sum == b.loss_sum &&
         a.epochs == b.epochs && a.best_epoch == b.best_epoch;
}

const models::StrategySpec kSynchronous[] = {
    {},
    {.kind = models::StrategyKind::kMirrored, .replicas = 2},
    {.kind = models::StrategyKind::kCentralStorage, .replicas = 2},
    {.kind = models::StrategyKind::kMultiWorkerMirrored},
};

TEST_CASE("Train: every strategy stops after the same epoch, and all workers send the same") {
  const Plan plan = PlanOf(kBatches, kStopping);
  const LoadedDataset data = Noisy(plan, 40);
  const auto alone = *Train(plan, data, FirstModel(plan), 1);
  for (const models::StrategySpec& strategy : kSynchronous) {
    CAPTURE(static_cast<int>(strategy.kind));
    ClearAll();
    for (const Outcome<TrainResult>& ended : Attempt(plan, data, strategy, 0, 0)) {
      REQUIRE(ended.ok());
      CHECK(ended->epochs == alone.epochs);
      CHECK(ended->best_epoch == alone.best_epoch);
      CHECK(ended->rows == alone.rows);
      for (std::size_t i = 0; i < alone.delta[0].values.size(); ++i) {
        CHECK(ended->delta[0].values[i] == doctest::Approx(alone.delta[0].values[i]).epsilon(1e-3));
      }
    }
  }
  models::StrategySpec servers;
  servers.kind = models::StrategyKind::kParameterServer;
  servers.replicas = 2;
  TrainOptions options;
  options.strategy = servers;
  CHECK(Train(plan, data, FirstModel(plan), 1, options)->best_epoch == alone.best_epoch);
}

TEST_CASE("Train: stopped after any step, early stopping ends the same to the last bit") {
  for (const std::string_view training : {kBatches, kAllRows}) {
    const Plan plan = PlanOf(training, kStopping);
    const LoadedDataset data = Noisy(plan, 40);
    for (const models::StrategySpec& strategy : kSynchronous) {
      CAPTURE(static_cast<int>(strategy.kind));
      ClearAll();
      const TrainResult whole = *Attempt(plan, data, strategy, 0, 0)[0];
      REQUIRE(whole.epochs == whole.best_epoch + 2);
      const std::size_t steps = whole.epochs * (plan.training.batch == 0 ? 1 : 2);
      for (const std::uint64_t checkpoint_steps : {0U, 3U}) {
        CAPTURE(checkpoint_steps);
        for (std::size_t stop_after = 1; stop_after < steps; ++stop_after) {
          CAPTURE(stop_after);
          ClearAll();
          for (const auto& stopped : Attempt(plan, data, strategy, checkpoint_steps, stop_after)) {
            REQUIRE_FALSE(stopped.ok());
            REQUIRE(stopped.TheFault().Travels().reason == Reason::kCancelled);
          }
          // The others' last one is more than this worker has.
          const std::vector<std::uint64_t> kept = Store(1).Steps();
          if (!kept.empty()) {
            REQUIRE(RemoveFile(Folder(1) + "/" + NameOf(kept.back())).ok());
          }
          for (const auto& ended : Attempt(plan, data, strategy, checkpoint_steps, 0)) {
            REQUIRE(ended.ok());
            CHECK(SameEnd(*ended, whole));
          }
        }
      }
    }
  }
}

TEST_CASE("Train: stopped again and again, it ends the same, and makes no epoch twice") {
  const Plan plan = PlanOf(kBatches, kStopping);
  const LoadedDataset data = Noisy(plan, 40);
  const TrainResult whole = *Train(plan, data, FirstModel(plan), 1);
  ClearAll();
  std::vector<Outcome<TrainResult>> ended = Attempt(plan, data, {}, 0, 3);
  std::uint64_t attempts = 1;
  for (; !ended[0].ok() && attempts < 100; ++attempts) {
    CHECK(Store(0).Steps().back() == 2 * attempts);
    ended = Attempt(plan, data, {}, 0, 3);
  }
  REQUIRE(ended[0].ok());
  CHECK(SameEnd(*ended[0], whole));
  CHECK(attempts == whole.epochs);
}

TEST_CASE("Train: checkpoints are of epochs, with their losses and the best one") {
  const Plan plan = PlanOf(kBatches, kStopping);
  const LoadedDataset data = Noisy(plan, 40);
  const TrainResult whole = *Train(plan, data, FirstModel(plan), 1);
  ClearAll();
  // In the middle of the epoch that would be the last.
  CHECK_FALSE(Attempt(plan, data, {}, 0, 2 * whole.epochs - 1)[0].ok());

  const models::CheckpointStore store = Store(0);
  const std::uint64_t best = 2 * whole.best_epoch;
  CHECK(store.Steps() == std::vector<std::uint64_t>{best, best + 2});
  const models::Checkpoint at_best = store.At(best).value();
  const models::Checkpoint last = store.At(best + 2).value();
  CHECK(at_best.stopping == models::StoppingState{best, at_best.loss, 0});
  CHECK(last.stopping == models::StoppingState{best, at_best.loss, 1});
  CHECK(last.loss >= at_best.loss);
  CHECK(last.position == models::PipelinePosition{whole.best_epoch + 1, 0});

  // Without early stopping the loss is that of the epoch's steps.
  Plan all = plan;
  all.training.early_stopping = {};
  ClearAll();
  CHECK_FALSE(Attempt(all, data, {}, 0, 4)[0].ok());
  REQUIRE(Store(0).Steps() == std::vector<std::uint64_t>{3});
  const models::Checkpoint first = Store(0).At(3).value();
  CHECK(first.stopping == models::StoppingState{});
  CHECK(first.loss > 0.1);
  CHECK(first.loss < 2);
  ClearAll();
}

TEST_CASE("Train: a job of steps keeps none unless it is told to") {
  const Plan plan = contracts::MustPlan(contracts::JobOf(
      contracts::kTwoNumbers, contracts::kTwoClasses, "kind = \"logistic\"\n", contracts::kSgd));
  ClearAll();
  CHECK_FALSE(Attempt(plan, Noisy(plan, 40), {}, 0, 3)[0].ok());
  CHECK(Store(0).Steps().empty());
  CHECK_FALSE(Attempt(plan, Noisy(plan, 40), {}, 2, 3)[0].ok());
  CHECK(Store(0).Steps() == std::vector<std::uint64_t>{2});
  ClearAll();
}

}  // namespace
}  // namespace domicile::site_agent

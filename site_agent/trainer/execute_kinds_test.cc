// Pictures, texts and numbers as labels; batches, epochs and stages.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "contracts/testing_jobs.h"
#include "models/plans/plan_model.h"
#include "site_agent/trainer/batch_statistics.h"
#include "site_agent/trainer/execute.h"
#include "site_agent/trainer/model_inputs.h"
#include "tests/support/federation_in_memory.h"

namespace domicile::site_agent {
namespace {

using contracts::JobOf;
using contracts::MustPlan;
using contracts::Plan;
using policy::Reason;
using tests::Model;

constexpr std::string_view kFast =
    "optimizer = \"sgd\"\nlearning_rate = 0.1\nmomentum = 0.9\nlocal_steps = 30\nbatch = 8\n";

Model FirstModel(const Plan& plan) {
  return models::TravellingTensors(plan, models::FirstParameters(plan, {}).value());
}

LoadedDataset DataOf(const Plan& plan, Rows rows) {
  LoadedDataset data;
  data.alias = DatasetAlias::Parse("toy").value();
  data.input_names = plan.schema.InputNames();
  data.num_classes = plan.schema.label.NumClasses();
  data.test = rows;
  data.training = std::move(rows);
  return data;
}

// Pictures of kGreyPicture; class k is bright in the k-th third.
LoadedDataset Pictures(const Plan& plan, std::size_t count) {
  Rows rows;
  for (std::size_t row = 0; row < count; ++row) {
    const std::size_t label = row * 5 % 3;
    rows.labels.push_back(static_cast<std::uint32_t>(label));
    for (std::size_t pixel = 0; pixel < plan.NumInputs(); ++pixel) {
      const bool bright = pixel * 3 / plan.NumInputs() == label;
      rows.pixels.push_back(
          static_cast<std::uint8_t>((bright ? 180 : 40) + (row * 31 + pixel * 17) % 60));
    }
  }
  return DataOf(plan, std::move(rows));
}

// Texts of kShortText; class 1 has the token 9 somewhere.
LoadedDataset Texts(const Plan& plan, std::size_t count) {
  Rows rows;
  for (std::size_t row = 0; row < count; ++row) {
    const std::uint32_t length = 3 + static_cast<std::uint32_t>(row % 5);
    const std::uint32_t label = row % 3 == 0 ? 1 : 0;
    rows.lengths.push_back(length);
    rows.labels.push_back(label);
    for (std::uint32_t i = 0; i < plan.NumInputs(); ++i) {
      const auto word = static_cast<std::uint32_t>(10 + (row * 7 + i * 3) % 20);
      rows.tokens.push_back(i >= length ? 0 : i == 1 && label == 1 ? 9 : word);
    }
  }
  return DataOf(plan, std::move(rows));
}

// y = 20 + 4 (2 f1 - f2 + 0.5)
LoadedDataset Numbers(const Plan& plan, std::size_t count) {
  Rows rows;
  rows.num_inputs = 2;
  for (std::size_t row = 0; row < count; ++row) {
    const double f1 = static_cast<double>(row * 7 % 11) / 11 - 0.5;
    const double f2 = static_cast<double>(row * 5 % 13) / 13 - 0.5;
    rows.inputs.push_back(f1);
    rows.inputs.push_back(f2);
    rows.targets.push_back(20 + 4 * (2 * f1 - f2 + 0.5));
  }
  rows.missing.assign(2 * count, 0);
  return DataOf(plan, std::move(rows));
}

Reason ReasonOf(const Outcome<TrainResult>& result) {
  return result.ok() ? Reason::kNone : result.TheFault().Travels().reason;
}

double Accuracy(const Plan& plan, const LoadedDataset& data, const Model& model) {
  const auto result = Evaluate(plan, data, model);
  REQUIRE(result.ok());
  CHECK(result->examples == data.test.NumRows());
  return static_cast<double>(result->correct) / static_cast<double>(result->examples);
}

TEST_CASE(
    "MakeBatch: a value of a picture is scaled by its channel, a number as label by the job") {
  Plan plan =
      MustPlan(JobOf("[image]\nchannels = 2\nheight = 1\nwidth = 2\nmean = [0.5, 0]\n"
                     "deviation = [0.25, 2]\n",
                     contracts::kNumberLabel, "kind = \"linear\"\n", contracts::kSgd));
  Rows rows;
  rows.pixels = {0, 0, 0, 0, 255, 0, 51, 255};
  rows.targets = {20, 30};
  const auto prepared = *PrepareModel(plan, FirstModel(plan), DatasetAlias::Parse("toy").value());

  const RowBatch batch = MakeBatch(prepared, rows, {1});

  const std::vector<float> want = {2, -2, 0.1F, 0.5F};
  REQUIRE(batch.View().inputs.columns == 4);
  for (std::size_t i = 0; i < want.size(); ++i) {
    CHECK(batch.View().inputs.data[i] == doctest::Approx(want[i]));
  }
  CHECK(batch.View().targets.data[0] == doctest::Approx(2.5));
  CHECK(batch.View().labels.empty());
}

TEST_CASE("Train: networks of pictures learn, with every norm") {
  for (const std::string_view norm : {"none", "frozen_batch", "batch"}) {
    CAPTURE(norm);
    const std::string model =
        contracts::Replaced(std::string(contracts::kConvNet), "norm = \"batch\"",
                            "norm = \"" + std::string(norm) + "\"");
    const Plan plan =
        MustPlan(JobOf(contracts::kGreyPicture, contracts::kThreeClasses, model, kFast));
    const LoadedDataset data = Pictures(plan, 48);
    Model federated = FirstModel(plan);
    const auto first = *Train(plan, data, federated, 1);
    for (RoundNumber round = 1; round <= 3; ++round) {
      tests::AddRound(plan, {data}, round, federated);
    }

    CHECK(first.delta.size() == plan.Tensors().size());
    CHECK(Accuracy(plan, data, federated) > 0.95);
    CHECK(*Train(plan, data, federated, 4)->loss_sum < *first.loss_sum / 2);
    CHECK(Train(plan, data, federated, 4)->delta == Train(plan, data, federated, 4)->delta);
  }
}

TEST_CASE("Batch norm: its statistics are the site's own, and no part of what leaves") {
  const Plan plan = MustPlan(
      JobOf(contracts::kGreyPicture, contracts::kThreeClasses, contracts::kConvNet, kFast));
  const LoadedDataset data = Pictures(plan, 48);
  auto prepared = *PrepareModel(plan, FirstModel(plan), data.alias);
  const std::vector<float> before = prepared.parameters;
  FormStatistics(data.training, prepared);

  const models::ParameterLayout layout = models::LayoutOf(prepared.spec);
  for (const models::ParameterView& view : layout.Views()) {
    CAPTURE(view.name);
    const auto of = [&view](const std::vector<float>& all) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(view.offset);
      return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(view.size));
    };
    const bool is_statistic = view.role == models::ParameterRole::kStatistic;
    CHECK((of(before) != of(prepared.parameters)) == is_statistic);
  }
  const auto trained = *Train(plan, data, FirstModel(plan), 1);
  for (const models::NamedTensor& tensor : trained.delta) {
    CHECK(tensor.name.find("running") == std::string::npos);
  }
}

TEST_CASE("Train: least squares finds the line, and errors are told in the label's unit") {
  const Plan plan =
      MustPlan(JobOf(contracts::kTwoNumbers, contracts::kNumberLabel, "kind = \"linear\"\n",
                     "optimizer = \"sgd\"\nlearning_rate = 0.5\nlocal_steps = 200\n") +
               "[evaluation]\n");
  const LoadedDataset data = Numbers(plan, 143);
  Model model = FirstModel(plan);
  const auto none = *Evaluate(plan, data, model);
  tests::AddRound(plan, {data}, 1, model);

  CHECK(model[0].values[0] == doctest::Approx(2).epsilon(1e-3));
  CHECK(model[0].values[1] == doctest::Approx(-1).epsilon(1e-3));
  CHECK(model[1].values[0] == doctest::Approx(0.5).epsilon(1e-3));
  const auto scored = *Score(plan, data, model);
  CHECK(scored.predictions[7] == doctest::Approx(data.test.targets[7]).epsilon(1e-3));
  CHECK(scored.probabilities.empty());
  double squares = 0;
  for (const double target : data.test.targets) {
    squares += std::pow((target - 20) / 4, 2);
  }
  CHECK(static_cast<double>(none.loss_sum) == doctest::Approx(squares * 1e6));
  CHECK(none.histogram.empty());
  CHECK(none.correct == 0);
  CHECK(Evaluate(plan, data, model)->loss_sum < 100);
}

TEST_CASE("Train: an encoder learns by its adapters alone") {
  const Plan plan =
      MustPlan(JobOf(contracts::kShortText, contracts::kTwoClasses,
                     std::string(contracts::kEncoder) + std::string(contracts::kAdapters),
                     "optimizer = \"adam\"\nlearning_rate = 0.03\nlocal_steps = 60\nbatch = 8\n"));
  const LoadedDataset data = Texts(plan, 36);
  Model model = FirstModel(plan);
  const auto first = *Train(plan, data, model, 1);
  for (RoundNumber round = 1; round <= 3; ++round) {
    tests::AddRound(plan, {data}, round, model);
  }

  CHECK(first.delta.size() == plan.Tensors().size());
  CHECK(std::all_of(first.delta.begin(), first.delta.end(), [](const models::NamedTensor& tensor) {
    return std::any_of(tensor.values.begin(), tensor.values.end(),
                       [](float value) { return value != 0; });
  }));
  CHECK(Accuracy(plan, data, model) > 0.8);  // two thirds are of one class
}

TEST_CASE("Train: a head alone is trained on what the encoder made of the texts once") {
  const std::string training =
      "optimizer = \"sgd\"\nlearning_rate = 0.5\nl2 = 0.01\nlocal_steps = 5\nbatch = 8\n";
  const std::string frozen = training + "frozen = [\"e*\", \"pooler.*\"]\n";
  const Plan alone =
      MustPlan(JobOf(contracts::kShortText, contracts::kTwoClasses, contracts::kEncoder, frozen));
  // The same job with a stage beyond its end, so that the encoder takes every step itself.
  const Plan whole =
      MustPlan(JobOf(contracts::kShortText, contracts::kTwoClasses, contracts::kEncoder,
                     frozen + "[[training.stage]]\nfrom_round = 5\n"));
  const LoadedDataset data = Texts(alone, 20);
  FrozenFeatures features;
  TrainOptions options;
  options.sources.features = &features;

  const auto kept = *Train(alone, data, FirstModel(alone), 1, options);
  const auto once = *Train(alone, data, FirstModel(alone), 1);
  const auto steps = *Train(whole, data, FirstModel(whole), 1);

  REQUIRE(kept.delta.size() == 2);
  CHECK(kept.delta == once.delta);
  CHECK(features.plan == contracts::PlanText(alone));
  CHECK(features.training.num_inputs == 12);
  CHECK(Train(alone, data, FirstModel(alone), 1, options)->delta == kept.delta);
  const models::NamedTensor* weight = models::FindTensor(steps.delta, "classifier.weight");
  REQUIRE(weight != nullptr);
  for (std::size_t i = 0; i < weight->values.size(); ++i) {
    CHECK(kept.delta[0].values[i] == doctest::Approx(weight->values[i]).epsilon(1e-4));
  }
  CHECK(std::abs(static_cast<double>(*kept.loss_sum - *steps.loss_sum)) < 10);
  Model trained = FirstModel(alone);
  trained[0].values[0] += 1;
  Model trained_whole = FirstModel(whole);
  trained_whole[trained_whole.size() - 2].values[0] += 1;
  const auto a = Score(alone, data, trained, options.sources)->probabilities;
  const auto b = Score(whole, data, trained_whole)->probabilities;
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4));
  }
}

TEST_CASE("MakeBatch: texts are cut to the longest of their batch, which changes no output") {
  const Plan plan = MustPlan(
      JobOf(contracts::kShortText, contracts::kTwoClasses, contracts::kEncoder, contracts::kSgd));
  LoadedDataset data = Texts(plan, 10);
  const auto prepared = *PrepareModel(plan, FirstModel(plan), data.alias);
  CHECK(MakeBatch(prepared, data.training, {0, 5}).length == 3);
  CHECK(MakeBatch(prepared, data.training, {0, 4}).length == 7);
  const auto together = Score(plan, data, FirstModel(plan))->probabilities;

  for (std::size_t row : {0U, 3U, 9U}) {
    LoadedDataset one = data;
    one.test.lengths = {data.test.lengths[row]};
    one.test.labels = {data.test.labels[row]};
    const auto begin = data.test.tokens.begin() + static_cast<std::ptrdiff_t>(8 * row);
    one.test.tokens.assign(begin, begin + 8);
    const auto alone = Score(plan, one, FirstModel(plan))->probabilities;
    CHECK(alone[1] == doctest::Approx(together[2 * row + 1]).epsilon(1e-5));
  }
}

TEST_CASE("Train: what a stage freezes has a delta of 0 in it (C41)") {
  const Plan plan = MustPlan(
      JobOf(contracts::kGreyPicture, contracts::kThreeClasses, contracts::kMlp,
            std::string(kFast) + "frozen = [\"layer0.*\"]\n[[training.stage]]\nfrom_round = 2\n"));
  const LoadedDataset data = Pictures(plan, 20);
  const auto moved = [&](RoundNumber round, std::size_t tensor) {
    const auto values = Train(plan, data, FirstModel(plan), round)->delta[tensor].values;
    return std::any_of(values.begin(), values.end(), [](float value) { return value != 0; });
  };

  CHECK_FALSE(moved(1, 0));
  CHECK_FALSE(moved(1, 1));
  CHECK(moved(1, 2));
  CHECK(moved(2, 0));
  CHECK(moved(2, 2));
}

TEST_CASE("Train: an epoch is as many steps as the rows fill, and rows count once (C41)") {
  const std::string job =
      JobOf(contracts::kGreyPicture, contracts::kThreeClasses, contracts::kMlp,
            "optimizer = \"sgd\"\nlearning_rate = 0.1\nlocal_epochs = 2\nbatch = 8\n");
  const Plan keep = MustPlan(job);
  const Plan drop =
      MustPlan(contracts::Replaced(job, "batch = 8", "batch = 8\nlast_batch = \"drop\""));
  const auto with_steps = [&job](std::string_view steps, std::string_view batch) {
    return MustPlan(contracts::Replaced(
        contracts::Replaced(job, "local_epochs = 2", "local_steps = " + std::string(steps)),
        "batch = 8", "batch = 8" + std::string(batch)));
  };
  const LoadedDataset data = Pictures(keep, 20);
  const Model model = FirstModel(keep);

  // 8 + 8 + 4 rows, twice; or 8 + 8, twice.
  CHECK(Train(keep, data, model, 1)->delta == Train(with_steps("6", ""), data, model, 1)->delta);
  CHECK(Train(drop, data, model, 1)->delta ==
        Train(with_steps("4", "\nlast_batch = \"drop\""), data, model, 1)->delta);
  CHECK(Train(keep, data, model, 1)->rows == 20);
  CHECK(Train(with_steps("2", "\nlast_batch = \"drop\""), data, model, 1)->rows == 16);
  CHECK(Train(drop, data, model, 1)->rows <= 20);
  CHECK(Train(drop, data, model, 1)->rows > 16);  // the second epoch leaves others out
  const struct {
    std::size_t rows;
    Reason of_keep;
    Reason of_drop;
  } cases[] = {{64, Reason::kNone, Reason::kNone},
               {65, Reason::kNone, Reason::kNone},
               {3, Reason::kNone, Reason::kNoExamples}};
  for (const auto& c : cases) {
    CAPTURE(c.rows);
    CHECK(ReasonOf(Train(keep, Pictures(keep, c.rows), model, 1)) == c.of_keep);
    CHECK(ReasonOf(Train(drop, Pictures(drop, c.rows), model, 1)) == c.of_drop);
  }
}

TEST_CASE("Train: without shuffling, rows come in the order of the table") {
  const std::string job =
      JobOf(contracts::kGreyPicture, contracts::kThreeClasses, contracts::kMlp,
            "optimizer = \"sgd\"\nlearning_rate = 0.1\nlocal_steps = 2\nbatch = 8\n");
  const Plan shuffled = MustPlan(job);
  const Plan ordered =
      MustPlan(contracts::Replaced(job, "batch = 8", "batch = 8\nshuffle = false"));
  LoadedDataset data = Pictures(ordered, 24);
  const Model model = FirstModel(ordered);
  const auto before = Train(ordered, data, model, 1)->delta;
  CHECK(Train(ordered, data, model, 2)->delta == before);
  CHECK(Train(shuffled, data, model, 1)->delta != before);

  // The third batch is not reached.
  std::fill(data.training.pixels.begin() + 16 * 120, data.training.pixels.end(), 0);
  CHECK(Train(ordered, data, model, 1)->delta == before);
}

TEST_CASE("Train: an interrupted task goes on from its checkpoint to the same bits") {
  const std::string job =
      JobOf(contracts::kGreyPicture, contracts::kThreeClasses, contracts::kMlp,
            "optimizer = \"adam\"\nlearning_rate = 0.01\nlocal_steps = 12\nbatch = 8\n");
  for (const std::string& text : {job, contracts::Replaced(job, "batch = 8\n", "")}) {
    const Plan plan = MustPlan(text);
    const LoadedDataset data = Pictures(plan, 20);
    const Model model = FirstModel(plan);
    const auto whole = *Train(plan, data, model, 1);
    const std::string folder = DOMICILE_BINARY_DIR "/execute_kinds_test.checkpoints";
    Digest subject;
    subject.bytes.fill(static_cast<std::uint8_t>(plan.training.batch + 1));
    const auto open = [&] { return models::CheckpointStore::Open(folder, subject, 1).value(); };
    REQUIRE(open().Clear().ok());

    models::CheckpointStore first = open();
    std::stop_source stop;
    std::uint32_t last_seen = 0;
    TrainOptions options;
    options.checkpoints = &first;
    options.checkpoint_steps = 4;
    options.stop = stop.get_token();
    options.progress = [&](const TaskProgress& told) {
      last_seen = told.percent;
      if (told.percent >= 75) {
        stop.request_stop();
      }
    };
    CHECK(ReasonOf(Train(plan, data, model, 1, options)) == Reason::kCancelled);
    CHECK(last_seen == 75);

    models::CheckpointStore second = open();
    REQUIRE(second.Steps() == std::vector<std::uint64_t>{8});
    std::vector<std::uint32_t> seen;
    options.checkpoints = &second;
    options.stop = {};
    options.progress = [&seen](const TaskProgress& told) { seen.push_back(told.percent); };
    const auto resumed = *Train(plan, data, model, 1, options);
    CHECK(seen == std::vector<std::uint32_t>{75, 83, 91, 100});
    CHECK(resumed.delta == whole.delta);
    CHECK(resumed.rows == whole.rows);
    CHECK(resumed.loss_sum == whole.loss_sum);
    REQUIRE(second.Clear().ok());
  }
}

TEST_CASE("Train: a pretrained model that is not here, and rows of another kind, are refused") {
  const Plan plan = MustPlan(
      JobOf(contracts::kShortText, contracts::kTwoClasses,
            std::string(contracts::kEncoder) + "pretrained = \"" + std::string(64, 'a') + "\"\n",
            contracts::kSgd));
  Plan without = plan;
  without.model.encoder.pretrained.reset();
  const LoadedDataset texts = Texts(plan, 6);
  const LoadedDataset pictures = Pictures(
      MustPlan(JobOf(contracts::kGreyPicture, contracts::kThreeClasses, contracts::kMlp, kFast)),
      6);

  CHECK(ReasonOf(Train(plan, texts, FirstModel(without), 1)) == Reason::kModelNotAllowed);
  CHECK(ReasonOf(Train(without, texts, FirstModel(without), 1)) == Reason::kNone);
  CHECK(ReasonOf(Train(without, pictures, FirstModel(without), 1)) == Reason::kModelShape);
  LoadedDataset long_text = texts;
  long_text.training.lengths[2] = 9;
  CHECK(ReasonOf(Train(without, long_text, FirstModel(without), 1)) == Reason::kModelShape);
}

}  // namespace
}  // namespace domicile::site_agent

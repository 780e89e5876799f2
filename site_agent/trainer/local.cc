#include "site_agent/trainer/local.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "contracts/normalisation.h"
#include "contracts/plan.h"
#include "models/plans/plan_model.h"
#include "site_agent/datasets/vocabulary_files.h"
#include "site_agent/trainer/execute.h"
#include "site_agent/trainer/metrics.h"

namespace domicile::site_agent {
namespace {

using Model = std::vector<models::NamedTensor>;

constexpr std::uint64_t kMaxPlanBytes = 4 << 20;
constexpr std::uint64_t kMaxModelBytes = std::uint64_t{8} << 30U;

struct Site {
  std::string name;
  LoadedDataset data;
  FrozenFeatures features{};
};

struct MeasuredModel {
  std::string name;
  std::vector<ScoredRows> sites;  // in the order of the sites
};

// "heart/dataset.cleveland.toml" -> cleveland; "sites/cleveland/dataset.toml" -> cleveland.
std::string SiteName(const std::string& path) {
  std::vector<std::string_view> parts = Split(path, '/');
  std::string_view name = parts.back();
  if (name.ends_with(".toml")) {
    name.remove_suffix(5);
  }
  if (name == "dataset" && parts.size() > 1) {
    return std::string(parts[parts.size() - 2]);
  }
  if (name.starts_with("dataset.")) {
    name.remove_prefix(8);
  }
  return std::string(name);
}

StatusOr<contracts::Plan> ReadPlan(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxPlanBytes));
  return text.starts_with('{') ? contracts::PlanFromText(text)
                               : contracts::PlanFromJobFile(text, path);
}

StatusOr<std::vector<Site>> ReadSites(const LocalRequest& request, const contracts::Plan& plan,
                                      const VocabularyFiles& vocabularies) {
  if (request.datasets.empty()) {
    return Error(StatusCode::kInvalidArgument, "name at least one dataset description");
  }
  std::vector<Site> sites;
  for (const std::string& dataset : request.datasets) {
    const std::size_t equals = dataset.find('=');
    const bool is_named = equals != std::string::npos;
    const std::string path = is_named ? dataset.substr(equals + 1) : dataset;
    Site site;
    site.name = is_named ? dataset.substr(0, equals) : SiteName(path);
    if (std::any_of(sites.begin(), sites.end(),
                    [&site](const Site& other) { return other.name == site.name; })) {
      return Error(StatusCode::kInvalidArgument,
                   "two datasets are called `" + site.name + "`; name them as NAME=FILE");
    }
    ReadOptions options;
    options.vocabularies = [&vocabularies](const Digest& digest) {
      return vocabularies.Find(digest);
    };
    const Outcome<Table> table = ReadTable(path, options);
    if (!table.ok()) {
      return table.TheFault().LocalStatus();
    }
    Outcome<LoadedDataset> data = BuildDataset(*table, plan.schema, options);
    if (!data.ok()) {
      return data.TheFault().LocalStatus();
    }
    site.data = std::move(*data);
    sites.push_back(std::move(site));
  }
  return sites;
}

template <typename T>
void Append(const std::vector<T>& some, std::vector<T>& all) {
  all.insert(all.end(), some.begin(), some.end());
}

void Append(const Rows& rows, Rows& all) {
  all.num_inputs = rows.num_inputs;
  Append(rows.inputs, all.inputs);
  Append(rows.missing, all.missing);
  Append(rows.pixels, all.pixels);
  Append(rows.tokens, all.tokens);
  Append(rows.lengths, all.lengths);
  Append(rows.labels, all.labels);
  Append(rows.targets, all.targets);
}

LoadedDataset Pool(const std::vector<Site>& sites) {
  LoadedDataset all;
  all.alias = sites.front().data.alias;
  all.input_names = sites.front().data.input_names;
  all.num_classes = sites.front().data.num_classes;
  for (const Site& site : sites) {
    Append(site.data.training, all.training);
    Append(site.data.test, all.test);
  }
  return all;
}

// Sums of statistics over sites.
struct PooledSums {
  std::vector<double> counts;
  std::vector<double> sums;
  std::vector<double> squares;
};

StatusOr<PooledSums> PoolStatistics(const contracts::Plan& plan, const std::vector<Site>& sites) {
  const std::vector<double> zeros(plan.NumInputs(), 0);
  PooledSums pooled = {zeros, zeros, zeros};
  const double unit = std::ldexp(1.0, -static_cast<int>(plan.normalisation.scale_bits));
  for (const Site& site : sites) {
    const Outcome<StatisticsResult> sums = ComputeStatistics(plan, site.data);
    if (!sums.ok()) {
      return Annotate(sums.TheFault().LocalStatus(), site.name);
    }
    for (std::size_t input = 0; input < zeros.size(); ++input) {
      pooled.counts[input] += static_cast<double>(sums->counts[input]);
      pooled.sums[input] += unit * static_cast<double>(sums->sums[input]);
      pooled.squares[input] += unit * static_cast<double>(sums->squares[input]);
    }
  }
  return pooled;
}

// The model every comparison starts from: first weights, and the constants of all training rows.
StatusOr<Model> FirstModel(const contracts::Plan& plan, const std::vector<Site>& sites,
                           const models::PretrainedModels& pretrained) {
  ASSIGN_OR_RETURN(const std::vector<float> all, models::FirstParameters(plan, pretrained));
  Model model = models::TravellingTensors(plan, all);
  if (!plan.normalisation.enabled) {
    return model;
  }
  ASSIGN_OR_RETURN(const PooledSums pooled, PoolStatistics(plan, sites));
  models::NamedTensor mean = {.name = contracts::kMeanTensor, .shape = {plan.NumInputs()}};
  models::NamedTensor deviation = {.name = contracts::kDeviationTensor,
                                   .shape = {plan.NumInputs()}};
  for (std::size_t input = 0; input < plan.NumInputs(); ++input) {
    const double first = pooled.sums[input] / pooled.counts[input];
    const double second = pooled.squares[input] / pooled.counts[input];
    const double spread = std::sqrt(second - first * first);
    if (!(spread >= plan.normalisation.deviation_floor)) {
      return Error(StatusCode::kInvalidArgument,
                   "input `" + sites.front().data.input_names[input] +
                       "`: its deviation over all training rows is below the plan's floor");
    }
    mean.values.push_back(static_cast<float>(plan.normalisation.offsets[input] + first));
    deviation.values.push_back(static_cast<float>(spread));
  }
  model.push_back(std::move(mean));
  model.push_back(std::move(deviation));
  return model;
}

// As many rounds of local steps as the federation has, on one dataset.
StatusOr<Model> TrainAlone(const contracts::Plan& plan, const LoadedDataset& data, Model model,
                           const TrainOptions& options) {
  for (RoundNumber round = 1; round <= plan.rounds.count; ++round) {
    const Outcome<TrainResult> trained = Train(plan, data, model, round, options);
    if (!trained.ok()) {
      return trained.TheFault().LocalStatus();
    }
    for (std::size_t tensor = 0; tensor < trained->delta.size(); ++tensor) {
      for (std::size_t i = 0; i < model[tensor].values.size(); ++i) {
        model[tensor].values[i] += trained->delta[tensor].values[i];
      }
    }
  }
  return model;
}

StatusOr<MeasuredModel> MeasureEverywhere(const contracts::Plan& plan, std::vector<Site>& sites,
                                          std::string name, const Model& model,
                                          const models::PretrainedModels& pretrained) {
  MeasuredModel measured = {std::move(name), {}};
  for (Site& site : sites) {
    Outcome<ScoredRows> scored = Score(plan, site.data, model, {&pretrained, &site.features});
    if (!scored.ok()) {
      return scored.TheFault().LocalStatus();
    }
    measured.sites.push_back(std::move(*scored));
  }
  return measured;
}

// Six digits after the point: more would be noise.
Json Decimal(double value) { return PrintDouble(std::round(value * 1e6) / 1e6); }

// Of a label that is a number: the error, and what always answering the mean would give.
Json ErrorsJson(const ScoredRows& scored) {
  Json json;
  json.Set("examples", static_cast<std::uint64_t>(scored.targets.size()));
  if (scored.targets.empty()) {
    return json;
  }
  const auto count = static_cast<double>(scored.targets.size());
  const double mean = std::accumulate(scored.targets.begin(), scored.targets.end(), 0.0) / count;
  double squares = 0;
  double spread = 0;
  for (std::size_t row = 0; row < scored.targets.size(); ++row) {
    squares += std::pow(scored.predictions[row] - scored.targets[row], 2);
    spread += std::pow(scored.targets[row] - mean, 2);
  }
  json.Set("root_mean_square_error", Decimal(std::sqrt(squares / count)));
  json.Set("standard_deviation", Decimal(std::sqrt(spread / count)));
  return json;
}

Json MetricsJson(const ScoredRows& scored) {
  if (!scored.targets.empty()) {
    return ErrorsJson(scored);
  }
  const Metrics metrics =
      Measure(scored.probabilities, scored.labels, std::max<std::size_t>(scored.num_classes, 2));
  Json json;
  json.Set("examples", metrics.examples);
  // Without rows there is no accuracy, and 0 would look like one.
  if (metrics.examples > 0) {
    json.Set("accuracy", Decimal(metrics.accuracy));
    json.Set("majority", Decimal(metrics.majority));
    json.Set("log_loss", Decimal(metrics.log_loss));
  }
  if (metrics.auc) {
    json.Set("auc", Decimal(*metrics.auc));
  }
  return json;
}

Json ModelJson(const MeasuredModel& model, const std::vector<Site>& sites) {
  ScoredRows all;
  Json by_site;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const ScoredRows& scored = model.sites[i];
    by_site.Set(sites[i].name, MetricsJson(scored));
    all.num_classes = scored.num_classes;
    Append(scored.probabilities, all.probabilities);
    Append(scored.labels, all.labels);
    Append(scored.predictions, all.predictions);
    Append(scored.targets, all.targets);
  }
  Json json;
  json.Set("name", model.name);
  json.Set("all", MetricsJson(all));
  json.Set("sites", std::move(by_site));
  return json;
}

double LargestDifference(const contracts::Plan& plan, const Model& a, const Model& b) {
  double largest = 0;
  for (const contracts::TensorSpec& spec : plan.Tensors()) {
    const models::NamedTensor* const left = models::FindTensor(a, spec.name);
    const models::NamedTensor* const right = models::FindTensor(b, spec.name);
    for (std::size_t i = 0; i < left->values.size(); ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(left->values[i]) -
                                            static_cast<double>(right->values[i])));
    }
  }
  return largest;
}

Json SitesJson(const std::vector<Site>& sites) {
  JsonArray list;
  for (const Site& site : sites) {
    Json json;
    json.Set("name", site.name);
    json.Set("training_rows", static_cast<std::uint64_t>(site.data.training.NumRows()));
    json.Set("test_rows", static_cast<std::uint64_t>(site.data.test.NumRows()));
    json.Set("dropped_rows", site.data.counts.dropped);
    list.push_back(std::move(json));
  }
  return list;
}

// Adds what the federated model adds: itself, with own intercepts, and its distance.
Status AddFederated(const contracts::Plan& plan, std::vector<Site>& sites, const std::string& path,
                    const Model& central, const models::PretrainedModels& pretrained,
                    JsonArray& list, Json& json) {
  ASSIGN_OR_RETURN(const std::string file, ReadFile(path, kMaxModelBytes));
  const StatusOr<Model> model = models::ParseSafetensors(AsBytes(file));
  RETURN_IF_ERROR(Annotate(model.status(), path));
  ASSIGN_OR_RETURN(const MeasuredModel federated,
                   MeasureEverywhere(plan, sites, "federated", *model, pretrained));
  list.push_back(ModelJson(federated, sites));
  json.Set("max_weight_difference", Decimal(LargestDifference(plan, *model, central)));
  if (plan.schema.label.number) {
    return OkStatus();  // the intercept of a number is no rate of a class
  }

  MeasuredModel own = {"federated, own intercept", {}};
  Json intercepts;
  for (Site& site : sites) {
    Outcome<RefitResult> refit =
        RefitIntercept(plan, site.data, *model, {&pretrained, &site.features});
    if (!refit.ok()) {
      return refit.TheFault().LocalStatus();
    }
    JsonArray bias;
    for (const double value : refit->bias) {
      bias.push_back(Decimal(value));
    }
    intercepts.Set(site.name, std::move(bias));
    own.sites.push_back(std::move(refit->test));
  }
  list.push_back(ModelJson(own, sites));
  json.Set("own_intercepts", std::move(intercepts));
  return OkStatus();
}

}  // namespace

StatusOr<Json> RunLocal(const LocalRequest& request) {
  ASSIGN_OR_RETURN(const contracts::Plan plan, ReadPlan(request.plan_file));
  if (plan.model.kind == contracts::ModelKind::kRaw) {
    return Error(StatusCode::kInvalidArgument,
                 "a plan of kind `raw` has no schema, so that nothing can be compared here");
  }
  ASSIGN_OR_RETURN(const models::PretrainedModels pretrained,
                   models::PretrainedModels::Read(request.pretrained));
  ASSIGN_OR_RETURN(const VocabularyFiles vocabularies, VocabularyFiles::Read(request.vocabularies));
  ASSIGN_OR_RETURN(std::vector<Site> sites, ReadSites(request, plan, vocabularies));
  const LoadedDataset all = Pool(sites);
  ASSIGN_OR_RETURN(const Model first, FirstModel(plan, sites, pretrained));
  TrainOptions options;
  options.strategy.threads = request.threads;
  options.sources.pretrained = &pretrained;

  JsonArray list;
  MeasuredModel at_home = {"local at home", {}};
  for (std::size_t i = 0; i < sites.size(); ++i) {
    options.sources.features = &sites[i].features;
    ASSIGN_OR_RETURN(const Model model, TrainAlone(plan, sites[i].data, first, options));
    ASSIGN_OR_RETURN(const MeasuredModel measured,
                     MeasureEverywhere(plan, sites, "local:" + sites[i].name, model, pretrained));
    at_home.sites.push_back(measured.sites[i]);
    list.push_back(ModelJson(measured, sites));
  }
  list.push_back(ModelJson(at_home, sites));
  FrozenFeatures of_all;
  options.sources.features = &of_all;
  ASSIGN_OR_RETURN(const Model central, TrainAlone(plan, all, first, options));
  ASSIGN_OR_RETURN(const MeasuredModel measured,
                   MeasureEverywhere(plan, sites, "centralised", central, pretrained));
  list.push_back(ModelJson(measured, sites));

  Json json;
  json.Set("v", 1);
  json.Set("plan", plan.name);
  json.Set("sites", SitesJson(sites));
  if (request.model_file) {
    RETURN_IF_ERROR(
        AddFederated(plan, sites, *request.model_file, central, pretrained, list, json));
  }
  json.Set("models", std::move(list));
  return json;
}

}  // namespace domicile::site_agent

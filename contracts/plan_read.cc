// Job files and plan texts to plans: the same keys and ranges, read by the same code.
#include <cstdint>
#include <utility>

#include "contracts/internal/fields.h"
#include "contracts/internal/plan_check.h"
#include "contracts/internal/plan_words.h"
#include "contracts/internal/read_model.h"
#include "contracts/internal/read_training.h"
#include "contracts/plan.h"

namespace domicile::contracts {

namespace {

using internal::Fault;
using internal::JsonFields;
using internal::Narrow;
using internal::ReadWord;
using internal::RefuseKey;
using internal::TomlFields;

constexpr std::size_t kLongestText = std::size_t{4} << 20U;

// Defaults of the format page.
constexpr std::int64_t kDefaultScaleBits = 32;
constexpr std::int64_t kDefaultValueBits = 8;
constexpr std::int64_t kDefaultStatisticsBits = 20;
constexpr std::int64_t kDefaultMaxRows = 100'000;
constexpr std::int64_t kDefaultMaxWeight = 100'000;
constexpr std::int64_t kDefaultMaxSites = 64;
constexpr std::int64_t kDefaultDeadlineSeconds = 3'600;
constexpr std::int64_t kDefaultAttempts = 3;
constexpr std::int64_t kDefaultStartAfterSeconds = 600;
constexpr std::int64_t kDefaultBins = 1'000;
constexpr double kDefaultDeviationFloor = 1e-3;

template <typename Fields>
void ReadHead(Fields& fields, Plan& plan) {
  plan.name = fields.String("name");
  plan.purpose = fields.String("purpose");
  StatusOr<DatasetAlias> dataset = DatasetAlias::Parse(fields.String("dataset"));
  if (dataset.ok()) {
    plan.dataset = *std::move(dataset);
  } else {
    fields.Fail("dataset", "is wrong: " + std::string(Message(dataset.status())));
  }
  plan.recipients = fields.Strings("recipients");
}

// All but offsets and ranges, which stand in different places in the two forms.
template <typename Fields>
void ReadNormalisation(Fields fields, NormalisationPlan& normalisation) {
  normalisation.enabled = true;
  normalisation.deviation_floor =
      fields.TryDouble("deviation_floor", 0, internal::kMaxDeviationFloor)
          .value_or(kDefaultDeviationFloor);
  normalisation.scale_bits =
      Narrow(fields.TryInt("scale_bits", 0, kMaxScaleBits).value_or(kDefaultStatisticsBits));
  normalisation.max_rows = static_cast<std::uint64_t>(
      fields.TryInt("max_rows", 1, internal::kMaxTableRows).value_or(kDefaultMaxRows));
}

template <typename Fields>
void ReadRounds(Fields fields, RoundsPlan& rounds) {
  rounds.count = Narrow(fields.Int("count", 1, kMaxRounds));
  rounds.quorum = Narrow(fields.Int("quorum", 1, kMaxSites));
  rounds.deadline =
      std::chrono::seconds(fields.TryInt("deadline_seconds", 1, internal::kMaxDeadlineSeconds)
                               .value_or(kDefaultDeadlineSeconds));
  rounds.attempts =
      Narrow(fields.TryInt("attempts", 1, internal::kMaxAttempts).value_or(kDefaultAttempts));
  rounds.start_after =
      std::chrono::seconds(fields.TryInt("start_after_seconds", 0, internal::kMaxStartAfterSeconds)
                               .value_or(kDefaultStartAfterSeconds));
}

template <typename Fields>
void ReadUpdate(Fields fields, ModelKind kind, UpdatePlan& update) {
  update.view = ReadWord<PlanView>(fields, "view", internal::kViewWords);
  update.clip_l2 = fields.Double("clip_l2", 0, internal::kMaxClip);
  if (kind == ModelKind::kRaw) {
    // With few levels the unit decides what a value can be at most: nobody else can choose it.
    update.scale_bits = Narrow(fields.Int("scale_bits", 0, kMaxScaleBits));
    update.value_bits =
        Narrow(fields.TryInt("value_bits", 2, kMaxValueBits).value_or(kDefaultValueBits));
  } else {
    update.scale_bits =
        Narrow(fields.TryInt("scale_bits", 0, kMaxScaleBits).value_or(kDefaultScaleBits));
  }
  update.weight = ReadWord<WeightRule>(fields, "weight", internal::kWeightWords);
  const std::int64_t max_weight = update.weight == WeightRule::kEqual ? 1 : kDefaultMaxWeight;
  update.max_weight =
      Narrow(fields.TryInt("max_weight", 1, internal::kMaxWeight).value_or(max_weight));
  update.max_sites = Narrow(fields.TryInt("max_sites", 1, kMaxSites).value_or(kDefaultMaxSites));
  update.server_learning_rate =
      fields.TryDouble("server_learning_rate", 0, internal::kMaxServerLearningRate).value_or(1);
}

template <typename Fields>
void ReadEvaluation(Fields fields, const Label& label, EvaluationPlan& evaluation) {
  evaluation.enabled = true;
  if (label.number) {
    RefuseKey(fields, "bins", "are of scores of classes; a number as label has none");
    return;
  }
  evaluation.bins =
      Narrow(fields.TryInt("bins", internal::kMinBins, internal::kMaxBins).value_or(kDefaultBins));
}

// ---- the job file ----

// The offset and the range of each feature; one pair for each of its inputs.
void ReadFeatureScales(TomlTable& root, const SchemaContract& schema,
                       NormalisationPlan& normalisation) {
  std::vector<TomlTable> tables = root.Tables("feature");
  for (std::size_t i = 0; i < tables.size() && i < schema.features.size(); ++i) {
    TomlFields fields(tables[i]);
    const Feature& feature = schema.features[i];
    if (feature.kind == FeatureKind::kNumber && normalisation.enabled) {
      normalisation.offsets.push_back(
          fields.Double("offset", -internal::kMaxOffset, internal::kMaxOffset));
      normalisation.ranges.push_back(fields.Double("range", 0, internal::kMaxRange));
      continue;
    }
    const std::string_view why = feature.kind == FeatureKind::kCategory
                                     ? "of a category is fixed (offset 0, range 1); leave it out"
                                     : "has no use without a table [normalisation]";
    RefuseKey(fields, "offset", why);
    RefuseKey(fields, "range", why);
    if (normalisation.enabled) {
      normalisation.offsets.insert(normalisation.offsets.end(), feature.codes.size(), 0.0);
      normalisation.ranges.insert(normalisation.ranges.end(), feature.codes.size(), 1.0);
    }
  }
}

void ReadTabular(TomlTable& root, Plan& plan) {
  plan.schema = ReadSchema(root);
  if (std::optional<TomlTable> table = root.TryTable("normalisation")) {
    ReadNormalisation(TomlFields(*table), plan.normalisation);
  }
  ReadFeatureScales(root, plan.schema, plan.normalisation);
  if (std::optional<TomlTable> table = root.TryTable("evaluation")) {
    ReadEvaluation(TomlFields(*table), plan.schema.label, plan.evaluation);
  }
}

void RefuseTabular(TomlTable& root) {
  for (const std::string_view key :
       {"feature", "image", "text", "label", "normalisation", "evaluation"}) {
    if (root.Has(key)) {
      root.Fail(key, "has no use with a raw model: its trainer reads the table itself");
    }
  }
}

void ReadModel(TomlTable table, ModelPlan& model) {
  internal::ReadModel(TomlFields(table), model);
  if (model.kind == ModelKind::kConvNet) {
    for (const TomlTable& block : table.Tables("block")) {
      model.blocks.push_back(internal::ReadBlock(TomlFields(block)));
    }
  }
  if (model.kind == ModelKind::kRaw) {
    for (const TomlTable& tensor : table.Tables("tensor")) {
      model.tensors.push_back(internal::ReadTensor(TomlFields(tensor)));
    }
  }
}

void ReadTraining(TomlTable table, ModelKind kind, TrainingPlan& training) {
  internal::ReadTraining(TomlFields(table), kind, training);
  if (kind != ModelKind::kRaw) {
    if (std::optional<TomlTable> stopping = table.TryTable("early_stopping")) {
      training.early_stopping = internal::ReadEarlyStopping(TomlFields(*stopping));
    }
  }
  for (const TomlTable& stage : table.Tables("stage")) {
    if (kind == ModelKind::kRaw) {
      table.Fail("stage", internal::kNotOfRaw);
      return;
    }
    training.stages.push_back(internal::ReadStage(TomlFields(stage), training.learning_rate));
  }
}

// ---- the plan's text ----

void ReadTabular(JsonReader& reader, Plan& plan) {
  StatusOr<SchemaContract> schema = SchemaFromJson(reader.Object("schema"));
  reader.Merge(schema.status());
  if (schema.ok()) {
    plan.schema = *std::move(schema);
  }
  if (const Json* object = reader.TryObject("normalisation")) {
    JsonReader inner(*object, "plan.normalisation");
    JsonFields fields(inner);
    ReadNormalisation(fields, plan.normalisation);
    plan.normalisation.offsets =
        fields.Doubles("offsets", -internal::kMaxOffset, internal::kMaxOffset);
    plan.normalisation.ranges = fields.Doubles("ranges", 0, internal::kMaxRange);
    reader.Merge(inner.Finish());
  }
  if (const Json* object = reader.TryObject("evaluation")) {
    JsonReader inner(*object, "plan.evaluation");
    ReadEvaluation(JsonFields(inner), plan.schema.label, plan.evaluation);
    reader.Merge(inner.Finish());
  }
}

// Reads each object of a list with `read`.
template <typename T, typename Read>
void ReadList(JsonReader& reader, const std::string& path, std::string_view key, Read read,
              std::vector<T>& list) {
  for (const Json& item : reader.Array(key)) {
    JsonReader one(item, path + "." + std::string(key) + "[" + std::to_string(list.size()) + "]");
    list.push_back(read(JsonFields(one)));
    reader.Merge(one.Finish());
  }
}

void ReadModel(JsonReader& reader, ModelPlan& model) {
  const std::string path = "plan.model";
  JsonReader inner(reader.Object("model"), path);
  internal::ReadModel(JsonFields(inner), model);
  if (model.kind == ModelKind::kConvNet) {
    ReadList(inner, path, "blocks", internal::ReadBlock<JsonFields>, model.blocks);
  }
  if (model.kind == ModelKind::kRaw) {
    ReadList(inner, path, "tensors", internal::ReadTensor<JsonFields>, model.tensors);
  }
  reader.Merge(inner.Finish());
}

void ReadTraining(JsonReader& reader, Plan& plan) {
  const std::string path = "plan.training";
  JsonReader inner(reader.Object("training"), path);
  internal::ReadTraining(JsonFields(inner), plan.model.kind, plan.training);
  if (plan.model.kind != ModelKind::kRaw) {
    if (const Json* object = inner.TryObject("early_stopping")) {
      JsonReader stopping(*object, path + ".early_stopping");
      plan.training.early_stopping = internal::ReadEarlyStopping(JsonFields(stopping));
      inner.Merge(stopping.Finish());
    }
    ReadList(
        inner, path, "stages",
        [&plan](JsonFields fields) {
          return internal::ReadStage(fields, plan.training.learning_rate);
        },
        plan.training.stages);
  }
  reader.Merge(inner.Finish());
}

// Every table but the head's own fields.
void ReadTables(JsonReader& reader, Plan& plan) {
  ReadModel(reader, plan.model);
  if (plan.model.kind != ModelKind::kRaw) {
    ReadTabular(reader, plan);
  }
  ReadTraining(reader, plan);
  JsonReader rounds(reader.Object("rounds"), "plan.rounds");
  ReadRounds(JsonFields(rounds), plan.rounds);
  reader.Merge(rounds.Finish());
  JsonReader update(reader.Object("update"), "plan.update");
  ReadUpdate(JsonFields(update), plan.model.kind, plan.update);
  reader.Merge(update.Finish());
}

}  // namespace

StatusOr<Plan> PlanFromJobFile(std::string_view toml, std::string_view file) {
  ASSIGN_OR_RETURN(TomlDocument document, TomlDocument::Parse(toml, file));
  TomlTable root = document.Root();
  Plan plan;
  TomlFields head(root);
  ReadHead(head, plan);
  ReadModel(root.Table("model"), plan.model);
  if (plan.model.kind == ModelKind::kRaw) {
    RefuseTabular(root);
  } else {
    ReadTabular(root, plan);
  }
  ReadTraining(root.Table("training"), plan.model.kind, plan.training);
  ReadRounds(TomlFields(root.Table("rounds")), plan.rounds);
  ReadUpdate(TomlFields(root.Table("update")), plan.model.kind, plan.update);
  RETURN_IF_ERROR(document.Finish());
  // Only now: the checks may assume that every single field is in its range.
  if (const std::optional<Fault> fault = internal::FindPlanFault(plan)) {
    internal::Report(root, *fault);
    RETURN_IF_ERROR(document.Finish());
  }
  return plan;
}

StatusOr<Plan> PlanFromText(std::string_view text) {
  if (text.size() > kLongestText) {
    return Error(StatusCode::kInvalidArgument, "plan: longer than 4 MiB");
  }
  StatusOr<Json> json = ParseCanonicalJson(text);
  if (!json.ok()) {
    return Annotate(json.status(), "plan");
  }
  JsonReader reader(*json, "plan");
  Plan plan;
  reader.Int("v", 1, 1);
  JsonFields head(reader);
  ReadHead(head, plan);
  ReadTables(reader, plan);
  RETURN_IF_ERROR(reader.Finish());
  if (const std::optional<Fault> fault = internal::FindPlanFault(plan)) {
    return Error(StatusCode::kInvalidArgument, "plan: " + internal::Describe(*fault));
  }
  // Defaults are written out and decimals have one spelling: anything else would give one plan two
  // digests.
  if (PlanText(plan) != text) {
    return Error(StatusCode::kInvalidArgument,
                 "plan: not the text of this plan; every default must be written out, and decimals "
                 "in their shortest form");
  }
  return plan;
}

}  // namespace domicile::contracts

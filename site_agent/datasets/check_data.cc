#include "site_agent/datasets/check_data.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "contracts/plan.h"
#include "site_agent/datasets/dataset.h"
#include "site_agent/datasets/table.h"
#include "site_agent/datasets/vocabulary_files.h"

namespace domicile::site_agent {
namespace {

constexpr std::uint64_t kMaxPlanBytes = 4 << 20;

StatusOr<contracts::Plan> ReadPlan(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxPlanBytes));
  return text.starts_with('{') ? contracts::PlanFromText(text)
                               : contracts::PlanFromJobFile(text, path);
}

Json Lines(const std::vector<std::string>& lines) { return JsonArray(lines.begin(), lines.end()); }

void AppendLines(std::string& text, std::string_view title, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    text += std::string(title) + line + "\n";
  }
}

// Collects what is found out, for machine and person.
class Checker {
 public:
  Checker(const CheckRequest& request, contracts::DatasetDescription description,
          VocabularyFiles vocabularies)
      : description_(std::move(description)), vocabularies_(std::move(vocabularies)) {
    options_.show_values = request.show_values;
    options_.vocabularies = [this](const Digest& digest) { return vocabularies_.Find(digest); };
    report_.fits = true;
    report_.json.Set("v", 1);
    report_.json.Set("description", request.description);
    report_.json.Set("alias", description_.alias.text());
    report_.json.Set("version", description_.version);
    report_.text =
        "dataset `" + description_.alias.text() + "`, version `" + description_.version + "`";
  }

  CheckReport Check(const contracts::Plan* plan) {
    const Outcome<Table> table = ReadTable(description_, options_);
    if (table.ok()) {
      Describe(*table);
      notices_ = table->notices;
      if (plan != nullptr) {
        Fit(*table, *plan);
      }
    } else {
      report_.text += "\n";
      Refuse(table.TheFault());
    }
    AppendLines(report_.text, "note: ", notices_);
    AppendLines(report_.text, "fault: ", faults_);
    report_.text += report_.fits ? "fits\n" : "does not fit\n";
    report_.json.Set("fits", report_.fits);
    report_.json.Set("notices", Lines(notices_));
    report_.json.Set("faults", Lines(faults_));
    return std::move(report_);
  }

 private:
  void Refuse(const Fault& fault) {
    report_.fits = false;
    faults_ = fault.LocalLines();
  }

  void Describe(const Table& table) {
    const RawRecords& records = table.records;
    JsonArray columns;
    report_.json.Set("rows", std::uint64_t{records.NumRows()});
    report_.text += ": " + std::to_string(records.NumRows()) + " records\n";
    for (std::size_t i = 0; i < records.Columns().size(); ++i) {
      const std::string& name = records.Columns()[i];
      std::uint64_t missing = 0;
      for (std::size_t row = 0; row < records.NumRows(); ++row) {
        missing += records.IsMissing(row, i) ? 1 : 0;
      }
      Json column;
      column.Set("name", Visible(name));
      column.Set("missing", missing);
      report_.text += "  column " + std::to_string(i + 1) + " `" + Visible(name) + "`";
      const contracts::ColumnDescription* const described = description_.FindLocalColumn(name);
      if (described != nullptr && described->name != name) {
        column.Set("job_name", described->name);
        report_.text += ", to jobs `" + described->name + "`";
      }
      report_.text += missing > 0 ? ", missing in " + std::to_string(missing) + " records\n" : "\n";
      columns.push_back(std::move(column));
    }
    report_.json.Set("columns", std::move(columns));
  }

  void Fit(const Table& table, const contracts::Plan& plan) {
    const Outcome<LoadedDataset> data = BuildDataset(table, plan.schema, options_);
    Json json;
    json.Set("name", plan.name);
    report_.text += "job `" + plan.name + "`:";
    if (data.ok()) {
      notices_ = data->notices;
      Count(*data, plan.schema, json);
    } else {
      report_.text += "\n";
      Refuse(data.TheFault());
    }
    report_.json.Set("plan", std::move(json));
  }

  void Count(const LoadedDataset& data, const contracts::SchemaContract& schema, Json& json) {
    json.Set("rows_read", data.counts.read);
    json.Set("rows_used", data.counts.used);
    json.Set("rows_dropped", data.counts.dropped);
    json.Set("training_rows", std::uint64_t{data.training.NumRows()});
    json.Set("test_rows", std::uint64_t{data.test.NumRows()});
    report_.text += " " + std::to_string(data.counts.read) + " rows read, " +
                    std::to_string(data.counts.used) + " used, " +
                    std::to_string(data.counts.dropped) + " dropped; " +
                    std::to_string(data.training.NumRows()) + " to train, " +
                    std::to_string(data.test.NumRows()) + " to test\n";
    JsonArray missing;
    for (std::size_t i = 0; i < data.missing_counts.size(); ++i) {
      const std::string name = i < schema.features.size() ? schema.features[i].column
                               : schema.image             ? "image"
                                                          : "text";
      Json column;
      column.Set("column", name);
      column.Set("rows", data.missing_counts[i]);
      missing.push_back(std::move(column));
      if (data.missing_counts[i] > 0) {
        report_.text +=
            "  `" + name + "` is missing in " + std::to_string(data.missing_counts[i]) + " rows\n";
      }
    }
    json.Set("missing", std::move(missing));
    JsonArray classes;
    for (std::uint32_t label = 0; label < schema.label.NumClasses(); ++label) {
      const std::string name =
          label < schema.label.classes.size() ? schema.label.classes[label] : std::to_string(label);
      const auto in = [label](const Rows& rows) {
        return static_cast<std::uint64_t>(
            std::count(rows.labels.begin(), rows.labels.end(), label));
      };
      const std::uint64_t rows = in(data.training) + in(data.test);
      Json one;
      one.Set("name", name);
      one.Set("rows", rows);
      classes.push_back(std::move(one));
      report_.text += "  class `" + name + "`: " + std::to_string(rows) + " rows\n";
    }
    json.Set("classes", std::move(classes));
  }

  contracts::DatasetDescription description_;
  VocabularyFiles vocabularies_;
  ReadOptions options_;
  CheckReport report_;
  std::vector<std::string> faults_;
  std::vector<std::string> notices_;
};

}  // namespace

StatusOr<CheckReport> CheckData(const CheckRequest& request) {
  ASSIGN_OR_RETURN(contracts::DatasetDescription description, ReadDescription(request.description));
  std::optional<contracts::Plan> plan;
  if (request.plan) {
    ASSIGN_OR_RETURN(plan, ReadPlan(*request.plan));
    if (plan->model.kind == contracts::ModelKind::kRaw) {
      return Error(StatusCode::kInvalidArgument,
                   "`" + *request.plan +
                       "`: a plan of kind `raw` has no schema, so that nothing can be checked");
    }
    if (plan->dataset != description.alias) {
      return Error(StatusCode::kInvalidArgument,
                   "`" + *request.plan + "`: the plan is for the dataset `" + plan->dataset.text() +
                       "`, the description says `" + description.alias.text() + "`");
    }
  }
  ASSIGN_OR_RETURN(VocabularyFiles vocabularies, VocabularyFiles::Read(request.vocabularies));
  Checker checker(request, std::move(description), std::move(vocabularies));
  return checker.Check(plan ? &*plan : nullptr);
}

}  // namespace domicile::site_agent

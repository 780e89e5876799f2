#include "site_agent/datasets/internal/job_column.h"

#include <algorithm>

#include "base/text.h"
#include "site_agent/datasets/csv.h"
#include "site_agent/datasets/internal/record_writer.h"

namespace domicile::site_agent::internal {

StatusOr<JobColumn> JobColumn::Find(const Table& table, std::string_view name) {
  const contracts::DatasetDescription& described = table.description;
  const auto missing = [&](const std::string& what) {
    return Error(StatusCode::kInvalidArgument, NameOf(described) + ": " + what);
  };
  const contracts::ColumnDescription* const description = described.FindColumn(name);
  if (description == nullptr) {
    if (const auto* const other = described.FindLocalColumn(name)) {
      return missing("the job asks for a column `" + Visible(name) +
                     "`; the one of that name is known to jobs as `" + Visible(other->name) +
                     "`, by the dataset description");
    }
  }
  const std::string_view local = description == nullptr ? name : description->Local();
  const std::optional<std::size_t> index = table.records.FindColumn(local);
  if (!index) {
    return missing("no column `" + Visible(local) + "`, which the job asks for; found " +
                   ListColumns(table.records.Columns()));
  }
  return JobColumn(table, *index, description);
}

Reading<double> JobColumn::RecordedNumber(std::size_t row) const {
  if (description_ != nullptr && !description_->codes.empty()) {
    const Reading<std::string_view> code = Code(row);
    const StatusOr<double> number = ParseDouble(code.value.value_or(""));
    return !code.value   ? Reading<double>{std::nullopt, code.wrong}
           : number.ok() ? Reading<double>{*number, {}}
                         : Reading<double>{std::nullopt, "a code that is not a number"};
  }
  const contracts::DatasetDescription& form = table_->description;
  const std::optional<double> number = ParseNumber(Cell(row), form.decimal_mark, form.grouping);
  if (number) {
    return {number, {}};
  }
  return {std::nullopt, std::string("not a number in the declared form (decimal mark `") +
                            form.decimal_mark + "`, " +
                            (form.grouping ? std::string("grouping `") + *form.grouping + "`"
                                           : std::string("no grouping")) +
                            ")"};
}

Status JobColumn::CheckRange(double recorded) const {
  if (description_ != nullptr && ((description_->min && recorded < *description_->min) ||
                                  (description_->max && recorded > *description_->max))) {
    return Error(StatusCode::kOutOfRange, "outside the range declared for the column");
  }
  return OkStatus();
}

double JobColumn::InJobUnit(double recorded) const {
  return description_ == nullptr ? recorded : recorded * description_->scale + description_->offset;
}

Reading<std::string_view> JobColumn::Code(std::size_t row) const {
  const std::string_view cell = Cell(row);
  if (description_ == nullptr || description_->codes.empty()) {
    return {cell, {}};
  }
  const auto found = std::find_if(description_->codes.begin(), description_->codes.end(),
                                  [cell](const auto& code) { return code.first == cell; });
  if (found == description_->codes.end()) {
    return {std::nullopt, "a code that the dataset description does not list"};
  }
  return {found->second, {}};
}

std::string JobColumn::Place(std::size_t row) const {
  return table_->records.Place(row) + ": column " + std::to_string(index_ + 1) + " `" +
         Visible(table_->records.Columns()[index_]) + "`";
}

}  // namespace domicile::site_agent::internal

// The site's own description of a table (docs/formats/dataset.md).
#include "contracts/dataset.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "contracts/internal/fault.h"

namespace domicile::contracts {

namespace {

constexpr std::size_t kMaxFiles = 1'000;
constexpr std::size_t kMaxTokens = 32;
constexpr std::size_t kLongestToken = 64;
constexpr std::size_t kLongestVersion = 64;
constexpr std::int64_t kLargestTestEvery = 1'000'000;
constexpr double kLargestBound = 1e300;

bool IsPrintableAscii(std::string_view text, std::size_t longest) {
  return !text.empty() && text.size() <= longest &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// One character of a closed list; `fallback` if the key is absent.
std::optional<char> ReadMark(TomlTable& table, std::string_view key, std::string_view allowed,
                             std::string_view list, std::optional<char> fallback) {
  const std::optional<std::string> text = table.TryString(key);
  if (!text) {
    return fallback;
  }
  if (text->size() != 1 || allowed.find(text->front()) == std::string_view::npos) {
    table.Fail(key, "must be one of " + std::string(list));
    return fallback;
  }
  return text->front();
}

// The tokens that mean "not recorded". An empty cell always does.
std::vector<std::string> ReadMissing(TomlTable& table, std::vector<std::string> tokens) {
  if (tokens.size() > kMaxTokens ||
      std::any_of(tokens.begin(), tokens.end(),
                  [](const std::string& token) { return token.size() > kLongestToken; })) {
    table.Fail("missing", "must be at most " + std::to_string(kMaxTokens) + " tokens of at most " +
                              std::to_string(kLongestToken) + " bytes");
  }
  if (std::find(tokens.begin(), tokens.end(), "") == tokens.end()) {
    tokens.insert(tokens.begin(), "");
  }
  return tokens;
}

std::optional<std::string> ReadColumnName(TomlTable& table, std::string_view key) {
  std::optional<std::string> name = table.TryString(key);
  if (name && !internal::IsColumnText(*name)) {
    table.Fail(key, "is not the name of a column: 1 to 64 bytes without control characters");
  }
  return name;
}

void ReadFiles(TomlTable& table, std::string_view file, DatasetDescription& description) {
  for (const std::string& name : table.Strings("files")) {
    if (name.empty() || name.find('\0') != std::string::npos) {
      table.Fail("files", "has an empty name");
      return;
    }
    description.files.push_back(ResolveBeside(file, name));
  }
  if (description.files.empty() || description.files.size() > kMaxFiles) {
    table.Fail("files", "must name 1 to " + std::to_string(kMaxFiles) + " tables");
  }
  const std::set<std::string_view> distinct(description.files.begin(), description.files.end());
  if (distinct.size() != description.files.size()) {
    table.Fail("files", "names a file twice; its rows would count twice");
  }
}

void ReadForm(TomlTable& table, DatasetDescription& description) {
  description.delimiter =
      *ReadMark(table, "delimiter", ",;\t|", "`,` `;` `\\t` `|`", description.delimiter);
  description.decimal_mark =
      *ReadMark(table, "decimal_mark", ".,", "`.` `,`", description.decimal_mark);
  description.grouping =
      ReadMark(table, "grouping", ".,' ", "`.` `,` `'` and a blank", std::nullopt);
  // Neither would leave a number readable in one way only.
  if (description.grouping == description.decimal_mark ||
      description.grouping == description.delimiter) {
    table.Fail("grouping", "must differ from the decimal mark and from the delimiter");
  }
  description.missing =
      ReadMissing(table, table.TryStrings("missing").value_or(std::vector<std::string>{}));
}

void ReadRows(TomlTable& table, DatasetDescription& description) {
  description.unique_key = ReadColumnName(table, "unique_key");
  description.group_id = ReadColumnName(table, "group_id");
  if (description.unique_key && description.unique_key == description.group_id) {
    table.Fail("group_id", "is the unique key; a column cannot be both unique and a group");
  }
  const std::string rows = table.TryString("rows_with_missing").value_or("keep");
  if (rows != "keep" && rows != "drop") {
    table.Fail("rows_with_missing", "must be `keep` or `drop`");
  }
  description.rows_with_missing = rows == "drop" ? RowsWithMissing::kDrop : RowsWithMissing::kKeep;
  const std::int64_t every = table.TryInt("test_every", 0, kLargestTestEvery).value_or(0);
  if (every == 1) {
    table.Fail("test_every", "of 1 would hold out every row; use 0 for none, or 2 and more");
  }
  description.test_every = static_cast<std::uint32_t>(every);
}

ColumnDescription ReadColumn(TomlTable table) {
  ColumnDescription column;
  column.name = table.String("name");
  if (!internal::IsColumnText(column.name)) {
    table.Fail("name", "is not the name of a column: 1 to 64 bytes without control characters");
  }
  if (std::optional<std::vector<std::string>> tokens = table.TryStrings("missing")) {
    column.missing = ReadMissing(table, *std::move(tokens));
  }
  column.min = table.TryDouble("min", -kLargestBound, kLargestBound);
  column.max = table.TryDouble("max", -kLargestBound, kLargestBound);
  if (column.min && column.max && *column.min > *column.max) {
    table.Fail("min", "is above `max`");
  }
  return column;
}

}  // namespace

StatusOr<DatasetDescription> ParseDatasetDescription(std::string_view toml, std::string_view file) {
  ASSIGN_OR_RETURN(TomlDocument document, TomlDocument::Parse(toml, file));
  DatasetDescription description;
  TomlTable root = document.Root();
  TomlTable table = root.Table("dataset");
  StatusOr<DatasetAlias> alias = DatasetAlias::Parse(table.String("alias"));
  table.Merge("alias", alias.status());
  if (alias.ok()) {
    description.alias = *std::move(alias);
  }
  description.version = table.String("version");
  if (!IsPrintableAscii(description.version, kLongestVersion)) {
    table.Fail("version", "must be 1 to 64 printable ASCII characters");
  }
  ReadFiles(table, file, description);
  ReadForm(table, description);
  ReadRows(table, description);
  std::set<std::string> names;
  for (TomlTable& column : root.Tables("column")) {
    description.columns.push_back(ReadColumn(column));
    if (!names.insert(description.columns.back().name).second) {
      column.Fail("name", "describes a column twice");
    }
  }
  RETURN_IF_ERROR(document.Finish());
  return description;
}

}  // namespace domicile::contracts

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
constexpr std::size_t kMaxCodes = 1'000;
constexpr std::size_t kLongestRecordedCode = 256;
constexpr std::size_t kLongestQuery = 64 << 10;

constexpr std::pair<std::string_view, DataSource> kSources[] = {
    {"csv", DataSource::kCsv},       {"sqlite", DataSource::kSqlite},
    {"idx", DataSource::kIdx},       {"postgresql", DataSource::kPostgresql},
    {"images", DataSource::kImages}, {"arrays", DataSource::kArrays},
};

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

std::vector<std::string> ReadPaths(TomlTable& table, std::string_view key, std::string_view file,
                                   const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    if (name.empty() || name.find('\0') != std::string::npos) {
      table.Fail(key, "has an empty name");
      return {};
    }
    paths.push_back(ResolveBeside(file, name));
  }
  if (paths.size() > kMaxFiles) {
    table.Fail(key, "must name at most " + std::to_string(kMaxFiles) + " files");
  }
  const std::set<std::string_view> distinct(paths.begin(), paths.end());
  if (distinct.size() != paths.size()) {
    table.Fail(key, "names a file twice; its rows would count twice");
  }
  return paths;
}

void ReadSource(TomlTable& table, DatasetDescription& description) {
  const std::string word = table.TryString("source").value_or("csv");
  const auto* const found = std::find_if(std::begin(kSources), std::end(kSources),
                                         [&word](const auto& one) { return one.first == word; });
  if (found == std::end(kSources)) {
    table.Fail("source", "must be `csv`, `sqlite`, `postgresql`, `idx`, `images` or `arrays`");
    return;
  }
  description.source = found->second;
}

void ReadFiles(TomlTable& table, std::string_view file, DatasetDescription& description) {
  const bool is_images = description.source == DataSource::kImages;
  const bool has_folder = is_images && table.Has("folder");
  const bool may_lack = has_folder && !table.Has("files");
  description.files = may_lack ? std::vector<std::string>()
                               : ReadPaths(table, "files", file, table.Strings("files"));
  if (description.files.empty() && !may_lack) {
    table.Fail("files", "must name 1 to " + std::to_string(kMaxFiles) + " files");
  }
  if (has_folder) {
    description.folder = ResolveBeside(file, table.String("folder"));
  }
  if (is_images) {
    const std::string unreadable = table.TryString("unreadable").value_or("refuse");
    if (unreadable != "refuse" && unreadable != "missing") {
      table.Fail("unreadable", "must be `refuse` or `missing`");
    }
    description.unreadable = unreadable == "missing" ? Unreadable::kMissing : Unreadable::kRefuse;
  }
  if (description.source == DataSource::kIdx) {
    description.labels = ReadPaths(table, "labels", file, table.Strings("labels"));
    if (description.labels.size() != description.files.size()) {
      table.Fail("labels", "must name as many files as `files`: one beside each");
    }
  }
}

void ReadQuery(TomlTable& table, DatasetDescription& description) {
  if (description.source != DataSource::kSqlite && description.source != DataSource::kPostgresql) {
    return;
  }
  if (description.files.size() > 1) {
    table.Fail("files", "must be one file: a query reads one database");
  }
  description.query = table.String("query");
  if (StripWhitespace(description.query).empty() || description.query.size() > kLongestQuery ||
      description.query.find('\0') != std::string::npos) {
    table.Fail("query", "must be one SELECT of at most 64 KiB");
  }
  if (description.source == DataSource::kPostgresql) {
    description.service = table.TryString("service").value_or("");
    if (!description.service.empty() && !IsPrintableAscii(description.service, 64)) {
      table.Fail("service", "must be the name of a service in pg_service.conf");
    }
  }
}

void ReadForm(TomlTable& table, DatasetDescription& description) {
  if (description.source == DataSource::kCsv || description.source == DataSource::kImages) {
    description.delimiter =
        *ReadMark(table, "delimiter", ",;\t|", "`,` `;` `\\t` `|`", description.delimiter);
  }
  description.decimal_mark =
      *ReadMark(table, "decimal_mark", ".,", "`.` `,`", description.decimal_mark);
  description.grouping =
      ReadMark(table, "grouping", ".,' ", "`.` `,` `'` and a blank", std::nullopt);
  // Neither would leave a number readable in one way only.
  if (description.grouping == description.decimal_mark ||
      (description.source == DataSource::kCsv && description.grouping == description.delimiter)) {
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

std::vector<std::pair<std::string, std::string>> ReadCodes(TomlTable codes, TomlTable& column) {
  std::vector<std::pair<std::string, std::string>> read;
  for (const std::string& recorded : codes.Keys()) {
    read.emplace_back(recorded, codes.String(recorded));
    if (recorded.empty() || recorded.size() > kLongestRecordedCode) {
      column.Fail("codes", "has a cell that is empty or longer than " +
                               std::to_string(kLongestRecordedCode) +
                               " bytes; an empty cell is missing and has no code");
    }
    if (!internal::IsColumnText(read.back().second)) {
      column.Fail("codes",
                  "has something that cannot be a code of a job: 1 to 64 bytes without "
                  "control characters, `=` or outer blanks");
    }
  }
  if (read.empty() || read.size() > kMaxCodes) {
    column.Fail("codes", "must be 1 to " + std::to_string(kMaxCodes) + " codes");
  }
  return read;
}

void ReadMeaning(TomlTable& table, ColumnDescription& column) {
  const std::optional<double> scale = table.TryDouble("scale", -kLargestBound, kLargestBound);
  const std::optional<double> offset = table.TryDouble("offset", -kLargestBound, kLargestBound);
  column.scale = scale.value_or(1);
  column.offset = offset.value_or(0);
  if (column.scale == 0) {
    table.Fail("scale", "must not be 0: every number would become the same");
  }
  if (std::optional<TomlTable> codes = table.TryTable("codes")) {
    column.codes = ReadCodes(*std::move(codes), table);
    if (scale || offset) {
      table.Fail("codes", "cannot stand beside `scale` or `offset`; a column has codes or a unit");
    }
  }
}

ColumnDescription ReadColumn(TomlTable table) {
  ColumnDescription column;
  column.name = table.String("name");
  if (!internal::IsColumnText(column.name)) {
    table.Fail("name", "is not the name of a column: 1 to 64 bytes without control characters");
  }
  column.local = ReadColumnName(table, "local").value_or("");
  if (column.local == column.name) {
    column.local.clear();
  }
  if (std::optional<std::vector<std::string>> tokens = table.TryStrings("missing")) {
    column.missing = ReadMissing(table, *std::move(tokens));
  }
  column.min = table.TryDouble("min", -kLargestBound, kLargestBound);
  column.max = table.TryDouble("max", -kLargestBound, kLargestBound);
  if (column.min && column.max && *column.min > *column.max) {
    table.Fail("min", "is above `max`");
  }
  ReadMeaning(table, column);
  return column;
}

void ReadColumns(TomlTable& root, DatasetDescription& description) {
  for (TomlTable& table : root.Tables("column")) {
    ColumnDescription column = ReadColumn(table);
    if (description.FindColumn(column.name) != nullptr) {
      table.Fail("name", "describes a column twice");
    }
    if (description.FindLocalColumn(column.Local()) != nullptr) {
      table.Fail(column.local.empty() ? "name" : "local",
                 "describes a column of the table twice; jobs know it by one name");
    }
    description.columns.push_back(std::move(column));
  }
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
  ReadSource(table, description);
  ReadFiles(table, file, description);
  ReadQuery(table, description);
  ReadForm(table, description);
  ReadRows(table, description);
  ReadColumns(root, description);
  RETURN_IF_ERROR(document.Finish());
  return description;
}

const ColumnDescription* DatasetDescription::FindColumn(std::string_view name) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [name](const auto& column) { return column.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

const ColumnDescription* DatasetDescription::FindLocalColumn(std::string_view local) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [local](const auto& column) { return column.Local() == local; });
  return found == columns.end() ? nullptr : &*found;
}

std::vector<std::string> DataPaths(const DatasetDescription& description) {
  std::vector<std::string> paths = description.files;
  paths.insert(paths.end(), description.labels.begin(), description.labels.end());
  if (description.source == DataSource::kPostgresql) {
    for (const std::string& snapshot : description.files) {
      paths.push_back(SnapshotDigestFile(snapshot));
    }
  }
  if (description.source == DataSource::kImages) {
    std::set<std::string> folders;
    for (const std::string& manifest : description.files) {
      folders.insert(PictureFolder(description, manifest));
    }
    if (description.files.empty()) {
      folders.insert(description.folder);
    }
    paths.insert(paths.end(), folders.begin(), folders.end());
  }
  return paths;
}

std::string PictureFolder(const DatasetDescription& description, std::string_view manifest) {
  if (!description.folder.empty()) {
    return description.folder;
  }
  const std::size_t slash = manifest.rfind('/');
  return slash == std::string_view::npos
             ? "."
             : std::string(manifest.substr(0, slash + (slash == 0 ? 1 : 0)));
}

std::string SnapshotDigestFile(std::string_view snapshot) {
  return std::string(snapshot) + ".sha256";
}

}  // namespace domicile::contracts

#include "base/toml.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <sstream>

#include <toml++/toml.h>

#include "base/file.h"
#include "base/text.h"

namespace domicile {

struct TomlDocument::State {
  std::string file;
  toml::table root;
  // The keys asked for, per table (by address: the parsed tree does not move).
  std::map<const void*, std::set<std::string, std::less<>>> asked;
  Status status;

  void Fail(const toml::source_region& at, std::string_view message) {
    if (status.ok()) {
      status = Error(StatusCode::kInvalidArgument, At(at) + ": " + std::string(message));
    }
  }
  std::string At(const toml::source_region& at) const {
    return file + ":" + std::to_string(at.begin.line) + ":" + std::to_string(at.begin.column);
  }
};

namespace {

constexpr std::size_t kLongestReason = 400;

std::string Inner(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : key.empty() ? path : path + "." + std::string(key);
}

const toml::table* AsTable(const void* table) { return static_cast<const toml::table*>(table); }

// The first key in file order that nobody asked for.
void FindUnknown(const toml::table& table, const std::string& path,
                 const std::map<const void*, std::set<std::string, std::less<>>>& asked,
                 const toml::key*& worst, std::string& where, std::vector<std::string>& known) {
  const auto mine = asked.find(&table);
  for (const auto& [key, node] : table) {
    const bool is_known = mine != asked.end() && mine->second.contains(key.str());
    if (!is_known) {
      if (worst == nullptr || key.source().begin < worst->source().begin) {
        worst = &key;
        where = path;
        known.clear();
        if (mine != asked.end()) {
          known.assign(mine->second.begin(), mine->second.end());
        }
      }
      continue;
    }
    if (const toml::table* inner = node.as_table()) {
      FindUnknown(*inner, Inner(path, key.str()), asked, worst, where, known);
    } else if (const toml::array* items = node.as_array()) {
      for (const toml::node& item : *items) {
        if (const toml::table* element = item.as_table()) {
          FindUnknown(*element, Inner(path, key.str()), asked, worst, where, known);
        }
      }
    }
  }
}

// A key that is there, that nobody asked for yet, and that is spelt almost like the one wanted.
const toml::key* FindMisspelt(const toml::table& table, std::string_view wanted,
                              const std::set<std::string, std::less<>>& asked) {
  for (const auto& [key, node] : table) {
    if (!asked.contains(key.str()) &&
        !NearestSpelling(key.str(), std::span<const std::string_view>(&wanted, 1)).empty()) {
      return &key;
    }
  }
  return nullptr;
}

}  // namespace

TomlDocument::TomlDocument(std::unique_ptr<State> state) : state_(std::move(state)) {}
TomlDocument::TomlDocument(TomlDocument&&) noexcept = default;
TomlDocument& TomlDocument::operator=(TomlDocument&&) noexcept = default;
TomlDocument::~TomlDocument() = default;

StatusOr<TomlDocument> TomlDocument::Parse(std::string_view text, std::string_view file) {
  auto state = std::make_unique<State>();
  state->file = file;
  // The packaged library is built to throw.
  try {
    state->root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return Error(StatusCode::kInvalidArgument,
                 state->At(error.source()) + ": " + Visible(error.description(), kLongestReason));
  }
  return TomlDocument(std::move(state));
}

StatusOr<TomlDocument> TomlDocument::Read(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, std::uint64_t{1} << 20U));
  return Parse(text, path);
}

TomlTable TomlDocument::Root() { return {state_.get(), &state_->root, ""}; }

Status TomlDocument::Finish(std::span<const std::string_view> language) {
  if (!state_->status.ok()) {
    return state_->status;
  }
  const toml::key* unknown = nullptr;
  std::string where;
  std::vector<std::string> known;
  FindUnknown(state_->root, "", state_->asked, unknown, where, known);
  if (unknown != nullptr) {
    const std::string nearest = NearestSpelling(unknown->str(), known);
    std::string message = "unknown key `" + Visible(Inner(where, unknown->str())) + "`";
    const auto elsewhere = std::find_if(
        language.begin(), language.end(),
        [name = "." + std::string(unknown->str())](auto key) { return key.ends_with(name); });
    if (!nearest.empty()) {
      message += " (did you mean `" + Inner(where, nearest) + "`?)";
    } else if (elsewhere != language.end()) {
      message += " (it belongs at `" + std::string(*elsewhere) + "`)";
    } else if (!known.empty()) {
      message += "; keys here are `" + Join(known, "`, `") + "`";
    }
    state_->Fail(unknown->source(), message);
  }
  return state_->status;
}

const void* TomlTable::Take(std::string_view key, bool required) {
  const toml::table* table = AsTable(table_);
  if (table != nullptr) {
    state_->asked[table].emplace(key);
  }
  const toml::node* node = table == nullptr ? nullptr : table->get(key);
  if (node == nullptr && required && table != nullptr) {
    const toml::key* meant = FindMisspelt(*table, key, state_->asked[table]);
    state_->Fail(meant == nullptr ? table->source() : meant->source(),
                 "`" + Inner(path_, key) + "` is missing" +
                     (meant == nullptr ? "" : " (is `" + Visible(meant->str()) + "` meant?)"));
  }
  return node;
}

std::optional<std::string> TomlTable::TryString(std::string_view key) {
  const auto* node = static_cast<const toml::node*>(Take(key, false));
  if (node == nullptr) {
    return std::nullopt;
  }
  if (const auto* value = node->as_string()) {
    return value->get();
  }
  Fail(key, "must be a string, in quotes");
  return std::nullopt;
}

std::string TomlTable::String(std::string_view key) {
  Take(key, true);
  return TryString(key).value_or("");
}

std::optional<std::int64_t> TomlTable::TryInt(std::string_view key, std::int64_t low,
                                              std::int64_t high) {
  const auto* node = static_cast<const toml::node*>(Take(key, false));
  if (node == nullptr) {
    return std::nullopt;
  }
  const auto* value = node->as_integer();
  if (value == nullptr || value->get() < low || value->get() > high) {
    Fail(key, "must be a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return std::nullopt;
  }
  return value->get();
}

std::int64_t TomlTable::Int(std::string_view key, std::int64_t low, std::int64_t high) {
  Take(key, true);
  return TryInt(key, low, high).value_or(low);
}

std::optional<double> TomlTable::TryDouble(std::string_view key, double low, double high) {
  const auto* node = static_cast<const toml::node*>(Take(key, false));
  if (node == nullptr) {
    return std::nullopt;
  }
  const std::optional<double> value = node->value<double>();
  if (!node->is_number() || !value || !std::isfinite(*value) || *value < low || *value > high) {
    Fail(key, std::isfinite(low) && std::isfinite(high)
                  ? "must be a number from " + PrintDouble(low) + " to " + PrintDouble(high)
                  : std::string("must be a finite number in its range"));
    return std::nullopt;
  }
  return value;
}

double TomlTable::Double(std::string_view key, double low, double high) {
  Take(key, true);
  return TryDouble(key, low, high).value_or(low);
}

std::optional<bool> TomlTable::TryBool(std::string_view key) {
  const auto* node = static_cast<const toml::node*>(Take(key, false));
  if (node == nullptr) {
    return std::nullopt;
  }
  if (const auto* value = node->as_boolean()) {
    return value->get();
  }
  Fail(key, "must be true or false");
  return std::nullopt;
}

bool TomlTable::Bool(std::string_view key) {
  Take(key, true);
  return TryBool(key).value_or(false);
}

std::optional<WallTime> TomlTable::TryTime(std::string_view key) {
  const auto* node = static_cast<const toml::node*>(Take(key, false));
  if (node == nullptr) {
    return std::nullopt;
  }
  std::ostringstream text;
  if (const auto* date = node->as_date()) {
    text << date->get() << "T00:00:00Z";
  } else if (const auto* time = node->as_date_time();
             time != nullptr && time->get().offset && time->get().offset->minutes == 0) {
    toml::date_time utc = time->get();
    utc.offset.reset();
    text << utc << "Z";
  } else {
    Fail(key, "must be a date (2026-12-01) or a UTC time (2026-12-01T09:30:00Z)");
    return std::nullopt;
  }
  StatusOr<WallTime> parsed = ParseTime(text.str());
  if (!parsed.ok()) {
    Merge(key, parsed.status());
    return std::nullopt;
  }
  return *parsed;
}

WallTime TomlTable::Time(std::string_view key) {
  Take(key, true);
  return TryTime(key).value_or(WallTime{});
}

std::optional<std::vector<std::string>> TomlTable::TryStrings(std::string_view key) {
  const auto* node = static_cast<const toml::node*>(Take(key, false));
  if (node == nullptr) {
    return std::nullopt;
  }
  std::vector<std::string> texts;
  const toml::array* items = node->as_array();
  if (items == nullptr) {
    Fail(key, "must be a list of strings, such as [\"a\", \"b\"]");
    return std::nullopt;
  }
  for (const toml::node& item : *items) {
    const auto* text = item.as_string();
    if (text == nullptr) {
      Fail(key, "must be a list of strings, such as [\"a\", \"b\"]");
      return std::nullopt;
    }
    texts.push_back(text->get());
  }
  return texts;
}

std::vector<std::string> TomlTable::Strings(std::string_view key) {
  Take(key, true);
  return TryStrings(key).value_or(std::vector<std::string>{});
}

std::optional<std::vector<std::int64_t>> TomlTable::TryInts(std::string_view key, std::int64_t low,
                                                            std::int64_t high) {
  const auto* node = static_cast<const toml::node*>(Take(key, false));
  if (node == nullptr) {
    return std::nullopt;
  }
  const toml::array* items = node->as_array();
  std::vector<std::int64_t> numbers;
  bool fits = items != nullptr;
  for (std::size_t i = 0; fits && i < items->size(); ++i) {
    const auto* number = items->get(i)->as_integer();
    fits = number != nullptr && number->get() >= low && number->get() <= high;
    if (fits) {
      numbers.push_back(number->get());
    }
  }
  if (!fits) {
    Fail(key, "must be a list of whole numbers from " + std::to_string(low) + " to " +
                  std::to_string(high));
    return std::nullopt;
  }
  return numbers;
}

std::vector<std::int64_t> TomlTable::Ints(std::string_view key, std::int64_t low,
                                          std::int64_t high) {
  Take(key, true);
  return TryInts(key, low, high).value_or(std::vector<std::int64_t>{});
}

std::vector<double> TomlTable::Doubles(std::string_view key, double low, double high) {
  const auto* node = static_cast<const toml::node*>(Take(key, true));
  std::vector<double> numbers;
  if (node == nullptr) {
    return numbers;
  }
  const toml::array* items = node->as_array();
  bool fits = items != nullptr;
  for (std::size_t i = 0; fits && i < items->size(); ++i) {
    const toml::node& item = *items->get(i);
    const double number = item.is_number() ? *item.value<double>() : low - 1;
    fits = number >= low && number <= high;
    numbers.push_back(number);
  }
  if (!fits) {
    Fail(key, "must be a list of numbers from " + PrintDouble(low) + " to " + PrintDouble(high));
    numbers.clear();
  }
  return numbers;
}

std::optional<TomlTable> TomlTable::TryTable(std::string_view key) {
  const auto* node = static_cast<const toml::node*>(Take(key, false));
  if (node == nullptr) {
    return std::nullopt;
  }
  const toml::table* table = node->as_table();
  if (table == nullptr) {
    Fail(key, "must be a table");
    return std::nullopt;
  }
  return TomlTable(state_, table, Inner(path_, key));
}

TomlTable TomlTable::Table(std::string_view key) {
  Take(key, true);
  return TryTable(key).value_or(TomlTable(state_, nullptr, Inner(path_, key)));
}

std::vector<TomlTable> TomlTable::Tables(std::string_view key) {
  const auto* node = static_cast<const toml::node*>(Take(key, false));
  std::vector<TomlTable> tables;
  if (node == nullptr) {
    return tables;
  }
  const toml::array* items = node->as_array();
  if (items == nullptr || !std::all_of(items->begin(), items->end(),
                                       [](const toml::node& item) { return item.is_table(); })) {
    Fail(key, "must be an array of tables, written [[" + Inner(path_, key) + "]]");
    return tables;
  }
  for (const toml::node& item : *items) {
    tables.push_back(TomlTable(state_, item.as_table(),
                               Inner(path_, key) + "[" + std::to_string(tables.size()) + "]"));
  }
  return tables;
}

bool TomlTable::Has(std::string_view key) const {
  const toml::table* table = AsTable(table_);
  return table != nullptr && table->contains(key);
}

std::vector<std::string> TomlTable::Keys() const {
  std::vector<const toml::key*> keys;
  if (const toml::table* table = AsTable(table_)) {
    for (const auto& [key, node] : *table) {
      keys.push_back(&key);
    }
  }
  std::sort(keys.begin(), keys.end(), [](const toml::key* a, const toml::key* b) {
    return a->source().begin < b->source().begin;
  });
  std::vector<std::string> texts;
  texts.reserve(keys.size());
  for (const toml::key* key : keys) {
    texts.emplace_back(key->str());
  }
  return texts;
}

std::string TomlTable::Position(std::string_view key) const {
  const toml::table* table = AsTable(table_);
  if (table == nullptr) {
    return state_->file;
  }
  const toml::node* node = key.empty() ? nullptr : table->get(key);
  return state_->At(node == nullptr ? table->source() : node->source());
}

std::uint32_t TomlTable::Line(std::string_view key) const {
  const toml::table* table = AsTable(table_);
  if (table == nullptr) {
    return 0;
  }
  const toml::node* node = key.empty() ? nullptr : table->get(key);
  return node == nullptr ? table->source().begin.line : node->source().begin.line;
}

void TomlTable::Fail(std::string_view key, std::string_view message) {
  const toml::table* table = AsTable(table_);
  if (table == nullptr) {
    return;  // the missing table is the error
  }
  const toml::node* node = table->get(key);
  state_->Fail(node == nullptr ? table->source() : node->source(),
               "`" + Inner(path_, key) + "` " + std::string(message));
}

void TomlTable::FailItem(std::string_view key, std::size_t index, std::string_view message) {
  const toml::table* table = AsTable(table_);
  const toml::node* node = table == nullptr ? nullptr : table->get(key);
  const toml::array* items = node == nullptr ? nullptr : node->as_array();
  const toml::node* item = items == nullptr ? nullptr : items->get(index);
  if (item == nullptr) {
    return Fail(key, message);
  }
  state_->Fail(item->source(), "`" + Inner(path_, key) + "` " + std::string(message));
}

void TomlTable::Merge(std::string_view key, const Status& status) {
  if (!status.ok()) {
    Fail(key, "is wrong: " + std::string(Message(status)));
  }
}

}  // namespace domicile

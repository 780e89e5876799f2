#include "policy/language/toml_codes.h"

namespace domicile::policy {

namespace {

// Of Jurisdiction or Area.
template <typename T>
std::set<T> ParseAll(TomlTable& table, std::string_view key,
                     const std::vector<std::string>& texts) {
  std::set<T> values;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    StatusOr<T> value = T::Parse(texts[i]);
    if (!value.ok()) {
      table.FailItem(key, i, "is wrong: " + std::string(Message(value.status())));
    } else if (!values.insert(*std::move(value)).second) {
      FailRepeated(table, key, i);
    }
  }
  return values;
}

}  // namespace

std::optional<std::set<Jurisdiction>> TryPlaces(TomlTable& table, std::string_view key,
                                                bool required) {
  const std::optional<std::vector<std::string>> texts =
      required ? table.Strings(key) : table.TryStrings(key);
  return texts ? std::optional(ParseAll<Jurisdiction>(table, key, *texts)) : std::nullopt;
}

Jurisdiction ReadPlace(TomlTable& table, std::string_view key) {
  StatusOr<Jurisdiction> place = Jurisdiction::Parse(table.String(key));
  if (place.ok()) {
    return *std::move(place);
  }
  if (table.Has(key)) {
    table.Merge(key, place.status());
  }
  return {};
}

std::optional<std::set<Area>> TryAreas(TomlTable& table, std::string_view key) {
  const std::optional<std::vector<std::string>> texts = table.TryStrings(key);
  return texts ? std::optional(ParseAll<Area>(table, key, *texts)) : std::nullopt;
}

std::optional<Duration> TryDuration(TomlTable& table, std::string_view key) {
  const std::optional<std::string> text = table.TryString(key);
  if (!text) {
    return std::nullopt;
  }
  const StatusOr<Duration> value = ParseDuration(*text);
  table.Merge(key, value.status());
  return value.ok() ? std::optional<Duration>(*value) : std::nullopt;
}

void FailUnknownCode(TomlTable& table, std::string_view key, std::string_view text,
                     const std::vector<std::string_view>& known, std::optional<std::size_t> index) {
  const std::string guess = DidYouMean(text, known);
  std::string message = "has `" + Visible(text, 40) + "`, which is not a code of this key" + guess;
  if (guess.empty()) {
    message += "; known are";
    for (const std::string_view code : known) {
      message += " `" + std::string(code) + "`";
    }
  }
  index ? table.FailItem(key, *index, message) : table.Fail(key, message);
}

void FailRepeated(TomlTable& table, std::string_view key, std::size_t index) {
  table.FailItem(key, index, "has this twice; say it once");
}

}  // namespace domicile::policy

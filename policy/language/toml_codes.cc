#include "policy/language/toml_codes.h"

namespace domicile::policy {

std::optional<std::set<Jurisdiction>> TryPlaces(TomlTable& table, std::string_view key,
                                                bool required) {
  const std::optional<std::vector<std::string>> texts =
      required ? table.Strings(key) : table.TryStrings(key);
  if (!texts) {
    return std::nullopt;
  }
  std::set<Jurisdiction> places;
  for (const std::string& text : *texts) {
    StatusOr<Jurisdiction> place = Jurisdiction::Parse(text);
    if (place.ok()) {
      places.insert(*std::move(place));
    } else {
      table.Merge(key, place.status());
    }
  }
  return places;
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
  if (!texts) {
    return std::nullopt;
  }
  std::set<Area> areas;
  for (const std::string& text : *texts) {
    StatusOr<Area> area = Area::Parse(text);
    if (area.ok()) {
      areas.insert(*std::move(area));
    } else {
      table.Merge(key, area.status());
    }
  }
  return areas;
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
                     const std::vector<std::string_view>& known) {
  const std::string nearest = NearestSpelling(text, known);
  std::string message = "has `" + Visible(text, 40) + "`, which is not a code of this key";
  if (!nearest.empty()) {
    message += " (did you mean `" + nearest + "`?)";
  } else {
    message += "; known are";
    for (const std::string_view code : known) {
      message += " `" + std::string(code) + "`";
    }
  }
  table.Fail(key, message);
}

}  // namespace domicile::policy

// Rules, codes, places and times in statements.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "policy/language/policy.h"

namespace domicile::policy {

Json RuleJson(const Rule& rule);
StatusOr<Rule> RuleFromJson(const Json& json);

WallTime ReadTime(JsonReader& reader, std::string_view key);
// Empty where the key is absent. `life` is kLifeOfDataset where `or_life`.
std::optional<Duration> TryDuration(JsonReader& reader, std::string_view key, bool or_life = false);
std::uint32_t ReadLine(JsonReader& reader);

template <typename E>
Json CodesJson(const std::set<E>& values) {
  JsonArray json;
  for (const E value : values) {
    json.emplace_back(std::string(Code(value)));
  }
  return json;
}

// Of Jurisdiction or Area.
template <typename T>
Json TextsJson(const std::set<T>& values) {
  JsonArray json;
  for (const T& value : values) {
    json.emplace_back(value.text());
  }
  return json;
}

template <typename E>
E ReadCode(JsonReader& reader, std::string_view key) {
  const std::optional<E> value = FromCode<E>(reader.String(key));
  if (!value) {
    reader.Fail(key, "is not a code of this key");
  }
  return value.value_or(E{});
}

template <typename E>
std::set<E> ReadCodes(JsonReader& reader, std::string_view key) {
  std::set<E> values;
  for (const std::string& text : reader.Strings(key)) {
    if (const std::optional<E> value = FromCode<E>(text)) {
      values.insert(*value);
    } else {
      reader.Fail(key, "has a text that is not a code of this key");
    }
  }
  return values;
}

template <typename E>
std::optional<E> TryCode(JsonReader& reader, std::string_view key) {
  return reader.Has(key) ? std::optional<E>(ReadCode<E>(reader, key)) : std::nullopt;
}

template <typename E>
std::optional<std::set<E>> TryCodes(JsonReader& reader, std::string_view key) {
  return reader.Has(key) ? std::optional<std::set<E>>(ReadCodes<E>(reader, key)) : std::nullopt;
}

template <typename T>
std::set<T> ReadTexts(JsonReader& reader, std::string_view key) {
  std::set<T> values;
  for (const std::string& text : reader.Strings(key)) {
    StatusOr<T> value = T::Parse(text);
    if (!value.ok()) {
      // The first is enough: a peer's list of wrong places must not cost a hint for each.
      reader.Merge(value.status());
      break;
    }
    values.insert(*std::move(value));
  }
  return values;
}

template <typename T>
std::optional<std::set<T>> TryTexts(JsonReader& reader, std::string_view key) {
  return reader.Has(key) ? std::optional<std::set<T>>(ReadTexts<T>(reader, key)) : std::nullopt;
}

}  // namespace domicile::policy

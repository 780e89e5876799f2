// Reading places and codes of the vocabulary from TOML, with the nearest spelling in errors.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/toml.h"
#include "policy/language/duration.h"
#include "policy/language/jurisdiction.h"
#include "policy/language/vocabulary.h"

namespace domicile::policy {

// `X` wants the key, `TryX` does not; both note an error at the key for a text that is none.

std::optional<std::set<Jurisdiction>> TryPlaces(TomlTable& table, std::string_view key,
                                                bool required);
Jurisdiction ReadPlace(TomlTable& table, std::string_view key);
std::optional<std::set<Area>> TryAreas(TomlTable& table, std::string_view key);
std::optional<Duration> TryDuration(TomlTable& table, std::string_view key);

// Notes that `text` is not one of `known`: at the key, or at the index-th item of its list.
void FailUnknownCode(TomlTable& table, std::string_view key, std::string_view text,
                     const std::vector<std::string_view>& known,
                     std::optional<std::size_t> index = std::nullopt);
// Notes that the index-th item of a list is in it already.
void FailRepeated(TomlTable& table, std::string_view key, std::size_t index);

template <typename E>
std::optional<E> CodeOrFail(TomlTable& table, std::string_view key, std::string_view text,
                            std::optional<std::size_t> index = std::nullopt) {
  const std::optional<E> value = FromCode<E>(text);
  if (!value) {
    std::vector<std::string_view> known;
    for (const E each : AllOf<E>()) {
      known.push_back(Code(each));
    }
    FailUnknownCode(table, key, text, known, index);
  }
  return value;
}

template <typename E>
std::optional<E> TryCode(TomlTable& table, std::string_view key) {
  const std::optional<std::string> text = table.TryString(key);
  return text ? CodeOrFail<E>(table, key, *text) : std::nullopt;
}

template <typename E>
E ReadCode(TomlTable& table, std::string_view key) {
  const std::string text = table.String(key);
  return table.Has(key) ? CodeOrFail<E>(table, key, text).value_or(E{}) : E{};
}

template <typename E>
std::set<E> CodesOf(TomlTable& table, std::string_view key, const std::vector<std::string>& texts) {
  std::set<E> values;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::optional<E> value = CodeOrFail<E>(table, key, texts[i], i);
    if (value && !values.insert(*value).second) {
      FailRepeated(table, key, i);
    }
  }
  return values;
}

template <typename E>
std::optional<std::set<E>> TryCodes(TomlTable& table, std::string_view key) {
  const auto texts = table.TryStrings(key);
  return texts ? std::optional<std::set<E>>(CodesOf<E>(table, key, *texts)) : std::nullopt;
}

template <typename E>
std::set<E> ReadCodes(TomlTable& table, std::string_view key) {
  return CodesOf<E>(table, key, table.Strings(key));
}

}  // namespace domicile::policy

// One way to read the fields of a job file and of a plan: both have the same keys, types and
// ranges, so the code that knows them is written once, over this interface.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "base/toml.h"

namespace domicile::contracts::internal {

// Fields of a table of a job file. Errors stick to the document.
class TomlFields {
 public:
  explicit TomlFields(TomlTable table) : table_(std::move(table)) {}

  std::string String(std::string_view key) { return table_.String(key); }
  std::int64_t Int(std::string_view key, std::int64_t low, std::int64_t high) {
    return table_.Int(key, low, high);
  }
  std::optional<std::int64_t> TryInt(std::string_view key, std::int64_t low, std::int64_t high) {
    return table_.TryInt(key, low, high);
  }
  std::optional<bool> TryBool(std::string_view key) { return table_.TryBool(key); }
  // Without the sign of zero: one spelling for one value.
  double Double(std::string_view key, double low, double high) {
    return table_.Double(key, low, high) + 0.0;
  }
  std::optional<double> TryDouble(std::string_view key, double low, double high) {
    const std::optional<double> value = table_.TryDouble(key, low, high);
    return value ? std::optional<double>(*value + 0.0) : std::nullopt;
  }
  std::vector<double> Doubles(std::string_view key, double low, double high) {
    std::vector<double> values = table_.Doubles(key, low, high);
    for (double& value : values) {
      value += 0.0;
    }
    return values;
  }
  std::vector<std::string> Strings(std::string_view key) { return table_.Strings(key); }
  std::vector<std::int64_t> Ints(std::string_view key, std::int64_t low, std::int64_t high) {
    return table_.Ints(key, low, high);
  }
  bool Has(std::string_view key) const { return table_.Has(key); }
  void Fail(std::string_view key, std::string_view message) { table_.Fail(key, message); }

 private:
  TomlTable table_;
};

// Fields of an object of a plan: decimals are strings. Errors stick to the reader.
class JsonFields {
 public:
  explicit JsonFields(JsonReader& reader) : reader_(reader) {}

  std::string String(std::string_view key) { return reader_.String(key); }
  std::int64_t Int(std::string_view key, std::int64_t low, std::int64_t high) {
    return reader_.Int(key, low, high);
  }
  std::optional<std::int64_t> TryInt(std::string_view key, std::int64_t low, std::int64_t high) {
    return reader_.TryInt(key, low, high);
  }
  std::optional<bool> TryBool(std::string_view key) {
    return Has(key) ? std::optional<bool>(reader_.Bool(key)) : std::nullopt;
  }
  double Double(std::string_view key, double low, double high) {
    return Within(key, reader_.String(key), low, high);
  }
  std::optional<double> TryDouble(std::string_view key, double low, double high) {
    const std::optional<std::string> text = reader_.TryString(key);
    return text ? std::optional<double>(Within(key, *text, low, high)) : std::nullopt;
  }
  std::vector<double> Doubles(std::string_view key, double low, double high) {
    std::vector<double> values;
    for (const std::string& text : reader_.Strings(key)) {
      values.push_back(Within(key, text, low, high));
    }
    return values;
  }
  std::vector<std::string> Strings(std::string_view key) { return reader_.Strings(key); }
  std::vector<std::int64_t> Ints(std::string_view key, std::int64_t low, std::int64_t high) {
    return reader_.Ints(key, low, high);
  }
  bool Has(std::string_view key) const { return reader_.Has(key); }
  void Fail(std::string_view key, std::string_view message) { reader_.Fail(key, message); }

 private:
  double Within(std::string_view key, std::string_view text, double low, double high) {
    const StatusOr<double> value = ParseDouble(text);
    if (!value.ok() || *value < low || *value > high) {
      reader_.Fail(key, "must be a decimal, as a string, from " + PrintDouble(low) + " to " +
                            PrintDouble(high));
      return low;
    }
    return *value + 0.0;
  }

  JsonReader& reader_;
};

inline constexpr std::string_view kDigestRule = "must be a SHA-256: 64 hexadecimal digits";

// Zero, with an error, for anything but 64 lower-case hexadecimal digits.
template <typename Fields>
Digest ReadDigest(Fields& fields, std::string_view key) {
  const StatusOr<Digest> digest = ParseDigest(fields.String(key));
  if (!digest.ok()) {
    fields.Fail(key, kDigestRule);
    return {};
  }
  return *digest;
}

template <typename Fields>
void RefuseKey(Fields& fields, std::string_view key, std::string_view why) {
  if (fields.Has(key)) {
    fields.Fail(key, why);
  }
}

// A decimal as plans print it. Adding 0.0 turns -0 into 0: one spelling for one value.
inline Json Decimal(double value) { return PrintDouble(value + 0.0); }

inline Json Decimals(const std::vector<double>& values) {
  JsonArray items;
  for (const double value : values) {
    items.push_back(Decimal(value));
  }
  return items;
}

// The enumerator whose word the field holds; 0, with an error that lists the words, for any other.
template <typename Enum, std::size_t N, typename Fields>
Enum ReadWord(Fields& fields, std::string_view key, const std::array<std::string_view, N>& words) {
  const std::string word = fields.String(key);
  std::string list;
  for (std::size_t i = 1; i < N; ++i) {
    if (word == words[i]) {
      return static_cast<Enum>(i);
    }
    list += (i == 1 ? "`" : ", `") + std::string(words[i]) + "`";
  }
  const std::string nearest = NearestSpelling(word, std::span<const std::string_view>(words));
  fields.Fail(key, "must be one of " + list +
                       (nearest.empty() ? "" : " (did you mean `" + nearest + "`?)"));
  return Enum{};
}

}  // namespace domicile::contracts::internal

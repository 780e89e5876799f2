// JSON as this project signs, hashes and stores it: the subset of RFC 8259 without null, fractions
// or exponents, printed by RFC 8785 (JCS). Whole numbers stay within +-(2^53 - 1), so that no
// reader in any language rounds them; larger numbers and all decimals are strings. "Absent" is an
// absent key.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

namespace domicile {

class Json;
using JsonArray = std::vector<Json>;
// Sorted by bytes; printed in RFC 8785 order (UTF-16 code units), which can differ.
using JsonObject = std::map<std::string, Json, std::less<>>;

inline constexpr std::int64_t kLargestJsonInteger = (std::int64_t{1} << 53U) - 1;

// A value. Copies deeply. Immutable unless you hold it by value.
class Json {
 public:
  Json() : value_(JsonObject{}) {}
  // NOLINTBEGIN(google-explicit-constructor): literals in lists and objects; numbers are checked
  Json(bool value) : value_(value) {}
  Json(std::int64_t value);
  Json(int value) : Json(static_cast<std::int64_t>(value)) {}
  Json(std::uint64_t value);
  Json(std::uint32_t value) : Json(static_cast<std::int64_t>(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(JsonArray value) : value_(std::move(value)) {}
  Json(JsonObject value) : value_(std::move(value)) {}
  // NOLINTEND(google-explicit-constructor)

  const bool* TryBool() const { return std::get_if<bool>(&value_); }
  const std::int64_t* TryInt() const { return std::get_if<std::int64_t>(&value_); }
  const std::string* TryString() const { return std::get_if<std::string>(&value_); }
  const JsonArray* TryArray() const { return std::get_if<JsonArray>(&value_); }
  const JsonObject* TryObject() const { return std::get_if<JsonObject>(&value_); }

  // The member of an object; null if this is no object or has no such key.
  const Json* Find(std::string_view key) const;
  // Sets a member; this must be an object.
  void Set(std::string_view key, Json value);
  // Adds to the end; this must be a list.
  void Append(Json item);

  friend bool operator==(const Json&, const Json&) = default;

 private:
  std::variant<bool, std::int64_t, std::string, JsonArray, JsonObject> value_;
};

// Parses one value, nothing after it but white space. Refuses null, fractions, exponents, numbers
// out of range, duplicate keys, invalid UTF-8, unpaired surrogates, zero bytes, a byte order mark,
// more than 64 levels. Errors: kInvalidArgument with the byte offset at which the reader had seen
// what it refuses, never the text itself.
StatusOr<Json> ParseJson(std::string_view text);

// RFC 8785: no white space, keys in order, shortest escapes. ParseJson(PrintJson(x)) == x.
std::string PrintJson(const Json& value);

// Parses a text that must already be in canonical form: any other spelling of the same value is
// refused, so that a digest over the bytes and one over the value agree. Errors: kInvalidArgument.
StatusOr<Json> ParseCanonicalJson(std::string_view text);

// Reads a closed object: each key asked for is expected, any other is an error. Errors stick:
// getters after the first error return empty values, and Finish() says what was wrong.
//
//   JsonReader reader(json, "grant");
//   grant.version = reader.Int("v", 1, 1);
//   grant.plan = reader.String("plan");
//   RETURN_IF_ERROR(reader.Finish());
//
// Borrows the value. One thread at a time.
class JsonReader {
 public:
  // `where` names the object in errors: "grant", "roster.sites[2]".
  JsonReader(const Json& value, std::string where);

  std::string String(std::string_view key);
  std::optional<std::string> TryString(std::string_view key);
  // Within [low, high].
  std::int64_t Int(std::string_view key, std::int64_t low, std::int64_t high);
  std::optional<std::int64_t> TryInt(std::string_view key, std::int64_t low, std::int64_t high);
  bool Bool(std::string_view key);
  std::vector<std::string> Strings(std::string_view key);
  // Each within [low, high].
  std::vector<std::int64_t> Ints(std::string_view key, std::int64_t low, std::int64_t high);
  // Borrowed values, for nested readers; an empty list or an empty object after an error.
  const JsonArray& Array(std::string_view key);
  const Json& Object(std::string_view key);
  const Json* TryObject(std::string_view key);

  bool Has(std::string_view key) const { return value_->Find(key) != nullptr; }
  const std::string& where() const { return where_; }

  // Notes an error about a field that parsed but does not make sense.
  void Fail(std::string_view key, std::string_view message);
  void Merge(const Status& status);  // an error of a nested parse

  // The first error: a missing or mistyped field, one noted by Fail, or an unknown key (with the
  // nearest known spelling). kInvalidArgument.
  Status Finish();

 private:
  const Json* Take(std::string_view key, bool required);

  const Json* value_;
  std::string where_;
  std::vector<std::string> asked_;
  Status status_;
};

}  // namespace domicile

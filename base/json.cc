#include "base/json.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace domicile {

namespace {

constexpr std::size_t kDeepest = 64;

Status BadJson(std::size_t offset, std::string_view what) {
  return Error(StatusCode::kInvalidArgument,
               std::string(what) + " at byte " + std::to_string(offset));
}

// Walks the text and counts: the parser's events say what it read, not where.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* read) : at_(at), read_(read) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*read_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return !(a == b); }

 private:
  const char* at_;
  std::size_t* read_;
};

// Builds our value from the parser's events and refuses what the subset does not have.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  // `read` counts the bytes that the parser has taken so far.
  explicit Builder(const std::size_t& read) : read_(read) {}

  bool null() override { return Refuse("null is not allowed (leave the key out)"); }
  bool boolean(bool value) override { return Add(Json(value)); }
  bool number_integer(number_integer_t value) override {
    return value < -kLargestJsonInteger ? Refuse("a number beyond 2^53 - 1 (use a string)")
                                        : Add(Json(static_cast<std::int64_t>(value)));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return value > static_cast<std::uint64_t>(kLargestJsonInteger)
               ? Refuse("a number beyond 2^53 - 1 (use a string)")
               : Add(Json(static_cast<std::int64_t>(value)));
  }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
    return Refuse("a fraction, an exponent or a number beyond 2^53 - 1 (use a string)");
  }
  bool string(string_t& value) override { return Add(Json(std::move(value))); }
  bool binary(binary_t& /*value*/) override { return Refuse("binary"); }
  bool start_object(std::size_t /*elements*/) override { return Open(Json(JsonObject{})); }
  bool start_array(std::size_t /*elements*/) override { return Open(Json(JsonArray{})); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& value) override {
    if (open_.back().value.Find(value) != nullptr) {
      return Refuse("a duplicate key");
    }
    open_.back().key = std::move(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*why*/) override {
    // The library's text quotes the input; ours never does.
    status_ = BadJson(position, "not valid JSON");
    return false;
  }

  StatusOr<Json> Result() {
    if (!status_.ok()) {
      return status_;
    }
    return std::move(root_);
  }

 private:
  struct Frame {
    Json value;
    std::string key;
  };

  bool Refuse(std::string_view what) {
    status_ = BadJson(read_, what);
    return false;
  }

  bool Open(Json value) {
    if (open_.size() >= kDeepest) {
      return Refuse("more than 64 levels");
    }
    open_.push_back({std::move(value), {}});
    return true;
  }

  bool Close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return Add(std::move(value));
  }

  bool Add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Frame& frame = open_.back(); frame.value.TryObject() != nullptr) {
      frame.value.Set(frame.key, std::move(value));
    } else {
      frame.value.Append(std::move(value));
    }
    return true;
  }

  const std::size_t& read_;
  std::vector<Frame> open_;
  Json root_;
  Status status_;
};

// UTF-16 code units of valid UTF-8, for RFC 8785 section 3.2.3.
std::u16string Utf16(std::string_view text) {
  std::u16string units;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t point = length == 1 ? lead : lead & (0xFFU >> (length + 1));
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k) {
      point = point << 6U | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
    }
    i += length;
    if (point >= 0x10000) {
      point -= 0x10000;
      units += static_cast<char16_t>(0xD800 + (point >> 10U));
      units += static_cast<char16_t>(0xDC00 + (point & 0x3FFU));
    } else {
      units += static_cast<char16_t>(point);
    }
  }
  return units;
}

void PrintString(std::string_view text, std::string& out) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += "\\u00";
          out += kHex[static_cast<unsigned char>(c) >> 4U];
          out += kHex[static_cast<unsigned char>(c) & 15U];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void Print(const Json& value, std::string& out);

void PrintObject(const JsonObject& object, std::string& out) {
  std::vector<const JsonObject::value_type*> members;
  bool ascii = true;
  for (const auto& member : object) {
    members.push_back(&member);
    ascii = ascii && std::all_of(member.first.begin(), member.first.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  }
  if (!ascii) {
    std::sort(members.begin(), members.end(),
              [](const auto* a, const auto* b) { return Utf16(a->first) < Utf16(b->first); });
  }
  out += '{';
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i != 0) {
      out += ',';
    }
    PrintString(members[i]->first, out);
    out += ':';
    Print(members[i]->second, out);
  }
  out += '}';
}

void Print(const Json& value, std::string& out) {
  if (const bool* flag = value.TryBool()) {
    out += *flag ? "true" : "false";
  } else if (const std::int64_t* number = value.TryInt()) {
    out += std::to_string(*number);
  } else if (const std::string* text = value.TryString()) {
    PrintString(*text, out);
  } else if (const JsonArray* items = value.TryArray()) {
    out += '[';
    for (std::size_t i = 0; i < items->size(); ++i) {
      if (i != 0) {
        out += ',';
      }
      Print((*items)[i], out);
    }
    out += ']';
  } else {
    PrintObject(*value.TryObject(), out);
  }
}

const JsonArray& EmptyArray() {
  static const JsonArray empty;
  return empty;
}

const Json& EmptyObject() {
  static const Json empty{JsonObject{}};
  return empty;
}

}  // namespace

Json::Json(std::int64_t value) : value_(value) {
  DOMICILE_CHECK(value >= -kLargestJsonInteger && value <= kLargestJsonInteger);
}

Json::Json(std::uint64_t value) : value_(static_cast<std::int64_t>(value)) {
  DOMICILE_CHECK(value <= static_cast<std::uint64_t>(kLargestJsonInteger));
}

const Json* Json::Find(std::string_view key) const {
  const JsonObject* object = TryObject();
  if (object == nullptr) {
    return nullptr;
  }
  const auto found = object->find(key);
  return found == object->end() ? nullptr : &found->second;
}

void Json::Set(std::string_view key, Json value) {
  auto* object = std::get_if<JsonObject>(&value_);
  DOMICILE_CHECK(object != nullptr);
  object->insert_or_assign(std::string(key), std::move(value));
}

void Json::Append(Json item) {
  auto* items = std::get_if<JsonArray>(&value_);
  DOMICILE_CHECK(items != nullptr);
  items->push_back(std::move(item));
}

StatusOr<Json> ParseJson(std::string_view text) {
  // The library takes a zero byte for the end of the text and skips a byte order mark; neither is
  // JSON.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return BadJson(zero, "a zero byte");
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    return BadJson(0, "a byte order mark");
  }
  std::size_t read = 0;
  Builder builder(read);
  // The library checks UTF-8 and surrogates, and calls parse_error for anything malformed.
  nlohmann::json::sax_parse(CountingIterator(text.data(), &read),
                            CountingIterator(text.data() + text.size(), &read), &builder);
  return builder.Result();
}

std::string PrintJson(const Json& value) {
  std::string out;
  Print(value, out);
  return out;
}

StatusOr<Json> ParseCanonicalJson(std::string_view text) {
  ASSIGN_OR_RETURN(Json value, ParseJson(text));
  if (PrintJson(value) != text) {
    return Error(StatusCode::kInvalidArgument, "not in canonical form (RFC 8785)");
  }
  return value;
}

JsonReader::JsonReader(const Json& value, std::string where)
    : value_(&value), where_(std::move(where)) {
  if (value.TryObject() == nullptr) {
    status_ = Error(StatusCode::kInvalidArgument, "`" + where_ + "` must be an object");
  }
}

const Json* JsonReader::Take(std::string_view key, bool required) {
  asked_.emplace_back(key);
  const Json* found = status_.ok() ? value_->Find(key) : nullptr;
  if (found == nullptr && required) {
    Fail(key, "is missing");
  }
  return found;
}

std::string JsonReader::String(std::string_view key) {
  const Json* found = Take(key, true);
  if (found == nullptr) {
    return {};
  }
  if (const std::string* text = found->TryString()) {
    return *text;
  }
  Fail(key, "must be a string");
  return {};
}

std::optional<std::string> JsonReader::TryString(std::string_view key) {
  if (!Has(key)) {
    Take(key, false);
    return std::nullopt;
  }
  return String(key);
}

std::int64_t JsonReader::Int(std::string_view key, std::int64_t low, std::int64_t high) {
  const Json* found = Take(key, true);
  if (found == nullptr) {
    return low;
  }
  const std::int64_t* number = found->TryInt();
  if (number == nullptr || *number < low || *number > high) {
    Fail(key, "must be a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return low;
  }
  return *number;
}

std::optional<std::int64_t> JsonReader::TryInt(std::string_view key, std::int64_t low,
                                               std::int64_t high) {
  if (!Has(key)) {
    Take(key, false);
    return std::nullopt;
  }
  return Int(key, low, high);
}

bool JsonReader::Bool(std::string_view key) {
  const Json* found = Take(key, true);
  if (found == nullptr) {
    return false;
  }
  if (const bool* flag = found->TryBool()) {
    return *flag;
  }
  Fail(key, "must be true or false");
  return false;
}

std::vector<std::string> JsonReader::Strings(std::string_view key) {
  std::vector<std::string> texts;
  for (const Json& item : Array(key)) {
    const std::string* text = item.TryString();
    if (text == nullptr) {
      Fail(key, "must be a list of strings");
      return {};
    }
    texts.push_back(*text);
  }
  return texts;
}

std::vector<std::int64_t> JsonReader::Ints(std::string_view key, std::int64_t low,
                                           std::int64_t high) {
  std::vector<std::int64_t> numbers;
  for (const Json& item : Array(key)) {
    const std::int64_t* number = item.TryInt();
    if (number == nullptr || *number < low || *number > high) {
      Fail(key, "must be a list of whole numbers from " + std::to_string(low) + " to " +
                    std::to_string(high));
      return {};
    }
    numbers.push_back(*number);
  }
  return numbers;
}

const JsonArray& JsonReader::Array(std::string_view key) {
  const Json* found = Take(key, true);
  if (found == nullptr) {
    return EmptyArray();
  }
  if (const JsonArray* items = found->TryArray()) {
    return *items;
  }
  Fail(key, "must be a list");
  return EmptyArray();
}

const Json& JsonReader::Object(std::string_view key) {
  const Json* found = Take(key, true);
  if (found == nullptr) {
    return EmptyObject();
  }
  if (found->TryObject() == nullptr) {
    Fail(key, "must be an object");
    return EmptyObject();
  }
  return *found;
}

const Json* JsonReader::TryObject(std::string_view key) {
  if (!Has(key)) {
    Take(key, false);
    return nullptr;
  }
  return &Object(key);
}

void JsonReader::Fail(std::string_view key, std::string_view message) {
  if (status_.ok()) {
    status_ = Error(StatusCode::kInvalidArgument,
                    "`" + where_ + "." + std::string(key) + "` " + std::string(message));
  }
}

void JsonReader::Merge(const Status& status) {
  if (status_.ok() && !status.ok()) {
    status_ = Annotate(status, where_);
  }
}

Status JsonReader::Finish() {
  if (!status_.ok()) {
    return status_;
  }
  for (const auto& [key, value] : *value_->TryObject()) {
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) {
      const std::string nearest = NearestSpelling(key, asked_);
      return Error(StatusCode::kInvalidArgument,
                   "`" + where_ + "` has an unknown key `" + Visible(key) + "`" +
                       (nearest.empty() ? "" : " (did you mean `" + nearest + "`?)"));
    }
  }
  return OkStatus();
}

}  // namespace domicile

#include "site_agent/datasets/arrays.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/json.h"

namespace domicile::site_agent {
namespace {

constexpr std::size_t kMaxDimensions = 8;
constexpr std::uint64_t kMaxHeader = 1 << 20;

Status Wrong(std::string_view what) { return Error(StatusCode::kInvalidArgument, what); }

// How many bytes a shape takes; empty beyond the limit.
std::optional<std::uint64_t> SizeOf(ArrayType type, const std::vector<std::uint64_t>& shape) {
  std::uint64_t size = BytesOf(type);
  for (const std::uint64_t length : shape) {
    if (length != 0 && size > kMaxArrayBytes / length) {
      return std::nullopt;
    }
    size *= length;
  }
  return size;
}

// The header of a .npy file: a dictionary as Python writes it, with these keys and no others.
class NpyHeader {
 public:
  explicit NpyHeader(std::string_view text) : rest_(text) {}

  Status Parse(Array& array) {
    RETURN_IF_ERROR(Expect('{'));
    bool has_type = false;
    bool has_order = false;
    bool has_shape = false;
    while (!TryTake('}')) {
      ASSIGN_OR_RETURN(const std::string key, TakeString());
      RETURN_IF_ERROR(Expect(':'));
      bool& has = key == "descr" ? has_type : key == "fortran_order" ? has_order : has_shape;
      if (has || (key != "descr" && key != "fortran_order" && key != "shape")) {
        return Wrong("a header with a key that is not expected, or twice");
      }
      has = true;
      RETURN_IF_ERROR(key == "descr"           ? TakeType(array)
                      : key == "fortran_order" ? TakeOrder()
                                               : TakeShape(array));
      if (!TryTake(',')) {
        RETURN_IF_ERROR(Expect('}'));
        break;
      }
    }
    SkipBlanks();
    if (!rest_.empty() || !has_type || !has_order || !has_shape) {
      return Wrong("a header without `descr`, `fortran_order` and `shape`, or with more after it");
    }
    return OkStatus();
  }

 private:
  void SkipBlanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n\t"), rest_.size()));
  }

  bool TryTake(char c) {
    SkipBlanks();
    const bool is_there = rest_.starts_with(c);
    rest_.remove_prefix(is_there ? 1 : 0);
    return is_there;
  }

  Status Expect(char c) {
    return TryTake(c) ? OkStatus() : Wrong("a header that is not a dictionary of Python's form");
  }

  StatusOr<std::string> TakeString() {
    SkipBlanks();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    const std::size_t end = rest_.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos) {
      return Wrong("a header with something else where a quoted word must be");
    }
    std::string word(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return word;
  }

  Status TakeType(Array& array) {
    ASSIGN_OR_RETURN(const std::string word, TakeString());
    if (word == "|u1" || word == "<u1") {
      array.type = ArrayType::kUint8;
    } else if (word == "<i8") {
      array.type = ArrayType::kInt64;
    } else if (word == "<f4") {
      array.type = ArrayType::kFloat32;
    } else if (word == "<f8") {
      array.type = ArrayType::kFloat64;
    } else {
      return Wrong("numbers of another type than uint8, int64, float32, float64 (little-endian)");
    }
    return OkStatus();
  }

  Status TakeOrder() {
    SkipBlanks();
    if (rest_.starts_with("False")) {
      rest_.remove_prefix(5);
      return OkStatus();
    }
    return Wrong("an array in Fortran's order; store it in C order");
  }

  Status TakeShape(Array& array) {
    RETURN_IF_ERROR(Expect('('));
    while (!TryTake(')')) {
      SkipBlanks();
      std::uint64_t length = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), length);
      if (error != std::errc() || array.shape.size() == kMaxDimensions) {
        return Wrong("a shape that is not 0 to 8 whole numbers");
      }
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      array.shape.push_back(length);
      if (!TryTake(',')) {
        RETURN_IF_ERROR(Expect(')'));
        break;
      }
    }
    return OkStatus();
  }

  std::string_view rest_;
};

std::optional<ArrayType> SafetensorsType(std::string_view word) {
  return word == "U8"    ? std::optional(ArrayType::kUint8)
         : word == "I64" ? std::optional(ArrayType::kInt64)
         : word == "F32" ? std::optional(ArrayType::kFloat32)
         : word == "F64" ? std::optional(ArrayType::kFloat64)
                         : std::nullopt;
}

// One tensor of a header, and where its bytes lie.
struct Described {
  Array array;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

StatusOr<Described> ReadDescribed(const std::string& name, const Json& json) {
  constexpr std::size_t kLongestName = 120;
  Described described;
  described.array.name = name;
  JsonReader reader(json, "tensor");
  const std::optional<ArrayType> type = SafetensorsType(reader.String("dtype"));
  for (const std::int64_t length : reader.Ints("shape", 0, kLargestJsonInteger)) {
    described.array.shape.push_back(static_cast<std::uint64_t>(length));
  }
  const std::vector<std::int64_t> offsets = reader.Ints("data_offsets", 0, kLargestJsonInteger);
  RETURN_IF_ERROR(reader.Finish());
  if (!type) {
    return Wrong("numbers of another type than U8, I64, F32, F64");
  }
  if (name.empty() || name.size() > kLongestName || offsets.size() != 2 ||
      described.array.shape.size() > kMaxDimensions) {
    return Wrong("a tensor without two offsets, of more than 8 dimensions, or with a long name");
  }
  described.array.type = *type;
  described.begin = static_cast<std::uint64_t>(offsets[0]);
  described.end = static_cast<std::uint64_t>(offsets[1]);
  if (described.begin > described.end ||
      SizeOf(*type, described.array.shape) != described.end - described.begin) {
    return Wrong("a tensor with another number of bytes than its shape says");
  }
  return described;
}

}  // namespace

std::size_t BytesOf(ArrayType type) {
  switch (type) {
    case ArrayType::kUint8:
      return 1;
    case ArrayType::kFloat32:
      return 4;
    case ArrayType::kInt64:
    case ArrayType::kFloat64:
      return 8;
  }
  return 1;
}

StatusOr<Array> ParseNpy(Bytes file, std::string name) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  const ByteSpan bytes(file);
  if (bytes.size() < 12 || !AsText(bytes).starts_with(kMagic)) {
    return Wrong("not a .npy file");
  }
  const std::uint8_t version = bytes[6];
  if (version < 1 || version > 3 || bytes[7] != 0) {
    return Wrong("a .npy header of a version that is not 1 to 3");
  }
  const std::size_t start = version == 1 ? 10 : 12;
  const std::uint64_t length = version == 1 ? bytes[8] | (std::uint64_t{bytes[9]} << 8U)
                                            : std::uint64_t{ReadU32(bytes.subspan(8))};
  if (length > kMaxHeader || length > bytes.size() - start) {
    return Wrong("a .npy file that ends in its header, or with one of more than 1 MiB");
  }
  Array array;
  array.name = std::move(name);
  RETURN_IF_ERROR(NpyHeader(AsText(bytes.subspan(start, length))).Parse(array));
  const std::uint64_t header = start + length;
  if (SizeOf(array.type, array.shape) != bytes.size() - header) {
    return Wrong("a .npy file with another number of bytes than its header says");
  }
  file.erase(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(header));
  array.values = std::move(file);
  return array;
}

StatusOr<std::vector<Array>> ParseSafetensorsArrays(ByteSpan file) {
  if (file.size() < 8) {
    return Wrong("not a safetensors file: it has no header");
  }
  const std::uint64_t length = ReadU64(file);
  if (length > kMaxHeader || length > file.size() - 8) {
    return Wrong("a safetensors file that ends in its header, or with one of more than 1 MiB");
  }
  ASSIGN_OR_RETURN(const Json header, ParseJson(AsText(file.subspan(8, length))));
  if (header.TryObject() == nullptr) {
    return Wrong("a safetensors header that is not an object");
  }
  const ByteSpan data = file.subspan(8 + length);
  std::vector<Described> found;
  for (const auto& [name, json] : *header.TryObject()) {
    if (name == "__metadata__") {
      continue;
    }
    StatusOr<Described> described = ReadDescribed(name, json);
    RETURN_IF_ERROR(Annotate(described.status(), "tensor `" + name + "`"));
    found.push_back(*std::move(described));
  }
  std::sort(found.begin(), found.end(), [](const Described& a, const Described& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::vector<Array> arrays;
  std::uint64_t at = 0;
  for (Described& one : found) {
    if (one.begin != at || one.end > data.size()) {
      return Wrong("tensor `" + one.array.name +
                   "`: its bytes overlap, leave a hole or are not there");
    }
    const ByteSpan bytes = data.subspan(one.begin, one.end - one.begin);
    one.array.values.assign(bytes.begin(), bytes.end());
    arrays.push_back(std::move(one.array));
    at = one.end;
  }
  if (at != data.size()) {
    return Wrong("a safetensors file with bytes that belong to no tensor");
  }
  return arrays;
}

}  // namespace domicile::site_agent

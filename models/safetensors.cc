#include "models/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/json.h"

namespace domicile::models {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data is copied as it lies");

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxNameBytes = 120;
constexpr std::size_t kMaxRank = 8;
constexpr std::size_t kMaxFormatBytes = 16;
constexpr std::string_view kMetadata = "__metadata__";

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), IsNameCharacter);
}

std::size_t ElementBytes(DataType type) { return type == DataType::kFloat32 ? 4 : 8; }

Status Refuse(std::string_view what) {
  return Error(StatusCode::kInvalidArgument, "safetensors: " + std::string(what));
}

// The product of a shape, or empty if it is beyond `limit`.
std::optional<std::uint64_t> Elements(const std::vector<std::uint64_t>& shape,
                                      std::uint64_t limit) {
  std::uint64_t elements = 1;
  for (const std::uint64_t size : shape) {
    if (size == 0 || elements > limit / size) {
      return std::nullopt;
    }
    elements *= size;
  }
  return elements;
}

struct Entry {
  NamedTensor tensor;
  std::uint64_t begin = 0;  // bytes, from the start of the data
  std::uint64_t end = 0;
};

// A list of whole numbers that are not negative.
StatusOr<std::vector<std::uint64_t>> Numbers(const JsonArray& list, std::string_view where) {
  std::vector<std::uint64_t> numbers;
  for (const Json& item : list) {
    const std::int64_t* const number = item.TryInt();
    if (number == nullptr || *number < 0) {
      return Refuse(std::string(where) + " must be a list of whole numbers");
    }
    numbers.push_back(static_cast<std::uint64_t>(*number));
  }
  return numbers;
}

StatusOr<Entry> ParseEntry(const std::string& name, const Json& json, std::uint64_t data_bytes) {
  if (!IsName(name)) {
    return Refuse("a tensor name is not 1 to 120 characters of a-z, 0-9, `_` and `.`");
  }
  const std::string where = "tensor `" + name + "`";
  JsonReader reader(json, where);
  const std::string dtype = reader.String("dtype");
  const auto shape = Numbers(reader.Array("shape"), where + ": `shape`");
  const auto offsets = Numbers(reader.Array("data_offsets"), where + ": `data_offsets`");
  RETURN_IF_ERROR(Annotate(reader.Finish(), "safetensors"));
  RETURN_IF_ERROR(shape.status());
  RETURN_IF_ERROR(offsets.status());

  Entry entry;
  entry.tensor.name = name;
  entry.tensor.shape = *shape;
  if (dtype == "F32") {
    entry.tensor.type = DataType::kFloat32;
  } else if (dtype == "I64") {
    entry.tensor.type = DataType::kInt64;
  } else {
    return Refuse(where + ": `dtype` must be F32 or I64");
  }
  if (shape->size() > kMaxRank) {
    return Refuse(where + ": more than 8 dimensions");
  }
  if (offsets->size() != 2 || (*offsets)[0] > (*offsets)[1] || (*offsets)[1] > data_bytes) {
    return Refuse(where + ": `data_offsets` lie outside the data");
  }
  entry.begin = (*offsets)[0];
  entry.end = (*offsets)[1];
  const std::uint64_t size = ElementBytes(entry.tensor.type);
  const auto elements = Elements(*shape, data_bytes / size);
  if (!elements || *elements * size != entry.end - entry.begin) {
    return Refuse(where + ": `shape` and `data_offsets` disagree");
  }
  return entry;
}

Status CheckMetadata(const Json& json) {
  JsonReader reader(json, "safetensors: metadata");
  const std::optional<std::string> format = reader.TryString("format");
  RETURN_IF_ERROR(reader.Finish());
  if (format && (format->size() > kMaxFormatBytes || !IsName(*format))) {
    return Refuse("metadata `format` is not a short name");
  }
  return OkStatus();
}

template <typename T>
void CopyElements(ByteSpan data, std::vector<T>& out) {
  out.resize(data.size() / sizeof(T));
  std::memcpy(out.data(), data.data(), data.size());
}

template <typename T>
void AppendElements(const std::vector<T>& values, Bytes& out) {
  const std::size_t at = out.size();
  out.resize(at + values.size() * sizeof(T));
  if (!values.empty()) {
    std::memcpy(out.data() + at, values.data(), values.size() * sizeof(T));
  }
}

StatusOr<std::vector<Entry>> ParseEntries(const Json& header, std::uint64_t data_bytes,
                                          const SafetensorsLimits& limits) {
  const JsonObject* const members = header.TryObject();
  if (members == nullptr) {
    return Refuse("the header is not a JSON object");
  }
  if (members->size() > limits.max_tensors) {
    return Refuse("too many tensors");
  }
  std::vector<Entry> entries;
  for (const auto& [name, json] : *members) {
    if (name == kMetadata) {
      RETURN_IF_ERROR(CheckMetadata(json));
      continue;
    }
    ASSIGN_OR_RETURN(Entry entry, ParseEntry(name, json, data_bytes));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
  std::uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != end) {
      return Refuse("tensor `" + entry.tensor.name + "` overlaps another or leaves a hole");
    }
    end = entry.end;
  }
  if (end != data_bytes) {
    return Refuse("data after the last tensor");
  }
  return entries;
}

}  // namespace

StatusOr<std::vector<NamedTensor>> ParseSafetensors(ByteSpan file,
                                                    const SafetensorsLimits& limits) {
  if (file.size() < kLengthBytes) {
    return Refuse("shorter than its length field");
  }
  const std::uint64_t header_bytes = ReadU64(file);
  if (header_bytes > limits.max_header_bytes || header_bytes > file.size() - kLengthBytes) {
    return Refuse("the header is longer than allowed or than the file");
  }
  const std::string_view text = AsText(file.subspan(kLengthBytes, header_bytes));
  const ByteSpan data = file.subspan(kLengthBytes + header_bytes);
  if (data.size() > limits.max_data_bytes) {
    return Refuse("more data than allowed");
  }
  if (text.empty() || text.front() != '{') {
    return Refuse("the header does not begin with `{`");
  }
  const StatusOr<Json> header = ParseJson(text);
  RETURN_IF_ERROR(Annotate(header.status(), "safetensors header"));
  ASSIGN_OR_RETURN(std::vector<Entry> entries, ParseEntries(*header, data.size(), limits));

  std::vector<NamedTensor> tensors;
  tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    const ByteSpan bytes = data.subspan(entry.begin, entry.end - entry.begin);
    if (entry.tensor.type == DataType::kFloat32) {
      CopyElements(bytes, entry.tensor.values);
    } else {
      CopyElements(bytes, entry.tensor.integers);
    }
    tensors.push_back(std::move(entry.tensor));
  }
  return tensors;
}

Bytes PrintSafetensors(std::span<const NamedTensor> tensors) {
  std::string header = "{";
  std::uint64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const bool is_float = tensor.type == DataType::kFloat32;
    const std::uint64_t count = is_float ? tensor.values.size() : tensor.integers.size();
    DOMICILE_CHECK(IsName(tensor.name) && FindTensor(tensors, tensor.name) == &tensor);
    DOMICILE_CHECK(Elements(tensor.shape, std::numeric_limits<std::uint64_t>::max()) == count);
    std::string shape;
    for (const std::uint64_t size : tensor.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    }
    const std::uint64_t end = offset + count * ElementBytes(tensor.type);
    header += (offset == 0 && header.size() == 1 ? "\"" : ",\"") + tensor.name + R"(":{"dtype":")" +
              (is_float ? "F32" : "I64") + R"(","shape":[)" + shape + R"(],"data_offsets":[)" +
              std::to_string(offset) + "," + std::to_string(end) + "]}";
    offset = end;
  }
  header += "}";
  // Padded so that the data begins at a multiple of 8.
  header.resize((header.size() + 7) / 8 * 8, ' ');

  Bytes out;
  out.reserve(kLengthBytes + header.size() + offset);
  AppendU64(out, header.size());
  out.insert(out.end(), header.begin(), header.end());
  for (const NamedTensor& tensor : tensors) {
    AppendElements(tensor.values, out);
    AppendElements(tensor.integers, out);
  }
  return out;
}

const NamedTensor* FindTensor(std::span<const NamedTensor> tensors, std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [name](const NamedTensor& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Status CheckFinite(std::span<const NamedTensor> tensors) {
  for (const NamedTensor& tensor : tensors) {
    const auto bad = std::find_if(tensor.values.begin(), tensor.values.end(),
                                  [](float value) { return !std::isfinite(value); });
    if (bad != tensor.values.end()) {
      return Error(StatusCode::kInvalidArgument, "tensor `" + tensor.name +
                                                     "` is not finite at index " +
                                                     std::to_string(bad - tensor.values.begin()));
    }
  }
  return OkStatus();
}

}  // namespace domicile::models

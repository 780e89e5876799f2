#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "site_agent/datasets/arrays.h"
#include "site_agent/datasets/internal/codecs.h"
#include "site_agent/datasets/internal/number_text.h"
#include "site_agent/datasets/internal/sources.h"

namespace domicile::site_agent::internal {
namespace {

constexpr std::uint64_t kMaxColumnsOfOne = 10'000;

Status Wrong(const std::string& what) { return Error(StatusCode::kInvalidArgument, what); }

// An array as columns of the table: its numbers, or its pictures.
struct Columns {
  Array array;
  std::uint64_t width = 1;         // columns
  std::optional<Picture> picture;  // of one row, without its pixels
};

StatusOr<Columns> ToColumns(Array array) {
  Columns columns;
  const std::vector<std::uint64_t>& shape = array.shape;
  if (shape.size() == 2) {
    columns.width = shape[1];
    if (columns.width == 0 || columns.width > kMaxColumnsOfOne) {
      return Wrong("a matrix must have 1 to " + std::to_string(kMaxColumnsOfOne) + " columns");
    }
  } else if (shape.size() == 3 || shape.size() == 4) {
    const bool has_channels = shape.size() == 4;
    const std::uint64_t channels = has_channels ? shape[1] : 1;
    const std::uint64_t height = shape[shape.size() - 2];
    const std::uint64_t width = shape.back();
    if (array.type != ArrayType::kUint8 || channels == 0 || channels > 4) {
      return Wrong(
          "pictures must be numbers of 8 bits, [rows, height, width] or [rows, 1 to 4 "
          "channels, height, width]");
    }
    RETURN_IF_ERROR(CheckPictureSize(height, width, {}));
    columns.picture = {static_cast<std::uint32_t>(channels),
                       static_cast<std::uint32_t>(height),
                       static_cast<std::uint32_t>(width),
                       {}};
  } else if (shape.size() != 1) {
    return Wrong("an array of " + std::to_string(shape.size()) +
                 " dimensions is no column; 1 to 4 can be");
  }
  columns.array = std::move(array);
  return columns;
}

void AppendNames(const Columns& columns, std::vector<std::string>& names) {
  if (columns.array.shape.size() != 2) {
    names.push_back(columns.array.name);
    return;
  }
  for (std::uint64_t i = 0; i < columns.width; ++i) {
    names.push_back(columns.array.name + "." + std::to_string(i));
  }
}

template <typename T>
T ValueAt(const Array& array, std::size_t index) {
  T value;
  std::memcpy(&value, array.values.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Empty for infinity; a cell of NaN is empty, which is missing.
std::optional<std::string> CellAt(const Array& array, std::size_t index, char decimal_mark) {
  double value = 0;
  switch (array.type) {
    case ArrayType::kUint8:
      return std::to_string(array.values[index]);
    case ArrayType::kInt64:
      return std::to_string(ValueAt<std::int64_t>(array, index));
    case ArrayType::kFloat32:
      value = ValueAt<float>(array, index);
      break;
    case ArrayType::kFloat64:
      value = ValueAt<double>(array, index);
      break;
  }
  return std::isnan(value) ? std::optional(std::string()) : NumberCell(value, decimal_mark);
}

std::string PictureAt(const Columns& columns, std::size_t row) {
  Picture picture = *columns.picture;
  const std::size_t plane = std::size_t{picture.height} * picture.width;
  const std::uint8_t* const first = columns.array.values.data() + row * plane * picture.channels;
  picture.pixels.resize(plane * picture.channels);
  for (std::size_t channel = 0; channel < picture.channels; ++channel) {
    for (std::size_t i = 0; i < plane; ++i) {
      picture.pixels[i * picture.channels + channel] = first[channel * plane + i];
    }
  }
  return PrintPicture(picture);
}

void WriteRow(const std::vector<Columns>& all, std::size_t row, const std::string& place,
              char decimal_mark, RecordWriter& out) {
  for (const Columns& columns : all) {
    if (columns.picture) {
      out.AddCell(PictureAt(columns, row));
      continue;
    }
    for (std::size_t i = 0; i < columns.width; ++i) {
      const std::optional<std::string> cell =
          CellAt(columns.array, row * columns.width + i, decimal_mark);
      if (!cell) {
        out.NoteFault(place + ": array `" + Visible(columns.array.name) + "`: an infinite number");
      }
      out.AddCell(cell.value_or(""));
    }
  }
}

StatusOr<std::vector<Array>> ParseFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string file, ReadFile(path, kMaxArrayBytes));
  return file.starts_with("PK") ? ParseNpz(AsBytes(file)) : ParseSafetensorsArrays(AsBytes(file));
}

Status ReadArrayFile(const std::string& path, char decimal_mark, RecordWriter& out) {
  StatusOr<std::vector<Array>> arrays = ParseFile(path);
  RETURN_IF_ERROR(Annotate(arrays.status(), path));
  if (arrays->empty()) {
    return Wrong(path + ": has no arrays");
  }
  std::vector<Columns> all;
  std::vector<std::string> names;
  for (Array& array : *arrays) {
    const std::string place = path + ": array `" + Visible(array.name) + "`";
    StatusOr<Columns> columns = ToColumns(std::move(array));
    RETURN_IF_ERROR(Annotate(columns.status(), place));
    if (!all.empty() && columns->array.shape[0] != all.front().array.shape[0]) {
      return Wrong(place + ": has " + std::to_string(columns->array.shape[0]) + " rows, but `" +
                   Visible(all.front().array.name) + "` has " +
                   std::to_string(all.front().array.shape[0]));
    }
    AppendNames(*columns, names);
    all.push_back(*std::move(columns));
  }
  RETURN_IF_ERROR(out.SetColumns(path, names));
  out.BeginFile(path, " row ");
  for (std::size_t row = 0; row < all.front().array.shape[0]; ++row) {
    out.BeginRecord(row + 1);
    WriteRow(all, row, path + " row " + std::to_string(row + 1), decimal_mark, out);
  }
  return OkStatus();
}

}  // namespace

Status ReadArrays(const contracts::DatasetDescription& description, RecordWriter& out) {
  for (const std::string& path : description.files) {
    RETURN_IF_ERROR(ReadArrayFile(path, description.decimal_mark, out));
  }
  return OkStatus();
}

}  // namespace domicile::site_agent::internal

#include "site_agent/datasets/idx.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <zlib.h>

#include "base/file.h"
#include "site_agent/datasets/internal/codecs.h"
#include "site_agent/datasets/internal/sources.h"
#include "site_agent/datasets/picture.h"

namespace domicile::site_agent {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 30U;
constexpr std::size_t kGzipStep = 1 << 20;

Status Wrong(std::string_view what) { return Error(StatusCode::kInvalidArgument, what); }

std::uint32_t BigU32(ByteSpan at) {
  return (std::uint32_t{at[0]} << 24U) | (std::uint32_t{at[1]} << 16U) |
         (std::uint32_t{at[2]} << 8U) | at[3];
}

// Owns what zlib needs to inflate. One thread at a time.
class Inflater {
 public:
  Inflater() : is_open_(inflateInit2(&stream_, 15 + 16) == Z_OK) {}
  ~Inflater() {
    if (is_open_) {
      inflateEnd(&stream_);
    }
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  StatusOr<Bytes> Run(ByteSpan file, std::uint64_t max_bytes);

 private:
  z_stream stream_{};
  bool is_open_;
};

StatusOr<Bytes> Inflater::Run(ByteSpan file, std::uint64_t max_bytes) {
  if (!is_open_) {
    return Error(StatusCode::kResourceExhausted, "no memory to read a gzip file");
  }
  Bytes out;
  while (true) {
    // zlib counts in 32 bits; more than this at once is not asked of it.
    const std::size_t given = std::min(file.size(), kGzipStep);
    const std::size_t before = out.size();
    out.resize(before + kGzipStep);
    stream_.next_in = const_cast<Bytef*>(file.data());  // zlib does not write there
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = out.data() + before;
    stream_.avail_out = static_cast<uInt>(kGzipStep);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    file = file.subspan(given - stream_.avail_in);
    out.resize(out.size() - stream_.avail_out);
    if (out.size() > max_bytes) {
      return Wrong("more than " + std::to_string(max_bytes) + " bytes when unpacked");
    }
    if (result == Z_STREAM_END) {
      if (file.empty()) {
        return out;
      }
      if (inflateReset(&stream_) != Z_OK) {
        return Wrong("a damaged gzip file");
      }
    } else if (result != Z_OK) {
      return Wrong(result == Z_BUF_ERROR ? "a gzip file that ends early" : "a damaged gzip file");
    }
  }
}

StatusOr<IdxArray> ReadIdxFile(const std::string& path, std::size_t dimensions) {
  ASSIGN_OR_RETURN(std::string file, ReadFile(path, kMaxBytes));
  StatusOr<Bytes> bytes = Gunzip(AsBytes(file), kMaxBytes);
  RETURN_IF_ERROR(Annotate(bytes.status(), path));
  file = {};  // both copies of a large file need not be held
  StatusOr<IdxArray> array = ParseIdx(*std::move(bytes));
  RETURN_IF_ERROR(Annotate(array.status(), path));
  if (array->shape.size() != dimensions) {
    return Wrong(path + ": has " + std::to_string(array->shape.size()) + " dimensions, not " +
                 std::to_string(dimensions) +
                 (dimensions == 3 ? ": pictures are `idx3`" : ": labels are `idx1`"));
  }
  return array;
}

}  // namespace

StatusOr<IdxArray> ParseIdx(Bytes file) {
  constexpr std::uint8_t kUnsignedBytes = 0x08;
  constexpr std::size_t kMaxDimensions = 4;
  const ByteSpan bytes(file);
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0) {
    return Wrong("not an IDX file: the first two bytes are not 0");
  }
  const std::size_t dimensions = bytes[3];
  if (bytes[2] != kUnsignedBytes || dimensions == 0 || dimensions > kMaxDimensions) {
    return Wrong("an IDX file of another type than unsigned bytes, or not of 1 to 4 dimensions");
  }
  const std::size_t header = 4 + 4 * dimensions;
  if (bytes.size() < header) {
    return Wrong("an IDX file that ends in its header");
  }
  IdxArray array;
  const std::uint64_t num_values = bytes.size() - header;
  std::uint64_t product = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    array.shape.push_back(BigU32(bytes.subspan(4 + 4 * i)));
    // Bounded before the next factor, so that it cannot overflow; 0 stays 0.
    product = product > num_values ? product : product * array.shape.back();
  }
  if (product != num_values) {
    return Wrong("an IDX file with another number of bytes than its header says");
  }
  file.erase(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(header));
  array.values = std::move(file);
  return array;
}

StatusOr<Bytes> Gunzip(ByteSpan file, std::uint64_t max_bytes) {
  if (file.size() < 2 || file[0] != 0x1F || file[1] != 0x8B) {
    return Bytes(file.begin(), file.end());
  }
  return Inflater().Run(file, max_bytes);
}

namespace internal {

Status ReadIdx(const contracts::DatasetDescription& description, RecordWriter& out) {
  for (std::size_t i = 0; i < description.files.size(); ++i) {
    const std::string& file = description.files[i];
    ASSIGN_OR_RETURN(const IdxArray images, ReadIdxFile(file, 3));
    ASSIGN_OR_RETURN(const IdxArray labels, ReadIdxFile(description.labels[i], 1));
    const std::uint32_t count = images.shape[0];
    if (labels.shape[0] != count) {
      return Wrong(file + ": " + std::to_string(count) + " pictures, but " +
                   std::to_string(labels.shape[0]) + " labels in " + description.labels[i]);
    }
    RETURN_IF_ERROR(CheckPictureSize(images.shape[1], images.shape[2], {}));
    RETURN_IF_ERROR(out.SetColumns(file, std::vector<std::string>{"image", "label"}));
    out.BeginFile(file, " picture ");
    const std::size_t size = std::size_t{images.shape[1]} * images.shape[2];
    Picture picture = {1, images.shape[1], images.shape[2], {}};
    for (std::size_t row = 0; row < count; ++row) {
      const auto first = images.values.begin() + static_cast<std::ptrdiff_t>(row * size);
      picture.pixels.assign(first, first + static_cast<std::ptrdiff_t>(size));
      out.BeginRecord(row + 1);
      out.AddCell(PrintPicture(picture));
      out.AddCell(std::to_string(labels.values[row]));
    }
  }
  return OkStatus();
}

}  // namespace internal

}  // namespace domicile::site_agent

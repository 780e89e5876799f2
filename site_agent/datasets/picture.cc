#include "site_agent/datasets/picture.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "site_agent/datasets/internal/codecs.h"

namespace domicile::site_agent {
namespace {

constexpr std::string_view kPixelsMark = "domicile picture 1\n";
constexpr std::size_t kPixelsHeader = kPixelsMark.size() + 12;
constexpr std::uint32_t kMaxChannels = 4;

Status Wrong(std::string_view what) { return Error(StatusCode::kInvalidArgument, what); }

StatusOr<Picture> ParsePixels(ByteSpan cell, const PictureLimits& limits) {
  if (cell.size() < kPixelsHeader) {
    return Wrong("the picture ends in its header");
  }
  const ByteSpan header = cell.subspan(kPixelsMark.size());
  Picture picture = {ReadU32(header), ReadU32(header.subspan(4)), ReadU32(header.subspan(8)), {}};
  if (picture.channels == 0 || picture.channels > kMaxChannels) {
    return Wrong("a picture has 1 to 4 channels");
  }
  RETURN_IF_ERROR(internal::CheckPictureSize(picture.height, picture.width, limits));
  const ByteSpan pixels = cell.subspan(kPixelsHeader);
  if (pixels.size() != std::uint64_t{picture.channels} * picture.height * picture.width) {
    return Wrong("the picture has not as many bytes as its header says");
  }
  picture.pixels.assign(pixels.begin(), pixels.end());
  return picture;
}

// What one pixel of the result takes of an axis: neighbours from `first` on, by whole weights that
// add up to the axis' total.
struct Share {
  std::size_t first = 0;
  std::vector<std::uint64_t> weights;
};

struct Axis {
  std::uint64_t total = 0;
  std::vector<Share> shares;
};

// Lengths in units of 1/to of an old pixel, so that everything is whole: new pixel i covers
// [i * from, (i + 1) * from), old pixel j [j * to, (j + 1) * to).
Axis ShrinkAxis(std::uint64_t from, std::uint64_t to) {
  Axis axis = {from, {}};
  for (std::uint64_t i = 0; i < to; ++i) {
    const std::uint64_t begin = i * from;
    const std::uint64_t end = begin + from;
    Share share = {static_cast<std::size_t>(begin / to), {}};
    for (std::uint64_t j = share.first; j * to < end; ++j) {
      share.weights.push_back(std::min((j + 1) * to, end) - std::max(j * to, begin));
    }
    axis.shares.push_back(std::move(share));
  }
  return axis;
}

// Centres in units of 1/(2 * to) of an old pixel: new pixel i lies at (2i + 1) * from, old pixel j
// at (2j + 1) * to. Outside the outermost centres, the outermost pixel.
Axis GrowAxis(std::uint64_t from, std::uint64_t to) {
  Axis axis = {2 * to, {}};
  for (std::uint64_t i = 0; i < to; ++i) {
    const std::uint64_t at = (2 * i + 1) * from;
    if (at <= to) {
      axis.shares.push_back({0, {2 * to}});
    } else if (at >= (2 * from - 1) * to) {
      axis.shares.push_back({static_cast<std::size_t>(from - 1), {2 * to}});
    } else {
      const std::uint64_t second = (at - to) % (2 * to);
      axis.shares.push_back(
          {static_cast<std::size_t>((at - to) / (2 * to)), {2 * to - second, second}});
      if (second == 0) {
        axis.shares.back().weights.pop_back();
      }
    }
  }
  return axis;
}

Axis MakeAxis(std::uint64_t from, std::uint64_t to) {
  return to <= from ? ShrinkAxis(from, to) : GrowAxis(from, to);
}

// One channel, interleaved with the others, to a plane.
void FitChannel(const Picture& picture, std::size_t channel, const Axis& rows, const Axis& columns,
                std::vector<std::uint8_t>& out) {
  const std::size_t width = columns.shares.size();
  std::vector<std::uint64_t> narrow(picture.height * width);  // rows fitted, not divided yet
  for (std::size_t y = 0; y < picture.height; ++y) {
    const std::uint8_t* const line =
        picture.pixels.data() + y * picture.width * picture.channels + channel;
    for (std::size_t x = 0; x < width; ++x) {
      const Share& share = columns.shares[x];
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < share.weights.size(); ++i) {
        sum += share.weights[i] * line[(share.first + i) * picture.channels];
      }
      narrow[y * width + x] = sum;
    }
  }
  const std::uint64_t total = rows.total * columns.total;
  for (const Share& share : rows.shares) {
    for (std::size_t x = 0; x < width; ++x) {
      std::uint64_t sum = total / 2;
      for (std::size_t i = 0; i < share.weights.size(); ++i) {
        sum += share.weights[i] * narrow[(share.first + i) * width + x];
      }
      out.push_back(static_cast<std::uint8_t>(sum / total));
    }
  }
}

StatusOr<Picture> WithChannels(const Picture& picture, std::uint32_t channels) {
  Picture other = {channels, picture.height, picture.width, {}};
  const std::size_t num_pixels = std::size_t{picture.height} * picture.width;
  other.pixels.reserve(num_pixels * channels);
  if (picture.channels == 1 && channels == 3) {
    for (const std::uint8_t grey : picture.pixels) {
      other.pixels.insert(other.pixels.end(), 3, grey);
    }
    return other;
  }
  if (picture.channels == 3 && channels == 1) {
    for (std::size_t i = 0; i < num_pixels; ++i) {
      const std::uint8_t* const rgb = picture.pixels.data() + 3 * i;
      other.pixels.push_back(
          static_cast<std::uint8_t>((299U * rgb[0] + 587U * rgb[1] + 114U * rgb[2] + 500U) / 1000));
    }
    return other;
  }
  return Wrong("a picture of " + std::to_string(picture.channels) +
               " channels cannot become one of " + std::to_string(channels));
}

}  // namespace

namespace internal {

Status CheckPictureSize(std::uint64_t height, std::uint64_t width, const PictureLimits& limits) {
  if (height == 0 || width == 0) {
    return Wrong("the picture has no pixels");
  }
  if (height > limits.max_side || width > limits.max_side || height * width > limits.max_pixels) {
    return Wrong("the picture has more than " + std::to_string(limits.max_side) +
                 " pixels a side or " + std::to_string(limits.max_pixels) + " in all");
  }
  return OkStatus();
}

}  // namespace internal

StatusOr<Picture> DecodePicture(ByteSpan cell, const PictureLimits& limits) {
  const std::string_view text = AsText(cell);
  if (text.starts_with(kPixelsMark)) {
    return ParsePixels(cell, limits);
  }
  if (text.starts_with("\x89PNG")) {
    return internal::DecodePng(cell, limits);
  }
  if (text.starts_with("\xFF\xD8")) {
    return internal::DecodeJpeg(cell, limits);
  }
  return Wrong(cell.empty() ? "the file is empty" : "neither a PNG nor a JPEG file");
}

std::string PrintPicture(const Picture& picture) {
  Bytes header = ToBytes(kPixelsMark);
  AppendU32(header, picture.channels);
  AppendU32(header, picture.height);
  AppendU32(header, picture.width);
  std::string cell(AsText(header));
  cell += AsText(picture.pixels);
  return cell;
}

StatusOr<std::vector<std::uint8_t>> FitPicture(const Picture& picture, std::uint32_t channels,
                                               std::uint32_t height, std::uint32_t width) {
  if (picture.channels != channels) {
    ASSIGN_OR_RETURN(const Picture other, WithChannels(picture, channels));
    return FitPicture(other, channels, height, width);
  }
  if (channels == 1 && picture.height == height && picture.width == width) {
    return picture.pixels;
  }
  const Axis rows = MakeAxis(picture.height, height);
  const Axis columns = MakeAxis(picture.width, width);
  std::vector<std::uint8_t> fitted;
  fitted.reserve(std::size_t{channels} * height * width);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    FitChannel(picture, channel, rows, columns, fitted);
  }
  return fitted;
}

}  // namespace domicile::site_agent

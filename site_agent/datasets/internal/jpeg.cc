#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <turbojpeg.h>

#include "site_agent/datasets/internal/codecs.h"

namespace domicile::site_agent::internal {
namespace {

constexpr std::uint32_t kUpright = 1;

std::uint32_t Big16(ByteSpan at) { return (std::uint32_t{at[0]} << 8U) | at[1]; }

// A number of a TIFF structure, in the byte order it declares.
std::uint32_t TiffNumber(ByteSpan tiff, std::size_t at, std::size_t size, bool is_big) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < size; ++i) {
    number = (number << 8U) | tiff[at + (is_big ? i : size - 1 - i)];
  }
  return number;
}

// The orientation (1 to 8) that the first directory of a TIFF structure tells; upright if it tells
// none, or nothing readable: then a viewer shows the pixels as they lie, too.
std::uint32_t TiffOrientation(ByteSpan tiff) {
  constexpr std::uint32_t kOrientationTag = 0x0112;
  constexpr std::uint32_t kShort = 3;
  constexpr std::size_t kEntryBytes = 12;
  if (tiff.size() < 8 || (AsText(tiff.first(2)) != "II" && AsText(tiff.first(2)) != "MM")) {
    return kUpright;
  }
  const bool is_big = tiff[0] == 'M';
  const std::size_t directory = TiffNumber(tiff, 4, 4, is_big);
  if (directory > tiff.size() || tiff.size() - directory < 2) {
    return kUpright;
  }
  const std::size_t entries = TiffNumber(tiff, directory, 2, is_big);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (tiff.size() - directory < 2 + (i + 1) * kEntryBytes) {
      return kUpright;
    }
    if (TiffNumber(tiff, entry, 2, is_big) == kOrientationTag &&
        TiffNumber(tiff, entry + 2, 2, is_big) == kShort) {
      const std::uint32_t value = TiffNumber(tiff, entry + 8, 2, is_big);
      return value >= 1 && value <= 8 ? value : kUpright;
    }
  }
  return kUpright;
}

// What the segments before the pixels say and TurboJPEG does not tell.
struct Segments {
  std::uint32_t orientation = kUpright;
  bool is_adobe = false;  // such files keep 255 minus the ink
};

Segments ReadSegments(ByteSpan file) {
  constexpr std::uint8_t kScan = 0xDA;
  constexpr std::uint8_t kExif = 0xE1;
  constexpr std::uint8_t kAdobe = 0xEE;
  constexpr std::string_view kExifMark = std::string_view("Exif\0\0", 6);
  Segments segments;
  ByteSpan rest = file.subspan(2);  // after the start of the picture
  while (rest.size() >= 4 && rest[0] == 0xFF && rest[1] != kScan) {
    if (rest[1] == 0xFF) {  // a fill byte
      rest = rest.subspan(1);
      continue;
    }
    const std::size_t size = Big16(rest.subspan(2));
    if (size < 2 || size + 2 > rest.size()) {
      break;
    }
    const ByteSpan body = rest.subspan(4, size - 2);
    if (rest[1] == kExif && AsText(body).starts_with(kExifMark)) {
      segments.orientation = TiffOrientation(body.subspan(kExifMark.size()));
    }
    segments.is_adobe =
        segments.is_adobe || (rest[1] == kAdobe && AsText(body).starts_with("Adobe"));
    rest = rest.subspan(2 + size);
  }
  return segments;
}

// Ink to light: R = (255-C)(255-K)/255. `kept` is 255 minus the ink where the file is Adobe's.
std::vector<std::uint8_t> FromInk(const std::vector<std::uint8_t>& kept, bool is_adobe) {
  std::vector<std::uint8_t> rgb;
  rgb.reserve(kept.size() / 4 * 3);
  const auto light = [is_adobe](std::uint8_t value) {
    return static_cast<std::uint32_t>(is_adobe ? value : 255 - value);
  };
  for (std::size_t i = 0; i < kept.size(); i += 4) {
    const std::uint32_t black = light(kept[i + 3]);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      rgb.push_back(static_cast<std::uint8_t>((light(kept[i + channel]) * black + 127) / 255));
    }
  }
  return rgb;
}

// Turns and mirrors by Exif's rule: where the first line and the first column lie.
Picture Turn(Picture picture, std::uint32_t orientation) {
  if (orientation == kUpright) {
    return picture;
  }
  const bool is_transposed = orientation >= 5;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const std::size_t width = picture.width;
  const std::size_t height = picture.height;
  Picture turned = {picture.channels,
                    is_transposed ? picture.width : picture.height,
                    is_transposed ? picture.height : picture.width,
                    {}};
  turned.pixels.reserve(picture.pixels.size());
  for (std::size_t y = 0; y < turned.height; ++y) {
    for (std::size_t x = 0; x < turned.width; ++x) {
      std::size_t row = is_transposed ? x : y;
      std::size_t column = is_transposed ? y : x;
      row = from_bottom ? height - 1 - row : row;
      column = from_right ? width - 1 - column : column;
      const auto* const pixel = picture.pixels.data() + (row * width + column) * picture.channels;
      turned.pixels.insert(turned.pixels.end(), pixel, pixel + picture.channels);
    }
  }
  return turned;
}

struct Destroy {
  void operator()(void* handle) const { tjDestroy(handle); }
};

}  // namespace

StatusOr<Picture> DecodeJpeg(ByteSpan file, const PictureLimits& limits) {
  const std::unique_ptr<void, Destroy> decoder(tjInitDecompress());
  if (decoder == nullptr) {
    return Error(StatusCode::kResourceExhausted, "no memory for a JPEG file");
  }
  const auto refuse = [&decoder] {
    return Error(StatusCode::kInvalidArgument,
                 "not a whole JPEG file: " + std::string(tjGetErrorStr2(decoder.get())));
  };
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colours = 0;
  const auto size = static_cast<unsigned long>(file.size());  // NOLINT(google-runtime-int)
  if (tjDecompressHeader3(decoder.get(), file.data(), size, &width, &height, &subsampling,
                          &colours) != 0) {
    return refuse();
  }
  Picture picture;
  picture.height = static_cast<std::uint32_t>(height);
  picture.width = static_cast<std::uint32_t>(width);
  RETURN_IF_ERROR(CheckPictureSize(picture.height, picture.width, limits));
  const bool is_ink = colours == TJCS_CMYK || colours == TJCS_YCCK;
  const bool is_grey = colours == TJCS_GRAY;
  const int format = is_ink ? TJPF_CMYK : is_grey ? TJPF_GRAY : TJPF_RGB;
  picture.channels = is_grey ? 1 : 3;
  picture.pixels.resize(std::size_t{picture.height} * picture.width *
                        static_cast<std::size_t>(tjPixelSize[format]));
  // A warning is, among others, a file that ends early; the rest would be grey.
  if (tjDecompress2(decoder.get(), file.data(), size, picture.pixels.data(), width, 0, height,
                    format, TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0) {
    return refuse();
  }
  const Segments segments = ReadSegments(file);
  if (is_ink) {
    picture.pixels = FromInk(picture.pixels, segments.is_adobe);
  }
  return Turn(std::move(picture), segments.orientation);
}

}  // namespace domicile::site_agent::internal

// Pictures as cells of a table: a PNG or JPEG file, or the pixels themselves, become the bytes that
// a job asks for. The rules are those of docs/formats/dataset.md, the same at every site; what is
// not whole is refused, and nothing is guessed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace domicile::site_agent {

struct Picture {
  std::uint32_t channels = 0;  // of files: 1 (grey) or 3 (red, green, blue)
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, channels]

  friend bool operator==(const Picture&, const Picture&) = default;
};

struct PictureLimits {
  std::uint32_t max_side = 65'500;
  std::uint64_t max_pixels = 100'000'000;
};

// Decodes a cell, told by its first bytes. Errors: kInvalidArgument, saying what is wrong with it.
StatusOr<Picture> DecodePicture(ByteSpan cell, const PictureLimits& limits = {});

// A picture as a cell of its own pixels.
std::string PrintPicture(const Picture& picture);

// The picture with other channels (grey for colour, colour for grey) and another size, in whole
// numbers: [channels, height, width]. Errors: kInvalidArgument where the channels have no such
// rule.
StatusOr<std::vector<std::uint8_t>> FitPicture(const Picture& picture, std::uint32_t channels,
                                               std::uint32_t height, std::uint32_t width);

}  // namespace domicile::site_agent

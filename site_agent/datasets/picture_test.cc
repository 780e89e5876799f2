#include "site_agent/datasets/picture.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/file.h"
#include "site_agent/datasets/testing.h"

namespace domicile::site_agent {
namespace {

using Pixels = std::vector<std::uint8_t>;

const std::string kPictures = DOMICILE_SOURCE_DIR "/tests/golden/cases/C11/images/";

std::string Read(const std::string& name) { return ReadFile(kPictures + name, 1 << 20).value(); }

Picture Decode(const std::string& name) {
  const StatusOr<Picture> picture = DecodePicture(AsBytes(Read(name)));
  INFO(name);
  INFO(ToString(picture.status()));
  REQUIRE(picture.ok());
  return *picture;
}

// Means of the channels, of a picture brought to 8 x 8 and three channels.
std::vector<double> Means(const std::string& name) {
  const Pixels pixels = FitPicture(Decode(name), 3, 8, 8).value();
  std::vector<double> means;
  for (auto plane = pixels.begin(); plane != pixels.end(); plane += 64) {
    means.push_back(std::accumulate(plane, plane + 64, 0.0) / 64);
  }
  return means;
}

TEST_CASE("DecodePicture: colour, grey, alpha, palette and 16 bits give the same colours (C11)") {
  const std::vector<double> colours = {112, 56, 172};
  CHECK(Means("rgb.png") == colours);
  CHECK(Means("rgba.png") == colours);
  CHECK(Means("gray.png") == std::vector<double>{112, 112, 112});
  CHECK(Decode("gray16.png") == Decode("gray.png"));
  CHECK(Decode("rgba.png") == Decode("rgb.png"));
  CHECK(Decode("palette.png").channels == 3);
  // Palette numbers of this file are below 16; its colours are not.
  const Picture palette = Decode("palette.png");
  CHECK(*std::max_element(palette.pixels.begin(), palette.pixels.end()) > 100);
}

TEST_CASE("DecodePicture: ink becomes the colours that the same picture has in light (C11)") {
  const Picture light = Decode("ok.jpg");
  const Picture ink = Decode("cmyk.jpg");

  CHECK(ink.channels == 3);
  REQUIRE(ink.pixels.size() == light.pixels.size());
  for (std::size_t channel = 0; channel < 3; ++channel) {
    double difference = 0;
    for (std::size_t i = channel; i < ink.pixels.size(); i += 3) {
      difference += std::abs(int{ink.pixels[i]} - int{light.pixels[i]});
    }
    CHECK(difference / static_cast<double>(ink.pixels.size() / 3) < 25);
  }
}

TEST_CASE("DecodePicture: what is not a whole picture is refused, at every length (C11)") {
  const auto refusal = [](std::string_view cell) {
    return std::string(Message(DecodePicture(AsBytes(cell)).status()));
  };
  CHECK(Contains(refusal(Read("truncated.jpg")), "not a whole JPEG file"));
  CHECK(Contains(refusal(Read("text_named.png")), "neither a PNG nor a JPEG file"));
  CHECK(Contains(refusal(Read("empty.png")), "the file is empty"));
  for (const std::string name : {"rgb.png", "palette.png", "gray16.png", "cmyk.jpg"}) {
    CAPTURE(name);
    const std::string whole = Read(name);
    for (std::size_t size = 0; size + 2 < whole.size(); ++size) {  // a JPEG's end mark is 2 bytes
      CAPTURE(size);
      CHECK_FALSE(DecodePicture(AsBytes(whole).first(size)).ok());
    }
  }
  std::string damaged = Read("rgb.png");
  damaged[damaged.size() - 20] = static_cast<char>(damaged[damaged.size() - 20] ^ 1);
  CHECK(Contains(refusal(damaged), "not a whole PNG file"));
}

TEST_CASE("DecodePicture: pictures beyond the limits are refused before they are unpacked") {
  const std::string png = Read("rgb.png");
  const std::string jpeg = Read("ok.jpg");
  for (const PictureLimits limits :
       {PictureLimits{.max_side = 7}, PictureLimits{.max_pixels = 63}}) {
    CHECK_FALSE(DecodePicture(AsBytes(png), limits).ok());
    CHECK_FALSE(DecodePicture(AsBytes(jpeg), limits).ok());
    CHECK_FALSE(DecodePicture(AsBytes(PrintPicture({1, 8, 8, Pixels(64)})), limits).ok());
  }
  CHECK(DecodePicture(AsBytes(png), {.max_side = 8, .max_pixels = 64}).ok());
}

TEST_CASE("DecodePicture: the orientation of Exif is obeyed (C11)") {
  const std::string file = Read("rotated_exif6.jpg");
  const std::size_t value = file.find(std::string("\x01\x12\x00\x03\x00\x00\x00\x01\x00", 9)) + 9;
  REQUIRE(file[value] == 6);
  const auto turned = [&](int orientation) {
    std::string copy = file;
    copy[value] = static_cast<char>(orientation);
    return DecodePicture(AsBytes(copy)).value();
  };
  const Picture upright = turned(1);
  REQUIRE(upright.width == 32);
  REQUIRE(upright.height == 16);
  const auto pixel = [](const Picture& picture, std::size_t y, std::size_t x) {
    const auto* const at = picture.pixels.data() + (y * picture.width + x) * picture.channels;
    return Pixels(at, at + picture.channels);
  };
  // Where the two upper corners of what is seen lie in what is stored (row, column).
  struct Corner {
    int orientation;
    std::pair<std::size_t, std::size_t> left;
    std::pair<std::size_t, std::size_t> right;
  };
  const Corner corners[] = {{1, {0, 0}, {0, 31}},   {2, {0, 31}, {0, 0}},  {3, {15, 31}, {15, 0}},
                            {4, {15, 0}, {15, 31}}, {5, {0, 0}, {15, 0}},  {6, {15, 0}, {0, 0}},
                            {7, {15, 31}, {0, 31}}, {8, {0, 31}, {15, 31}}};
  for (const Corner& corner : corners) {
    CAPTURE(corner.orientation);
    const Picture seen = turned(corner.orientation);
    CHECK(seen.width == (corner.orientation >= 5 ? 16 : 32));
    CHECK(seen.height == (corner.orientation >= 5 ? 32 : 16));
    CHECK(pixel(seen, 0, 0) == pixel(upright, corner.left.first, corner.left.second));
    CHECK(pixel(seen, 0, seen.width - 1) ==
          pixel(upright, corner.right.first, corner.right.second));
  }
  CHECK(turned(0) == upright);
  CHECK(turned(9) == upright);
}

TEST_CASE("DecodePicture: pixels as a cell read back as they were") {
  const Picture picture = {3, 1, 2, {1, 2, 3, 4, 5, 6}};
  const std::string cell = PrintPicture(picture);

  CHECK(DecodePicture(AsBytes(cell)).value() == picture);
  CHECK_FALSE(DecodePicture(AsBytes(cell + "x")).ok());
  CHECK_FALSE(DecodePicture(AsBytes(cell).first(cell.size() - 1)).ok());
  CHECK_FALSE(DecodePicture(AsBytes(PrintPicture({0, 1, 1, {}}))).ok());
  CHECK_FALSE(DecodePicture(AsBytes(PrintPicture({1, 0, 1, {}}))).ok());
}

TEST_CASE("FitPicture: what shrinks is averaged by area, rounded half up") {
  const Picture four = {1, 2, 4, {0, 10, 20, 31, 40, 50, 60, 71}};
  CHECK(FitPicture(four, 1, 1, 2).value() == Pixels{25, 46});  // 25, 45.5
  const Picture three = {1, 1, 3, {0, 90, 30}};
  CHECK(FitPicture(three, 1, 1, 2).value() == Pixels{30, 50});
}

TEST_CASE("FitPicture: what grows is linear between centres, and flat at the edges") {
  const Picture two = {1, 1, 2, {0, 80}};
  CHECK(FitPicture(two, 1, 1, 4).value() == Pixels{0, 20, 60, 80});
  CHECK(FitPicture(two, 1, 2, 3).value() == Pixels{0, 40, 80, 0, 40, 80});
}

TEST_CASE("FitPicture: channels come apart, and grey and colour become each other") {
  const Picture colour = {3, 1, 2, {255, 0, 0, 10, 20, 30}};
  CHECK(FitPicture(colour, 3, 1, 2).value() == Pixels{255, 10, 0, 20, 0, 30});
  CHECK(FitPicture(colour, 1, 1, 2).value() == Pixels{76, 18});
  CHECK(FitPicture({1, 1, 1, {7}}, 3, 1, 1).value() == Pixels{7, 7, 7});
  CHECK(Contains(Message(FitPicture({4, 1, 1, {1, 2, 3, 4}}, 3, 1, 1).status()),
                 "a picture of 4 channels cannot become one of 3"));
}

TEST_CASE("FitPicture: any size from any other keeps a flat picture flat, and never leaves range") {
  REQUIRE(rc::check([] {
    const auto side = [] { return *rc::gen::inRange<std::uint32_t>(1, 20); };
    Picture picture = {1, side(), side(), {}};
    picture.pixels = *rc::gen::container<Pixels>(std::size_t{picture.height} * picture.width,
                                                 rc::gen::arbitrary<std::uint8_t>());
    const std::uint32_t height = side();
    const std::uint32_t width = side();
    const Pixels fitted = FitPicture(picture, 1, height, width).value();
    RC_ASSERT(fitted.size() == std::size_t{height} * width);
    const auto [low, high] = std::minmax_element(picture.pixels.begin(), picture.pixels.end());
    for (const std::uint8_t value : fitted) {
      RC_ASSERT(value >= *low && value <= *high);
    }
    RC_ASSERT(FitPicture(picture, 1, picture.height, picture.width).value() == picture.pixels);
    std::fill(picture.pixels.begin(), picture.pixels.end(), *low);
    RC_ASSERT(FitPicture(picture, 1, height, width).value() ==
              Pixels(std::size_t{height} * width, picture.pixels.front()));
  }));
}

}  // namespace
}  // namespace domicile::site_agent

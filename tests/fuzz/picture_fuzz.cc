// A picture as somebody's camera, program or hand left it. Whoever is accepted has all its pixels,
// decodes the same again, and becomes what a job asks for; its pixels as a cell are the same
// picture.
#include <cstddef>
#include <cstdint>

#include "site_agent/datasets/picture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  using site_agent::DecodePicture;
  const site_agent::PictureLimits limits = {.max_side = 256, .max_pixels = 4096};
  const StatusOr<site_agent::Picture> picture = DecodePicture({data, size}, limits);
  if (!picture.ok()) {
    return 0;
  }
  const std::size_t num_pixels = std::size_t{picture->height} * picture->width;
  DOMICILE_CHECK(num_pixels > 0 && num_pixels <= limits.max_pixels);
  DOMICILE_CHECK(picture->pixels.size() == num_pixels * picture->channels);
  DOMICILE_CHECK(DecodePicture({data, size}, limits).value() == *picture);
  const std::string cell = site_agent::PrintPicture(*picture);
  DOMICILE_CHECK(DecodePicture(AsBytes(cell), limits).value() == *picture);
  const auto fitted = site_agent::FitPicture(*picture, 3, 5, 7);
  DOMICILE_CHECK(fitted.ok() == (picture->channels == 1 || picture->channels == 3));
  DOMICILE_CHECK(!fitted.ok() || fitted->size() == 3 * 5 * 7);
  return 0;
}

// The two formats of picture files.
#pragma once

#include "base/bytes.h"
#include "base/status.h"
#include "site_agent/datasets/picture.h"

namespace domicile::site_agent::internal {

// Errors: kInvalidArgument.
Status CheckPictureSize(std::uint64_t height, std::uint64_t width, const PictureLimits& limits);
StatusOr<Picture> DecodePng(ByteSpan file, const PictureLimits& limits);
StatusOr<Picture> DecodeJpeg(ByteSpan file, const PictureLimits& limits);

}  // namespace domicile::site_agent::internal

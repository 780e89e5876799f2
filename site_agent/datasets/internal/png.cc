#include <csetjmp>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <png.h>

#include "site_agent/datasets/internal/codecs.h"

namespace domicile::site_agent::internal {
namespace {

constexpr png_alloc_size_t kMaxChunkBytes = 16U << 20U;  // of text and profiles; they are not used
constexpr png_uint_32 kMaxChunks = 1000;

// What libpng's callbacks need. libpng leaves its functions by longjmp, so nothing that owns memory
// may live in a frame between: buffers are here, made before the jump is set.
struct Reader {
  ByteSpan rest;
  std::jmp_buf jump;
  char message[128] = {};
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<std::uint8_t> pixels;
  std::vector<png_bytep> lines;

  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void OnError(png_structp png, png_const_charp message) {
  auto* const reader = static_cast<Reader*>(png_get_error_ptr(png));
  std::strncpy(reader->message, message, sizeof reader->message - 1);
  std::longjmp(reader->jump, 1);
}

// A warning is about something beside the pixels (a profile, a comment).
void OnWarning(png_structp /*png*/, png_const_charp /*message*/) {}

void OnRead(png_structp png, png_bytep out, png_size_t size) {
  auto* const reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (size > reader->rest.size()) {
    png_error(png, "the file ends early");
  }
  std::memcpy(out, reader->rest.data(), size);
  reader->rest = reader->rest.subspan(size);
}

// The steps that can jump; each says whether it came to its end.
bool ReadHeader(Reader& reader) {
  if (setjmp(reader.jump) != 0) {
    return false;
  }
  png_read_info(reader.png, reader.info);
  const png_byte depth = png_get_bit_depth(reader.png, reader.info);
  const png_byte kind = png_get_color_type(reader.png, reader.info);
  if (kind == PNG_COLOR_TYPE_PALETTE) {
    png_set_palette_to_rgb(reader.png);
  }
  if (kind == PNG_COLOR_TYPE_GRAY && depth < 8) {
    png_set_expand_gray_1_2_4_to_8(reader.png);
  }
  if (depth == 16) {
    png_set_scale_16(reader.png);
  }
  png_set_strip_alpha(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return true;
}

bool ReadPixels(Reader& reader) {
  if (setjmp(reader.jump) != 0) {
    return false;
  }
  png_read_image(reader.png, reader.lines.data());
  png_read_end(reader.png, nullptr);
  return true;
}

Status Refuse(const Reader& reader) {
  return Error(StatusCode::kInvalidArgument,
               "not a whole PNG file: " + std::string(reader.message));
}

}  // namespace

StatusOr<Picture> DecodePng(ByteSpan file, const PictureLimits& limits) {
  Reader reader;
  reader.rest = file;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, OnError, OnWarning);
  reader.info = reader.png == nullptr ? nullptr : png_create_info_struct(reader.png);
  if (reader.info == nullptr) {
    return Error(StatusCode::kResourceExhausted, "no memory for a PNG file");
  }
  png_set_read_fn(reader.png, &reader, OnRead);
  png_set_user_limits(reader.png, limits.max_side, limits.max_side);
  png_set_chunk_malloc_max(reader.png, kMaxChunkBytes);
  png_set_chunk_cache_max(reader.png, kMaxChunks);
  png_set_crc_action(reader.png, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);
  if (!ReadHeader(reader)) {
    return Refuse(reader);
  }
  Picture picture;
  picture.height = png_get_image_height(reader.png, reader.info);
  picture.width = png_get_image_width(reader.png, reader.info);
  picture.channels = png_get_channels(reader.png, reader.info);
  RETURN_IF_ERROR(CheckPictureSize(picture.height, picture.width, limits));
  const std::size_t stride = png_get_rowbytes(reader.png, reader.info);
  DOMICILE_CHECK(stride == std::size_t{picture.width} * picture.channels);
  reader.pixels.resize(stride * picture.height);
  for (std::size_t y = 0; y < picture.height; ++y) {
    reader.lines.push_back(reader.pixels.data() + y * stride);
  }
  if (!ReadPixels(reader)) {
    return Refuse(reader);
  }
  picture.pixels = std::move(reader.pixels);
  return picture;
}

}  // namespace domicile::site_agent::internal

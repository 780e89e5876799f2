#include "wire/chunk.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace domicile::wire {
namespace {

// Tags of protobuf: field number << 3 | wire type.
constexpr std::uint8_t kOffsetTag = 1U << 3U | 0U;  // Chunk.offset_bytes, varint
constexpr std::uint8_t kDataTag = 2U << 3U | 2U;    // Chunk.data, length-delimited
constexpr std::uint8_t kChunkTag = 2U << 3U | 2U;   // SubmitUpdateRequest.chunk, length-delimited

void Append(ChunkHeader& header, std::uint8_t byte) { header.bytes[header.size++] = byte; }

void AppendVarint(ChunkHeader& header, std::uint64_t value) {
  while (value >= 0x80U) {
    Append(header, static_cast<std::uint8_t>(value | 0x80U));
    value >>= 7U;
  }
  Append(header, static_cast<std::uint8_t>(value));
}

ChunkHeader EncodeBare(std::uint64_t offset_bytes, std::size_t data_bytes) {
  ChunkHeader header;
  if (offset_bytes != 0) {  // proto3 does not write zeros
    Append(header, kOffsetTag);
    AppendVarint(header, offset_bytes);
  }
  Append(header, kDataTag);
  AppendVarint(header, data_bytes);
  return header;
}

std::size_t TotalBytes(std::span<const ByteSpan> message) {
  std::size_t total = 0;
  for (const ByteSpan piece : message) {
    total += piece.size();
  }
  return total;
}

// Copies destination.size() bytes of the message, after `skip`; the message holds them.
void CopyFrom(std::span<const ByteSpan> message, std::size_t skip,
              std::span<std::uint8_t> destination) {
  for (const ByteSpan piece : message) {
    const std::size_t unwanted = std::min(skip, piece.size());
    skip -= unwanted;
    const std::size_t size = std::min(piece.size() - unwanted, destination.size());
    if (size > 0) {
      std::memcpy(destination.data(), piece.data() + unwanted, size);
      destination = destination.subspan(size);
    }
  }
}

Status Malformed(std::uint64_t offset_bytes, std::string_view what) {
  return Error(StatusCode::kInvalidArgument,
               "the chunk for offset " + std::to_string(offset_bytes) + " " + std::string(what));
}

}  // namespace

ChunkHeader EncodeChunkHeader(ChunkForm form, std::uint64_t offset_bytes, std::size_t data_bytes) {
  DOMICILE_CHECK(data_bytes >= 1 && data_bytes <= kChunkBytes);
  const ChunkHeader bare = EncodeBare(offset_bytes, data_bytes);
  switch (form) {
    case ChunkForm::kBare:
      return bare;
    case ChunkForm::kSubmitRequest: {
      ChunkHeader header;
      Append(header, kChunkTag);
      AppendVarint(header, bare.size + data_bytes);
      std::copy_n(bare.bytes.begin(), bare.size, header.bytes.begin() + header.size);
      header.size += bare.size;
      return header;
    }
    case ChunkForm::kNone:
      break;
  }
  DOMICILE_CHECK(form != ChunkForm::kNone);
  return {};
}

StatusOr<std::uint64_t> DecodeChunk(ChunkForm form, std::span<const ByteSpan> message,
                                    std::uint64_t offset_bytes, std::span<std::uint8_t> blob) {
  if (form == ChunkForm::kNone) {
    return Malformed(offset_bytes, "stands in no message");
  }
  if (offset_bytes >= blob.size()) {
    return Malformed(offset_bytes,
                     "lies beyond the blob of " + std::to_string(blob.size()) + " bytes");
  }
  // The encoding is canonical, the offset is known, and a longer message means longer data: so at
  // most one header fits the size of this message, and its bytes must be exactly that header.
  // Nothing a sender wrote is used as a length.
  const std::size_t total = TotalBytes(message);
  ChunkHeader found;
  const std::size_t most = std::min(total, found.bytes.size());
  CopyFrom(message, 0, std::span(found.bytes).first(most));
  for (std::size_t size = 2; size <= most; ++size) {
    const std::size_t data_bytes = total - size;
    if (data_bytes < 1 || data_bytes > kChunkBytes) {
      continue;
    }
    const ChunkHeader header = EncodeChunkHeader(form, offset_bytes, data_bytes);
    if (header.size != size) {
      continue;
    }
    if (!std::equal(found.bytes.begin(), found.bytes.begin() + size, header.bytes.begin())) {
      break;
    }
    if (data_bytes > blob.size() - offset_bytes) {
      return Malformed(offset_bytes,
                       "goes beyond the blob of " + std::to_string(blob.size()) + " bytes");
    }
    CopyFrom(message, size, blob.subspan(offset_bytes, data_bytes));
    return offset_bytes + data_bytes;
  }
  return Malformed(offset_bytes, "has another offset, another size or another form");
}

}  // namespace domicile::wire

// The `Chunk` message as raw bytes, so that a model is not copied on its way through protobuf.
// Byte for byte what protobuf makes of the .proto. Pure. Page: docs/formats/wire.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/status.h"
#include "wire/settings.h"

namespace domicile::wire {

// Which message the chunk stands in.
enum class ChunkForm : std::uint8_t {
  kNone = 0,           // no message; refused
  kBare = 1,           // Chunk, the answer of FetchBlob
  kSubmitRequest = 2,  // SubmitUpdateRequest.chunk
};

// What comes before the data of a chunk.
struct ChunkHeader {
  std::array<std::uint8_t, 32> bytes{};
  std::size_t size = 0;
};
// 1 <= data_bytes <= kChunkBytes. Header and data, one after the other, are the message.
ChunkHeader EncodeChunkHeader(ChunkForm form, std::uint64_t offset_bytes, std::size_t data_bytes);

// Copies the data of a chunk to its place in the blob.
//
//   message       the message in pieces, as they arrived; the header may straddle pieces
//   offset_bytes  where the chunk must begin: chunks come in order, without gaps
//   blob          the whole blob, destination
//
// Returns the end of the chunk in the blob. Strict: exactly the encoding above, nothing before,
// between or after. Errors, the blob untouched: kInvalidArgument (another message, another offset,
// no data, too much data, beyond the blob).
StatusOr<std::uint64_t> DecodeChunk(ChunkForm form, std::span<const ByteSpan> message,
                                    std::uint64_t offset_bytes, std::span<std::uint8_t> blob);

}  // namespace domicile::wire

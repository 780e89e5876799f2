// Property: the decoder takes exactly the messages that protobuf reads as this chunk, with the
// expected offset, some data that fits, no unknown field, and writes back to the same bytes.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "wire/chunk.h"
#include "wire/proto/federation.pb.h"

namespace {

using domicile::Bytes;
using domicile::ByteSpan;
using domicile::wire::ChunkForm;

bool ProtobufTakes(ChunkForm form, const std::string& message, std::uint64_t offset,
                   std::size_t blob_bytes, domicile::v1::Chunk& chunk) {
  if (form == ChunkForm::kSubmitRequest) {
    domicile::v1::SubmitUpdateRequest request;
    if (!request.ParseFromString(message) || !request.has_chunk() ||
        request.SerializeAsString() != message) {
      return false;
    }
    chunk = request.chunk();
  } else if (!chunk.ParseFromString(message)) {
    return false;
  }
  const bool canonical =
      chunk.GetReflection()->GetUnknownFields(chunk).empty() &&
      (form == ChunkForm::kSubmitRequest || chunk.SerializeAsString() == message);
  const std::size_t size = chunk.data().size();
  return canonical && chunk.offset_bytes() == offset && size >= 1 &&
         size <= domicile::wire::kChunkBytes && offset < blob_bytes && size <= blob_bytes - offset;
}

}  // namespace

// Input: form, offset (2 bytes), room after the offset (2 bytes), size of pieces, the message.
// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kControls = 6;
  if (size < kControls) {
    return 0;
  }
  const ChunkForm form = data[0] % 2 == 0 ? ChunkForm::kBare : ChunkForm::kSubmitRequest;
  const std::uint64_t offset = data[1] * 256U + data[2];
  const std::size_t blob_bytes = offset + data[3] * 256U + data[4];
  const std::size_t piece_bytes = 1U + data[5];
  const std::string message(reinterpret_cast<const char*>(data) + kControls, size - kControls);
  std::vector<ByteSpan> pieces;
  for (std::size_t at = 0; at < message.size(); at += piece_bytes) {
    pieces.push_back(domicile::AsBytes(std::string_view(message).substr(at, piece_bytes)));
  }
  Bytes blob(blob_bytes, 0xA5);

  const auto end = domicile::wire::DecodeChunk(form, pieces, offset, blob);

  domicile::v1::Chunk chunk;
  DOMICILE_CHECK(end.ok() == ProtobufTakes(form, message, offset, blob_bytes, chunk));
  if (end.ok()) {
    const ByteSpan written = ByteSpan(blob).subspan(offset, *end - offset);
    DOMICILE_CHECK(domicile::AsText(written) == chunk.data());
  } else {
    DOMICILE_CHECK(blob == Bytes(blob_bytes, 0xA5));
  }
  return 0;
}

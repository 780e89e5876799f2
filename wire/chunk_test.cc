#include "wire/chunk.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "wire/proto/federation.pb.h"

namespace domicile::wire {
namespace {

// The oracle: protobuf itself.
std::string ByProtobuf(ChunkForm form, std::uint64_t offset, const std::string& data) {
  v1::SubmitUpdateRequest request;
  request.mutable_chunk()->set_offset_bytes(offset);
  request.mutable_chunk()->set_data(data);
  return form == ChunkForm::kBare ? request.chunk().SerializeAsString()
                                  : request.SerializeAsString();
}

std::string Encode(ChunkForm form, std::uint64_t offset, const std::string& data) {
  const ChunkHeader header = EncodeChunkHeader(form, offset, data.size());
  return std::string(AsText(std::span(header.bytes).first(header.size))) + data;
}

StatusOr<std::uint64_t> Decode(ChunkForm form, const std::string& message, std::uint64_t offset,
                               std::span<std::uint8_t> blob) {
  const ByteSpan piece = AsBytes(message);
  return DecodeChunk(form, {&piece, 1}, offset, blob);
}

const std::uint64_t kOffsets[] = {0,       1,         127,      128,        16'383,     16'384,
                                  1 << 20, 6'000'000, 1U << 31, 1ULL << 32, 1ULL << 63, UINT64_MAX};
const std::size_t kSizes[] = {1, 2, 127, 128, 129, 16'383, 16'384, 16'385, kChunkBytes};

TEST_CASE("Chunk: the encoding is protobuf's, byte for byte") {
  for (const ChunkForm form : {ChunkForm::kBare, ChunkForm::kSubmitRequest}) {
    for (const std::uint64_t offset : kOffsets) {
      for (const std::size_t size : kSizes) {
        CAPTURE(offset);
        CAPTURE(size);
        const std::string data(size, 'd');

        CHECK(Encode(form, offset, data) == ByProtobuf(form, offset, data));
      }
    }
  }
}

TEST_CASE("Chunk: what is encoded comes back, however the message is cut into pieces") {
  rc::check([] {
    const auto form = *rc::gen::element(ChunkForm::kBare, ChunkForm::kSubmitRequest);
    const auto data =
        *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::arbitrary<char>()));
    const auto offset = *rc::gen::inRange<std::uint64_t>(0, 70'000);
    const std::string message = Encode(form, offset, data);
    std::vector<ByteSpan> pieces;
    for (std::size_t at = 0; at < message.size();) {
      const auto size = *rc::gen::inRange<std::size_t>(1, 9);
      if (size % 3 == 0) {
        pieces.emplace_back();  // an empty slice is possible, too
      }
      pieces.push_back(AsBytes(message).subspan(at, std::min(size, message.size() - at)));
      at += pieces.back().size();
    }
    Bytes blob(offset + data.size() + 3, 0xEE);

    const auto end = DecodeChunk(form, pieces, offset, blob);

    RC_ASSERT(end.ok());
    RC_ASSERT(*end == offset + data.size());
    RC_ASSERT(AsText(ByteSpan(blob).subspan(offset, data.size())) == data);
    RC_ASSERT(blob[*end] == 0xEE);
    const bool before_untouched = offset == 0 || blob[offset - 1] == 0xEE;
    RC_ASSERT(before_untouched);  // the macro evaluates both sides of a `||`
  });
}

TEST_CASE("Chunk: anything but the one canonical chunk for this place is refused") {
  const std::string good = ByProtobuf(ChunkForm::kBare, 5, "abcd");
  struct Case {
    const char* name;
    std::string message;
    ChunkForm form = ChunkForm::kBare;
    std::uint64_t offset = 5;
    std::size_t blob_bytes = 100;
  };
  const Case cases[] = {
      {"empty message", ""},
      {"no data", ByProtobuf(ChunkForm::kBare, 5, "")},
      {"another offset", ByProtobuf(ChunkForm::kBare, 6, "abcd")},
      {"offset 0 for 5", ByProtobuf(ChunkForm::kBare, 0, "abcd")},
      {"offset 5 for 0", good, ChunkForm::kBare, 0},
      {"explicit zero offset", std::string("\x08\x00\x12\x04", 4) + "abcd", ChunkForm::kBare, 0},
      {"long varint", std::string("\x08\x85\x00\x12\x04", 5) + "abcd"},
      {"unknown field before", std::string("\x98\x06\x01", 3) + good},
      {"unknown field after", good + std::string("\x98\x06\x01", 3)},
      {"data twice", good + std::string("\x12\x01x", 3)},
      {"data before offset", std::string("\x12\x04"
                                         "abcd"
                                         "\x08\x05",
                                         8)},
      {"size states less", std::string("\x08\x05\x12\x03", 4) + "abcd"},
      {"size states more", std::string("\x08\x05\x12\x05", 4) + "abcd"},
      {"cut off", good.substr(0, good.size() - 1)},
      {"beyond the blob", good, ChunkForm::kBare, 5, 8},
      {"at the end of the blob", good, ChunkForm::kBare, 5, 5},
      {"too much data", ByProtobuf(ChunkForm::kBare, 5, std::string(kChunkBytes + 1, 'x')),
       ChunkForm::kBare, 5, 2 * kChunkBytes},
      {"a submit request where a chunk belongs", ByProtobuf(ChunkForm::kSubmitRequest, 5, "abcd")},
      {"a chunk where a submit request belongs", good, ChunkForm::kSubmitRequest},
      {"no form", good, ChunkForm::kNone},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Bytes blob(c.blob_bytes, 0xEE);

    const auto end = Decode(c.form, c.message, c.offset, blob);

    CHECK(end.status().code() == StatusCode::kInvalidArgument);
    CHECK(std::all_of(blob.begin(), blob.end(), [](std::uint8_t byte) { return byte == 0xEE; }));
  }
  Bytes blob(9, 0);  // the control
  CHECK(Decode(ChunkForm::kBare, good, 5, blob).value_or(0) == 9);
}

TEST_CASE("Chunk: an update header is not taken for a chunk") {
  v1::SubmitUpdateRequest request;
  request.mutable_header()->mutable_update()->set_size_bytes(4);
  Bytes blob(100, 0);

  CHECK_FALSE(Decode(ChunkForm::kSubmitRequest, request.SerializeAsString(), 0, blob).ok());
}

}  // namespace
}  // namespace domicile::wire

// Property: a frame that is accepted reads the same after it was printed again, and its head alone
// is accepted too.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "site_agent/trainer/protocol.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;              // NOLINT(google-build-using-namespace): one function
  using namespace domicile::site_agent;  // NOLINT(google-build-using-namespace): as above
  const ByteSpan frame(data, size);
  if (size < kFrameHeaderBytes) {
    return 0;
  }
  const StatusOr<FrameHeader> header = ParseFrameHeader(frame, size);
  const ByteSpan body = frame.subspan(kFrameHeaderBytes);
  if (!header.ok() || header->json_bytes > body.size() ||
      header->payload_bytes > body.size() - header->json_bytes) {
    return 0;
  }
  const std::string_view json = AsText(body.first(header->json_bytes));
  const ByteSpan payload = body.subspan(header->json_bytes, header->payload_bytes);
  const StatusOr<TrainerMessage> message =
      DecodeMessage(json, Bytes(payload.begin(), payload.end()));
  DOMICILE_CHECK(message.ok() == DecodeHead(json, payload.size()).ok());
  if (message.ok()) {
    const Bytes printed = EncodeFrame(*message);
    const StatusOr<FrameHeader> again = ParseFrameHeader(printed, size);
    DOMICILE_CHECK(again.ok());
    const ByteSpan rest = ByteSpan(printed).subspan(kFrameHeaderBytes);
    const ByteSpan same = rest.subspan(again->json_bytes);
    const StatusOr<TrainerMessage> second =
        DecodeMessage(AsText(rest.first(again->json_bytes)), Bytes(same.begin(), same.end()));
    DOMICILE_CHECK(second.ok() && *second == *message);
  }
  return 0;
}

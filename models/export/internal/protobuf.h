// The wire format of protocol buffers, as far as writing an ONNX file needs it: a message is the
// concatenation of its fields.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace domicile::models::internal {

class ProtobufMessage {
 public:
  void Integer(std::uint32_t field, std::int64_t value) {
    Varint(std::uint64_t{field} << 3U);
    Varint(static_cast<std::uint64_t>(value));
  }
  void Float(std::uint32_t field, float value) {
    Varint(std::uint64_t{field} << 3U | 5U);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Text(std::uint32_t field, std::string_view value) {
    Varint(std::uint64_t{field} << 3U | 2U);
    Varint(value.size());
    bytes_.append(value);
  }
  void Message(std::uint32_t field, const ProtobufMessage& value) { Text(field, value.bytes_); }
  // The fields of another message, after these.
  void Append(const ProtobufMessage& more) { bytes_ += more.bytes_; }

  const std::string& Bytes() const { return bytes_; }

 private:
  void Varint(std::uint64_t value) {
    while (value >= 0x80U) {
      bytes_.push_back(static_cast<char>((value & 0x7FU) | 0x80U));
      value >>= 7U;
    }
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace domicile::models::internal

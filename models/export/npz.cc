#include "models/export/npz.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace domicile::models {

namespace {

// The CRC-32 of zip (ISO 3309), one table step a byte.
std::uint32_t Crc32(ByteSpan bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) {
        value = (value & 1U) != 0 ? 0xEDB88320U ^ value >> 1U : value >> 1U;
      }
      table[i] = value;
    }
    return table;
  }();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const std::uint8_t byte : bytes) {
    crc = kTable[(crc ^ byte) & 0xFFU] ^ crc >> 8U;
  }
  return ~crc;
}

void AppendInteger(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out.push_back(static_cast<char>(value >> (8 * i) & 0xFFU));
  }
}

// The numbers of a tensor; little-endian, as every machine this runs on.
std::string_view Data(const NamedTensor& tensor) {
  const bool floats = tensor.type == DataType::kFloat32;
  const void* const data =
      floats ? static_cast<const void*>(tensor.values.data()) : tensor.integers.data();
  return {static_cast<const char*>(data), floats ? tensor.values.size() * sizeof(float)
                                                 : tensor.integers.size() * sizeof(std::int64_t)};
}

std::string Npy(const NamedTensor& tensor) {
  std::string shape;
  for (const std::uint64_t size : tensor.shape) {
    shape += std::to_string(size) + ",";  // one with a single size needs its comma
  }
  std::string header = std::string("{'descr': '") +
                       (tensor.type == DataType::kFloat32 ? "<f4" : "<i8") +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // Magic, version and length are 10 bytes; data begins at a multiple of 64.
  while ((10 + header.size() + 1) % 64 != 0) {
    header.push_back(' ');
  }
  header.push_back('\n');
  std::string npy("\x93NUMPY\x01\x00", 8);
  AppendInteger(npy, header.size(), 2);
  return npy + header + std::string(Data(tensor));
}

constexpr int kVersion = 20;
constexpr int kFirstOfJanuary1980 = 0x21;  // no time of writing: the same tensors, the same bytes

// What a member's two headers have in common, from the version on.
void AppendMember(std::string& out, std::uint32_t crc, std::uint64_t size, std::string_view name) {
  AppendInteger(out, kVersion, 2);
  AppendInteger(out, 0, 4);  // no flags, stored
  AppendInteger(out, 0, 2);
  AppendInteger(out, kFirstOfJanuary1980, 2);
  AppendInteger(out, crc, 4);
  AppendInteger(out, size, 4);
  AppendInteger(out, size, 4);
  AppendInteger(out, name.size(), 2);
  AppendInteger(out, 0, 2);  // no extra field
}

}  // namespace

StatusOr<Bytes> PrintNpz(std::span<const NamedTensor> tensors) {
  constexpr std::uint64_t kMostBytes = 0xFFFFFFFFU;
  std::string file;
  std::string directory;
  for (const NamedTensor& tensor : tensors) {
    const std::string npy = Npy(tensor);
    const std::string name = tensor.name + ".npy";
    const std::uint64_t offset = file.size();
    if (offset + npy.size() + 1024 > kMostBytes || tensors.size() > 0xFFFFU) {
      return Error(StatusCode::kInvalidArgument,
                   "the model is too large for .npz; export it as .safetensors");
    }
    const std::uint32_t crc = Crc32(AsBytes(npy));
    file.append("PK\x03\x04", 4);
    AppendMember(file, crc, npy.size(), name);
    file += name;
    file += npy;
    directory.append("PK\x01\x02", 4);
    AppendInteger(directory, kVersion, 2);
    AppendMember(directory, crc, npy.size(), name);
    AppendInteger(directory, 0, 2);  // no comment
    AppendInteger(directory, 0, 8);  // first disk, no attributes
    AppendInteger(directory, offset, 4);
    directory += name;
  }
  const std::uint64_t start = file.size();
  file += directory;
  file.append("PK\x05\x06", 4);
  AppendInteger(file, 0, 4);
  AppendInteger(file, tensors.size(), 2);
  AppendInteger(file, tensors.size(), 2);
  AppendInteger(file, directory.size(), 4);
  AppendInteger(file, start, 4);
  AppendInteger(file, 0, 2);
  return Bytes(file.begin(), file.end());
}

}  // namespace domicile::models

#include "tests/support/tls_tape.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace domicile::test {

namespace {

constexpr std::uint64_t kLargestTape = std::uint64_t{1} << 28U;
constexpr std::string_view kSuffix = ".tape";
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// A record of the tap: direction, connection, size.
constexpr std::size_t kRecordHeader = 9;
// RFC 9113, section 4.1: length 24, type 8, flags 8, stream 32.
constexpr std::size_t kFrameHeader = 9;
constexpr std::uint8_t kDataFrame = 0;
constexpr std::uint8_t kPadded = 8;

Status TornTape(const std::string& what) { return Error(StatusCode::kDataLoss, what); }

std::uint8_t Byte(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

std::uint32_t LittleEndian(std::string_view text) {
  std::uint32_t number = 0;
  for (std::size_t i = 4; i-- > 0;) {
    number = number << 8U | Byte(text, i);
  }
  return number;
}

std::uint32_t BigEndian(std::string_view text, std::size_t bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    number = number << 8U | Byte(text, i);
  }
  return number;
}

std::string Base64(std::string_view text) {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i + 3 <= text.size(); i += 3) {
    const std::uint32_t bits = BigEndian(text.substr(i), 3);
    for (const unsigned shift : {18U, 12U, 6U, 0U}) {
      out.push_back(kLetters[bits >> shift & 63U]);
    }
  }
  return out;
}

std::string Hexadecimal(std::string_view text, std::string_view digits) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out.push_back(digits[Byte(text, i) >> 4U]);
    out.push_back(digits[Byte(text, i) & 15U]);
  }
  return out;
}

template <typename T>
void AddBytesOf(T number, std::vector<std::string>& forms) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  forms.push_back(bytes);
  std::reverse(bytes.begin(), bytes.end());
  forms.push_back(bytes);
}

}  // namespace

TlsTap::TlsTap(const std::string& folder) {
  setenv("DOMICILE_TLS_TAP", folder.c_str(), 1);
  setenv("LD_PRELOAD", DOMICILE_BINARY_DIR "/bin/tls_tap.so", 1);
}

TlsTap::~TlsTap() {
  unsetenv("LD_PRELOAD");
  unsetenv("DOMICILE_TLS_TAP");
}

StatusOr<std::vector<Tape>> ReadTapes(const std::string& folder) {
  std::vector<Tape> tapes;
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ListFiles(folder));
  for (const std::string& file : files) {
    if (!file.ends_with(kSuffix)) {
      continue;
    }
    ASSIGN_OR_RETURN(const std::string text, ReadFile(JoinPath(folder, file), kLargestTape));
    std::map<std::uint32_t, Tape> connections;
    for (std::string_view rest = text; !rest.empty();) {
      if (rest.size() < kRecordHeader) {
        return TornTape("`" + file + "` ends in a record's header");
      }
      const std::uint32_t connection = LittleEndian(rest.substr(1));
      const std::uint32_t size = LittleEndian(rest.substr(5));
      if (rest.size() - kRecordHeader < size) {
        return TornTape("`" + file + "` ends in a record");
      }
      Tape& tape = connections[connection];
      (rest[0] == '>' ? tape.sent : tape.received).append(rest.substr(kRecordHeader, size));
      rest.remove_prefix(kRecordHeader + size);
    }
    for (auto& [connection, tape] : connections) {
      tape.program = file.substr(0, file.size() - kSuffix.size());
      tape.connection = connection;
      tapes.push_back(std::move(tape));
    }
  }
  return tapes;
}

StatusOr<std::string> MessagesOf(std::string_view http2) {
  if (http2.starts_with(kPreface)) {
    http2.remove_prefix(kPreface.size());
  }
  std::map<std::uint32_t, std::string> streams;
  while (http2.size() >= kFrameHeader) {
    const std::uint32_t size = BigEndian(http2, 3);
    const std::uint8_t type = Byte(http2, 3);
    const std::uint8_t flags = Byte(http2, 4);
    const std::uint32_t stream = BigEndian(http2.substr(5), 4);
    http2.remove_prefix(kFrameHeader);
    // The last frame may have been cut when the program ended.
    std::string_view payload = http2.substr(0, size);
    http2.remove_prefix(payload.size());
    if (type != kDataFrame) {
      continue;
    }
    if ((flags & kPadded) != 0 && !payload.empty()) {
      const std::size_t padding = Byte(payload, 0);
      if (padding >= payload.size()) {
        return TornTape("a frame is padded beyond its end");
      }
      payload = payload.substr(1, payload.size() - 1 - padding);
    }
    streams[stream].append(payload);
  }
  std::string all;
  for (const auto& [stream, messages] : streams) {
    all.append(messages).push_back('\0');
  }
  return all;
}

std::vector<std::string> FormsOfText(std::string_view text) {
  std::vector<std::string> forms = {std::string(text), Hexadecimal(text, "0123456789abcdef"),
                                    Hexadecimal(text, "0123456789ABCDEF")};
  // Whatever stands before it, one of these is in the base64 of the whole: letters that also depend
  // on the neighbours are left out.
  for (std::size_t skip = 0; skip < 3; ++skip) {
    forms.push_back(Base64(text.substr(skip)));
  }
  std::string utf16;
  for (const char letter : text) {
    utf16.push_back(letter);
    utf16.push_back('\0');
  }
  utf16.pop_back();
  forms.push_back(utf16);
  return forms;
}

std::vector<std::string> FormsOfNumber(std::string_view text) {
  std::vector<std::string> forms = {std::string(text)};
  const double number = std::strtod(std::string(text).c_str(), nullptr);
  AddBytesOf(number, forms);
  AddBytesOf(static_cast<float>(number), forms);
  return forms;
}

}  // namespace domicile::test

#include "base/bytes.h"

#include <string>

#include <doctest/doctest.h>

#include "base/random.h"

namespace domicile {
namespace {

TEST_CASE("PrintHex and ParseHex: each text has one spelling") {
  CHECK(PrintHex(AsBytes("\x01\xAB")) == "01ab");
  CHECK(PrintHex(ByteSpan()).empty());
  CHECK(ParseHex("01ab").value() == Bytes{0x01, 0xAB});
  CHECK(ParseHex("").value().empty());

  for (const std::string_view bad : {"0", "01A", "01AB", "0x", "g0", " 0", "01 "}) {
    CAPTURE(bad);
    CHECK(ParseHex(bad).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("PrintBase64: the vectors of RFC 4648 section 10") {
  struct Case {
    std::string_view plain;
    std::string_view text;
  };
  const Case cases[] = {{"", ""},
                        {"f", "Zg=="},
                        {"fo", "Zm8="},
                        {"foo", "Zm9v"},
                        {"foob", "Zm9vYg=="},
                        {"fooba", "Zm9vYmE="},
                        {"foobar", "Zm9vYmFy"}};
  for (const Case& c : cases) {
    CAPTURE(c.plain);
    CHECK(PrintBase64(AsBytes(c.plain)) == c.text);
    CHECK(ParseBase64(c.text).value() == ToBytes(c.plain));
  }
}

TEST_CASE("ParseBase64: other spellings of the same bytes are refused") {
  // "Zh==" and "Zm9=" have bits set behind the last byte; the rest is another alphabet or form.
  for (const std::string_view bad : {"Zh==", "Zm9=", "Zg=", "Zg", "Z===", "====", "Zg==Zg==",
                                     "Zm9v\n", "Zm-_", "Z g=", "=g==", "Zg=A"}) {
    CAPTURE(bad);
    CHECK(ParseBase64(bad).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("Base64 and hexadecimal: every text that parses prints as itself") {
  SeededRandom random(7);
  for (std::size_t length = 0; length < 200; ++length) {
    Bytes bytes(length);
    random.Fill(bytes);

    CHECK(ParseBase64(PrintBase64(bytes)).value() == bytes);
    CHECK(ParseHex(PrintHex(bytes)).value() == bytes);
  }
}

TEST_CASE("Digest: zero is none, 64 digits or 32 bytes make one") {
  const std::string hex = "00" + std::string(60, 'a') + "ff";

  const StatusOr<Digest> digest = ParseDigest(hex);

  REQUIRE(digest.ok());
  CHECK(PrintHex(*digest) == hex);
  CHECK_FALSE(digest->IsZero());
  CHECK(Digest{}.IsZero());
  CHECK(DigestFromBytes(ByteSpan(digest->bytes)).value() == *digest);
  CHECK(ParseDigest(hex.substr(2)).status().code() == StatusCode::kInvalidArgument);
  CHECK(ParseDigest(hex + "00").status().code() == StatusCode::kInvalidArgument);
  CHECK(DigestFromBytes(AsBytes("short")).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("Little-endian numbers: written and read byte by byte") {
  Bytes out;
  AppendU32(out, 0x01020304U);
  AppendU64(out, 0xF102030405060708U);

  CHECK(PrintHex(out) == "0403020108070605040302f1");
  CHECK(ReadU32(out) == 0x01020304U);
  CHECK(ReadU64(ByteSpan(out).subspan(4)) == 0xF102030405060708U);
}

}  // namespace
}  // namespace domicile

#include "wire/shared_bytes.h"

#include <string>

#include <doctest/doctest.h>

#include "base/file.h"

namespace domicile::wire {
namespace {

TEST_CASE("SharedBytes: the bytes live as long as any copy") {
  SharedBytes last;
  {
    const SharedBytes first = ShareBytes(ToBytes("model"));
    last = first;
  }
  CHECK(AsText(last.bytes) == "model");
}

TEST_CASE("SharedBytes: a mapped file outlives its name") {
  const std::string path = std::string(DOMICILE_BINARY_DIR) + "/shared_bytes_test.bin";
  REQUIRE(WriteFileDurably(path, AsBytes("weights")).ok());

  const auto mapped = MapFile(path);
  REQUIRE(mapped.ok());
  REQUIRE(RemoveFile(path).ok());

  CHECK(AsText(mapped->bytes) == "weights");
}

TEST_CASE("SharedBytes: an empty file is no bytes; a folder or nothing is an error") {
  const std::string path = std::string(DOMICILE_BINARY_DIR) + "/shared_bytes_empty.bin";
  REQUIRE(WriteFileDurably(path, {}).ok());

  CHECK(MapFile(path)->bytes.empty());
  CHECK(MapFile(DOMICILE_BINARY_DIR).status().code() == StatusCode::kInvalidArgument);
  CHECK(MapFile(path + ".missing").status().code() == StatusCode::kNotFound);
  REQUIRE(RemoveFile(path).ok());
}

}  // namespace
}  // namespace domicile::wire

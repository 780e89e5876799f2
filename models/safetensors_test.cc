#include "models/safetensors.h"

#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace domicile::models {
namespace {

Bytes File(std::string_view header, std::size_t data_bytes) {
  Bytes file;
  AppendU64(file, header.size());
  file.insert(file.end(), header.begin(), header.end());
  file.resize(file.size() + data_bytes, 0);
  return file;
}

TEST_CASE("Safetensors: the bytes of a small file are those of the format") {
  const std::vector<NamedTensor> tensors = {{.name = "w", .shape = {2}, .values = {1.0F, -2.0F}},
                                            {.name = "b", .shape = {}, .values = {0.5F}}};

  const Bytes file = PrintSafetensors(tensors);

  std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("b":{"dtype":"F32","shape":[],"data_offsets":[8,12]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  Bytes want = File(header, 0);
  for (const std::uint32_t bits : {0x3F800000U, 0xC0000000U, 0x3F000000U}) {
    AppendU32(want, bits);
  }
  CHECK(PrintHex(file) == PrintHex(want));
  CHECK(ParseSafetensors(file).value() == tensors);
}

TEST_CASE("Safetensors: reads what other writers make") {
  // Metadata, another order of keys, I64, data in another order than the header.
  Bytes file = File(
      R"({"__metadata__":{"format":"pt"},"z":{"data_offsets":[0,8],"shape":[1],"dtype":"I64"},)"
      R"("a":{"dtype":"F32","shape":[1,1],"data_offsets":[8,12]}}   )",
      12);
  file[file.size() - 12] = 5;

  const auto tensors = ParseSafetensors(file).value();

  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "z");
  CHECK(tensors[0].integers == std::vector<std::int64_t>{5});
  CHECK(tensors[1].values == std::vector<float>{0.0F});
  CHECK(ParseSafetensors(File("{}", 0)).value().empty());
}

TEST_CASE("Safetensors: refuses every file that is not exactly one") {
  const struct {
    const char* name;
    Bytes file;
  } cases[] = {
      {"empty", {}},
      {"header beyond the file", File("{}", 0)},
      {"not an object", File("[]", 0)},
      {"white space first", File(" {}", 0)},
      {"not JSON", File("{x}", 0)},
      {"trailing data", File("{}", 1)},
      {"duplicate name", File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                              R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                              8)},
      {"overlap", File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                       8)},
      {"same place twice", File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                                4)},
      {"hole", File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8)},
      {"out of bounds", File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4)},
      {"backwards", File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4)},
      {"shape disagrees", File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4)},
      {"shape overflows",
       File(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}})", 0)},
      {"empty dimension", File(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})", 0)},
      {"negative", File(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4)},
      {"other dtype", File(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})", 8)},
      {"unknown key",
       File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"note":"x"}})", 4)},
      {"name", File(R"({"A/b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4)},
      {"free metadata", File(R"({"__metadata__":{"note":"x"}})", 0)},
      {"long format", File(R"({"__metadata__":{"format":"aaaaaaaaaaaaaaaaaaaaaaaa"}})", 0)},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    Bytes file = c.file;
    if (std::string_view(c.name) == "header beyond the file") {
      file[0] = 200;
    }
    CHECK(ParseSafetensors(file).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("Safetensors: limits hold before anything is allocated") {
  const Bytes file = PrintSafetensors(
      std::vector<NamedTensor>{{.name = "w", .shape = {2}, .values = {1.0F, 2.0F}}});

  CHECK(ParseSafetensors(file, {.max_header_bytes = 16}).status().code() ==
        StatusCode::kInvalidArgument);
  CHECK(ParseSafetensors(file, {.max_data_bytes = 7}).status().code() ==
        StatusCode::kInvalidArgument);
  CHECK(ParseSafetensors(file, {.max_tensors = 0}).status().code() == StatusCode::kInvalidArgument);
  CHECK(ParseSafetensors(file, {.max_data_bytes = 8, .max_tensors = 1}).ok());
}

TEST_CASE("Safetensors: Parse undoes Print") {
  CHECK(rc::check([] {
    std::vector<NamedTensor> tensors;
    const int count = *rc::gen::inRange(0, 5);
    for (int i = 0; i < count; ++i) {
      NamedTensor tensor;
      tensor.name = "t" + std::to_string(i) + ".weight";
      tensor.shape =
          *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(1, 4));
      tensor.shape.resize(std::min<std::size_t>(tensor.shape.size(), 4));
      std::size_t size = 1;
      for (const std::uint64_t s : tensor.shape) {
        size *= s;
      }
      if (*rc::gen::arbitrary<bool>()) {
        tensor.type = DataType::kInt64;
        tensor.integers = *rc::gen::container<std::vector<std::int64_t>>(
            size, rc::gen::arbitrary<std::int64_t>());
      } else {
        tensor.values = *rc::gen::container<std::vector<float>>(size, rc::gen::arbitrary<float>());
      }
      tensors.push_back(tensor);
    }
    RC_ASSERT(ParseSafetensors(PrintSafetensors(tensors)).value() == tensors);
  }));
}

TEST_CASE("CheckFinite: names the tensor and the index") {
  std::vector<NamedTensor> tensors = {{.name = "w", .shape = {3}, .values = {1.0F, 2.0F, 3.0F}}};
  CHECK(CheckFinite(tensors).ok());
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    tensors[0].values[1] = bad;
    const Status status = CheckFinite(tensors);
    CHECK(Message(status) == "tensor `w` is not finite at index 1");
  }
}

}  // namespace
}  // namespace domicile::models

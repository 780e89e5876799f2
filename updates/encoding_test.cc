#include "updates/encoding.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"
#include "updates/clip.h"

namespace domicile::updates {
namespace {

GridPlan MakePlan() { return *GridPlan::Create(4, 1000, 1, 1); }

TEST_CASE("Encoding: names and numbers match both ways, and unknown names are nothing") {
  for (const Encoding encoding : {Encoding::kF32, Encoding::kI64}) {
    CHECK(EncodingFromName(EncodingName(encoding)) == encoding);
  }
  for (const std::string_view name : {"", "F32", "int8", "topk", "f64"}) {
    CHECK_FALSE(EncodingFromName(name).has_value());
  }
}

TEST_CASE("GridFloats: a number that is not on the grid is refused by its index alone") {
  struct Case {
    const char* name;
    float value;
    StatusCode code;
    const char* message;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const Case cases[] = {
      {"nan", nan, StatusCode::kInvalidArgument, "is not finite"},
      {"infinity", infinity, StatusCode::kInvalidArgument, "is not finite"},
      {"between levels", 0.03F, StatusCode::kInvalidArgument, "is not on the grid"},
      {"smallest float", std::numeric_limits<float>::denorm_min(), StatusCode::kInvalidArgument,
       "is not on the grid"},
      {"negative zero", -0.0F, StatusCode::kInvalidArgument, "is -0, which the grid does not have"},
      {"one level too far", 62.5625F, StatusCode::kOutOfRange,
       "is beyond the grid's largest level"},
      {"far too far", -3e38F, StatusCode::kOutOfRange, "is beyond the grid's largest level"},
  };
  // In a vector part, in the tail of one, and behind a whole block.
  for (const std::size_t index : {std::size_t{5}, std::size_t{163}, kNormBlock + 3}) {
    for (const Case& c : cases) {
      CAPTURE(c.name);
      CAPTURE(index);
      std::vector<float> values(index < kNormBlock ? 164 : kNormBlock + 20, 0.0625F);
      values[index] = c.value;
      const auto floats = GridFloats::Check(MakePlan(), EncodeF32(values));
      CHECK(floats.status().code() == c.code);
      CHECK(Message(floats.status()) == "number " + std::to_string(index) + " " + c.message);
    }
  }
}

TEST_CASE("GridFloats: the largest levels pass, with the norm that L2Norm gives") {
  std::vector<float> values(kNormBlock + 37, -62.5F);
  values[3] = 62.5F;
  const Bytes bytes = EncodeF32(values);

  const auto floats = GridFloats::Check(MakePlan(), bytes);

  REQUIRE(floats.ok());
  CHECK(floats->Count() == values.size());
  CHECK(floats->Norm() == *L2Norm(values));
  CHECK(floats->Slice(3, 2).Count() == 2);
  CHECK(*DecodeLevels(MakePlan(), Encoding::kF32, floats->Slice(3, 2).Encoded()) ==
        std::vector<std::int64_t>{1000, -1000});
}

TEST_CASE("GridFloats: any alignment gives the same answer") {
  std::vector<float> values(100);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i) / 16.0F;
  }
  Bytes bytes = EncodeF32(values);
  const double norm = GridFloats::Check(MakePlan(), bytes)->Norm();
  for (std::size_t shift = 1; shift < 4; ++shift) {
    Bytes shifted(shift, 0);
    shifted.insert(shifted.end(), bytes.begin(), bytes.end());
    const auto floats = GridFloats::Check(MakePlan(), ByteSpan(shifted).subspan(shift));
    REQUIRE(floats.ok());
    CHECK(floats->Norm() == norm);
  }
}

TEST_CASE("GridFloats: lengths and grids that cannot be floats are refused") {
  const Bytes bytes(7, 0);
  CHECK_FALSE(GridFloats::Check(MakePlan(), bytes).ok());
  const GridPlan wide = *GridPlan::Create(0, kLargestFloatLevel + 1, 1, 1);
  CHECK_FALSE(GridFloats::Check(wide, Bytes(8, 0)).ok());
}

TEST_CASE("DecodeLevels: both encodings decode to the same integers") {
  SeededRandom random(11);
  std::vector<std::int64_t> levels;
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) {
    levels.push_back(static_cast<std::int64_t>(random.Below(2001)) - 1000);
    values.push_back(static_cast<float>(std::ldexp(static_cast<double>(levels.back()), -4)));
  }
  CHECK(*DecodeLevels(MakePlan(), Encoding::kI64, EncodeI64(levels)) == levels);
  CHECK(*DecodeLevels(MakePlan(), Encoding::kF32, EncodeF32(values)) == levels);
}

TEST_CASE("DecodeLevels: an i64 beyond the grid is refused by its index alone") {
  for (const std::int64_t bad :
       {std::int64_t{1001}, std::int64_t{-1001}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()}) {
    const auto levels = DecodeLevels(MakePlan(), Encoding::kI64,
                                     EncodeI64(std::vector<std::int64_t>{1000, -1000, bad, bad}));
    CHECK(levels.status().code() == StatusCode::kOutOfRange);
    CHECK(Message(levels.status()) == "number 2 is beyond the grid's largest level");
  }
  CHECK_FALSE(DecodeLevels(MakePlan(), Encoding::kI64, Bytes(12, 0)).ok());
  CHECK_FALSE(DecodeLevels(MakePlan(), Encoding::kNone, {}).ok());
}

}  // namespace
}  // namespace domicile::updates

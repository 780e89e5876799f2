// Properties: what ParseUpdate accepts, EncodeUpdate writes back as the same bytes; and what the
// grid accepts of it adds up to the same sum, as floats and as decoded levels.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "updates/exact_sum.h"
#include "updates/update.h"

namespace {

using domicile::ByteSpan;
using namespace domicile::updates;  // NOLINT(google-build-using-namespace): the subject of the file

void TrySection(const SectionView& section) {
  constexpr std::int64_t kMaxLevel = std::int64_t{1} << 40U;
  const auto plan = GridPlan::Create(section.info.scale_bits, kMaxLevel, 1000, 2);
  DOMICILE_CHECK(plan.ok());
  const auto levels = DecodeLevels(*plan, section.info.encoding, section.bytes);
  if (section.info.encoding != Encoding::kF32) {
    DOMICILE_CHECK(!levels.ok() || EncodeI64(*levels).size() == section.bytes.size());
    return;
  }
  const auto floats = GridFloats::Check(*plan, section.bytes);
  DOMICILE_CHECK(floats.ok() == levels.ok());
  if (floats.ok()) {
    ExactSum by_floats(*plan, floats->Count());
    ExactSum by_levels(*plan, floats->Count());
    DOMICILE_CHECK(by_floats.Add(*floats, 999).ok() && by_levels.AddLevels(*levels, 999).ok());
    for (std::size_t i = 0; i < levels->size(); ++i) {
      DOMICILE_CHECK(by_floats.Levels()[i] == by_levels.Levels()[i]);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto update = ParseUpdate(ByteSpan(data, size));
  if (!update.ok()) {
    return 0;
  }
  std::vector<ByteSpan> payloads;
  for (const SectionView& section : update->sections) {
    payloads.push_back(section.bytes);
    TrySection(section);
  }
  const auto bytes = EncodeUpdate(update->manifest, payloads);
  DOMICILE_CHECK(bytes.ok() && bytes->size() == size);
  for (std::size_t i = 0; i < size; ++i) {
    DOMICILE_CHECK((*bytes)[i] == data[i]);
  }
  return 0;
}

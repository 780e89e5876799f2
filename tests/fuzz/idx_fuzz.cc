// An IDX file, plain or gzip. Whoever is accepted has as many bytes as its shape says, and nothing
// is unpacked beyond the limit.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "site_agent/datasets/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  constexpr std::uint64_t kLimit = 1 << 16;
  StatusOr<Bytes> bytes = site_agent::Gunzip({data, size}, kLimit);
  if (!bytes.ok()) {
    return 0;
  }
  const bool is_gzip = size >= 2 && data[0] == 0x1F && data[1] == 0x8B;
  DOMICILE_CHECK(is_gzip ? bytes->size() <= kLimit : bytes->size() == size);
  const StatusOr<site_agent::IdxArray> array = site_agent::ParseIdx(*std::move(bytes));
  if (array.ok()) {
    std::uint64_t product = 1;
    for (const std::uint32_t length : array->shape) {
      product *= length;
    }
    DOMICILE_CHECK(!array->shape.empty() && product == array->values.size());
  }
  return 0;
}

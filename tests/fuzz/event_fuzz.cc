// Property: a leaf that is accepted prints back to the very bytes it was read from, and its event
// is one that a builder would make.
#include <cstddef>
#include <cstdint>
#include <string>

#include "audit/event.h"

using domicile::audit::ParseLeaf;
using domicile::audit::PrintLeaf;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto leaf = ParseLeaf(bytes);
  if (leaf.ok()) {
    const auto printed = PrintLeaf(leaf->frame, leaf->event);
    DOMICILE_CHECK(printed.ok() && *printed == bytes);
    DOMICILE_CHECK(leaf->event.Text("no such field").empty());
  }
  return 0;
}

#include "models/memory.h"

#include <cstdlib>
#include <cstring>

#include "base/status.h"

namespace domicile::models {
namespace {

constexpr std::size_t kAlignment = 64;

class Host final : public Memory {
 public:
  bool IsHost() const override { return true; }

  void* Allocate(std::size_t bytes) override {
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* const memory = std::aligned_alloc(kAlignment, std::max(rounded, kAlignment));
    DOMICILE_CHECK(memory != nullptr);
    return memory;
  }
  void Free(void* memory) override { std::free(memory); }

  void Copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) {
      std::memcpy(to, from, bytes);
    }
  }
  void Zero(void* memory, std::size_t bytes) override {
    if (bytes > 0) {
      std::memset(memory, 0, bytes);
    }
  }
};

}  // namespace

Memory& HostMemory() {
  static Host host;
  return host;
}

}  // namespace domicile::models

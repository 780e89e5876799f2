// Large buffers on huge pages: linked into programs that hold whole models, it replaces the global
// operator new. A model passes through buffers that are made for one phase; with pages of 4 KiB
// the kernel's work of mapping and clearing them costs more than all that is done with the bytes
// (docs/decisions/0010-large-buffers-on-huge-pages.md). Only advice: a kernel without huge pages
// ignores it.
#include <cstddef>
#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20U;
// Below this, what is lost to rounding up is not worth it.
constexpr std::size_t kLarge = 2 * kHugePage;

void* TryAllocate(std::size_t size) noexcept {
  if (size < kLarge) {
    return std::malloc(size == 0 ? 1 : size);
  }
  void* const memory = std::aligned_alloc(kHugePage, size);
  if (memory != nullptr) {
    // The last huge page only if it is whole: what lies behind belongs to the allocator.
    madvise(memory, size / kHugePage * kHugePage, MADV_HUGEPAGE);
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t size) {
  while (true) {
    if (void* const memory = TryAllocate(size)) {
      return memory;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) {
      throw std::bad_alloc();
    }
    handler();
  }
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

// Where values live: in the host's memory or in that of a device. The program itself reads and
// writes host memory only; what lies elsewhere is touched by the operations of its device, and
// comes and goes by Memory::Copy. Why so: docs/decisions/0017-memory-of-devices.md.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace domicile::models {

// One thread at a time, but for the host's, which is thread-safe.
class Memory {
 public:
  virtual ~Memory() = default;

  virtual bool IsHost() const = 0;
  // Aligned to 64 bytes; what it holds is unspecified. `bytes` may be 0. Host memory that is used
  // up aborts; a device gives null and has failed (Device::Check).
  virtual void* Allocate(std::size_t bytes) = 0;
  virtual void Free(void* memory) = 0;
  // Each side may lie here or in the host's memory. After the call the host may read `to` and
  // write over `from`.
  virtual void Copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void Zero(void* memory, std::size_t bytes) = 0;
};

Memory& HostMemory();

template <typename T>
void Copy(Memory& memory, std::span<const T> from, std::span<T> to) {
  static_assert(std::is_trivially_copyable_v<T>);
  memory.Copy(to.data(), from.data(), std::min(from.size(), to.size()) * sizeof(T));
}

// Owns room for numbers in one memory, which must outlive it. Move-only. One thread at a time.
template <typename T>
class Buffer {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  Buffer() = default;
  // Zeros.
  Buffer(std::size_t size, Memory& memory) {
    Resize(size, memory);
    memory.Zero(values_.get(), size * sizeof(T));
  }

  // Keeps the storage where it is large enough and lies in `memory`; what the elements hold
  // afterwards is unspecified.
  void Resize(std::size_t size, Memory& memory) {
    if (values_ == nullptr || size > capacity_ || values_.get_deleter().memory != &memory) {
      values_.reset();  // first, so that the two are never held at once
      values_ = {static_cast<T*>(memory.Allocate(size * sizeof(T))), Free{&memory}};
      capacity_ = size;
    }
    size_ = size;
  }

  std::size_t size() const { return size_; }
  T* data() { return values_.get(); }
  const T* data() const { return values_.get(); }
  std::span<T> Values() { return {values_.get(), size_}; }
  std::span<const T> Values() const { return {values_.get(), size_}; }
  Memory& memory() const {
    return values_.get_deleter().memory == nullptr ? HostMemory() : *values_.get_deleter().memory;
  }

 private:
  struct Free {
    Memory* memory = nullptr;
    void operator()(T* values) const { memory->Free(values); }
  };

  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::unique_ptr<T, Free> values_;
};

}  // namespace domicile::models

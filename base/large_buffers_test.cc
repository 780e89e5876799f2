#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

// The line of /proc/self/smaps that says with which flags the memory at `address` is mapped.
std::string FlagsOf(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      inside = begin <= wanted && wanted < end;
    } else if (inside && line.starts_with("VmFlags:")) {
      return line + " ";
    }
  }
  return {};
}

}  // namespace

TEST_CASE("operator new: a large buffer begins on a huge page and is advised to use them") {
  std::vector<std::uint8_t> buffer(std::size_t{9} << 20U, 1);

  CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % (std::size_t{2} << 20U) == 0);
  if (std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").good()) {
    CHECK(FlagsOf(buffer.data()).find(" hg ") != std::string::npos);
  }
}

TEST_CASE("operator new: buffers of all sizes keep their bytes and can be given back and grown") {
  std::vector<std::vector<std::uint32_t>> buffers;
  for (std::size_t size = 0; size <= 4'000'000; size = size * 2 + 1) {
    buffers.emplace_back(size);
    std::iota(buffers.back().begin(), buffers.back().end(), 0U);
  }
  for (std::vector<std::uint32_t>& buffer : buffers) {
    buffer.reserve(buffer.size() + (std::size_t{1} << 20U));
  }

  for (const std::vector<std::uint32_t>& buffer : buffers) {
    CHECK((buffer.empty() || buffer.back() == buffer.size() - 1));
  }
}

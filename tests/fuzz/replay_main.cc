// Replays a corpus through a fuzz target, so that without libFuzzer it is still built and run by
// every test run. Each file is tried whole, cut at every length, and with each byte changed.
// usage: NAME_fuzz CORPUS_DIR
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kMaxMutatedBytes = 4096;  // longer files are tried whole only

void Replay(std::vector<std::uint8_t> bytes) {
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  if (bytes.size() > kMaxMutatedBytes) {
    return;
  }
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    // An exact copy, so that a read past the end is a heap overflow under the sanitizer.
    const std::vector<std::uint8_t> prefix(bytes.begin(),
                                           bytes.begin() + static_cast<std::ptrdiff_t>(length));
    LLVMFuzzerTestOneInput(prefix.data(), prefix.size());
  }
  for (std::uint8_t& byte : bytes) {
    const std::uint8_t original = byte;
    for (const std::uint8_t flip : {std::uint8_t{1}, std::uint8_t{0x80}, std::uint8_t{0xFF}}) {
      byte = static_cast<std::uint8_t>(original ^ flip);
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    byte = original;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_DIR\n", argv[0]);
    return 2;
  }
  std::error_code error;
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1], error)) {
    if (!entry.is_regular_file()) {
      continue;
    }
    std::ifstream file(entry.path(), std::ios::binary);
    Replay({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    ++files;
  }
  std::printf("replayed %d files\n", files);
  return files > 0 && !error ? 0 : 1;
}

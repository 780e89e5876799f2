#include "models/data/disk_cache.h"

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "models/data/pipeline.h"

namespace domicile::models {
namespace {

std::string TestFolder() {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("domicile_spill_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  return folder;
}

// Words of different lengths, the empty one among them.
std::string WordOf(std::size_t i) { return std::string(i % 5, static_cast<char>('a' + i % 26)); }

const Codec<std::string> kCodec = {
    .print = [](const std::string& word,
                Bytes& out) { out.insert(out.end(), word.begin(), word.end()); },
    .parse = [](ByteSpan bytes) { return std::string(AsText(bytes)); }};

std::vector<std::string> Drain(Stage<std::string>& stage) {
  std::vector<std::string> all;
  while (const std::optional<std::string> element = stage.Next()) {
    all.push_back(*element);
  }
  return all;
}

TEST_CASE("DiskCache: later epochs come from the file, as far as it goes") {
  const std::string folder = TestFolder();
  std::vector<std::string> want;
  for (std::size_t i = 0; i < 20; ++i) {
    want.push_back(WordOf(i));
  }
  const struct {
    std::uint64_t max_bytes;
    int made_again;  // in each later epoch
  } cases[] = {
      {1000, 0},  // all: 40 bytes
      {40, 0},
      {20, 9},  // ten words are 20 bytes, and so are eleven: the next is empty
      {0, 19},  // the first word is empty, and fits
  };
  for (const auto& c : cases) {
    CAPTURE(c.max_bytes);
    std::atomic<int> made = 0;
    const std::function<std::string(const std::size_t&)> make = [&made](const std::size_t& i) {
      ++made;
      return WordOf(i);
    };
    const auto cached = CacheOnDisk(Map(Range(20), make, 1), folder, c.max_bytes, kCodec).value();
    CHECK(Drain(*cached) == want);
    CHECK(made == 20);
    for (int epoch = 1; epoch < 4; ++epoch) {
      made = 0;
      cached->Restart(static_cast<std::uint64_t>(epoch));
      CHECK(Drain(*cached) == want);
      CHECK_FALSE(cached->Next().has_value());
      CHECK(made == c.made_again);
    }
    CHECK(std::filesystem::is_empty(folder));  // nothing there has a name
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("DiskCache: an epoch that is cut short or begins in the middle loses nothing") {
  const std::string folder = TestFolder();
  const std::function<std::string(const std::size_t&)> make = [](const std::size_t& i) {
    return WordOf(i);
  };
  const auto cached = CacheOnDisk(Map(Range(20), make, 1), folder, 1000, kCodec).value();
  CHECK(cached->Next() == WordOf(0));
  CHECK(cached->Next() == WordOf(1));
  cached->Restart(1);
  CHECK(cached->Skip(7) == 7);  // beyond what the file has
  CHECK(cached->Next() == WordOf(7));
  cached->Restart(2);
  CHECK(Drain(*cached).size() == 20);
  cached->Restart(3);
  CHECK(cached->Skip(25) == 20);
  CHECK_FALSE(cached->Next().has_value());
  cached->Restart(4);
  CHECK(cached->Next() == WordOf(0));
  std::filesystem::remove_all(folder);
}

TEST_CASE("SpillFile: keeps its bound, forgets what is cut off, and says where it cannot be") {
  const std::string folder = TestFolder();
  SpillFile file = SpillFile::Create(folder, 10).value();
  Bytes read;
  CHECK(file.Append(Bytes{1, 2, 3}));
  CHECK(file.Append(Bytes{}));
  CHECK(file.Append(Bytes(7, 9)));
  CHECK_FALSE(file.Append(Bytes{1}));
  CHECK(file.NumRecords() == 3);
  CHECK(file.SizeBytes() == 10);
  REQUIRE(file.Read(1, read));
  CHECK(read.empty());
  file.Truncate(1);
  CHECK(file.Append(Bytes{5}));
  REQUIRE(file.Read(1, read));
  CHECK(read == Bytes{5});
  REQUIRE(file.Read(0, read));
  CHECK(read == Bytes{1, 2, 3});
  std::filesystem::remove_all(folder);
  CHECK(SpillFile::Create(folder, 10).status().code() == StatusCode::kNotFound);
}

}  // namespace
}  // namespace domicile::models

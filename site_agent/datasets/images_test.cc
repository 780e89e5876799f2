// Sources of pictures: manifests, folders of classes, IDX files.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "site_agent/datasets/dataset.h"
#include "site_agent/datasets/idx.h"
#include "site_agent/datasets/picture.h"
#include "site_agent/datasets/testing.h"

namespace domicile::site_agent {
namespace {

using contracts::DatasetDescription;
using contracts::DataSource;

const std::string kCase = DOMICILE_SOURCE_DIR "/tests/golden/cases/C11/";

DatasetDescription DescribeManifest(const std::string& manifest) {
  DatasetDescription description = Describe({manifest});
  description.source = DataSource::kImages;
  description.columns = {Column("image", "file")};
  return description;
}

TEST_CASE("ReadTable: every picture that is not one is named by manifest line and file (C11)") {
  const auto table = ReadTable(DescribeManifest(kCase + "manifest.csv"));

  REQUIRE_FALSE(table.ok());
  CHECK(table.TheFault().Travels().rows_refused == 4);
  CHECK(table.TheFault().Travels().reason == policy::Reason::kDatasetInvalid);
  const std::vector<std::string>& lines = table.TheFault().LocalLines();
  REQUIRE(lines.size() == 4);
  const auto names = [&](const std::string& line, int number, const std::string& file,
                         const std::string& what) {
    CAPTURE(line);
    CHECK(Contains(
        line, kCase + "manifest.csv:" + std::to_string(number) + ": " + kCase + "images/" + file));
    CHECK(Contains(line, what));
  };
  names(lines[0], 8, "truncated.jpg", "not a whole JPEG file");
  names(lines[1], 11, "text_named.png", "neither a PNG nor a JPEG file");
  names(lines[2], 12, "empty.png", "the file is empty");
  names(lines[3], 13, "absent.png", "there is no such file");
}

TEST_CASE("LoadDataset: unreadable pictures are left out where the site says so (C11)") {
  DatasetDescription description = DescribeManifest(kCase + "manifest.csv");
  description.unreadable = contracts::Unreadable::kMissing;
  const auto schema = Pictures(3, 8, 8, {"0", "1"});

  const auto kept = LoadDataset(description, schema);
  REQUIRE_FALSE(kept.ok());
  CHECK(Contains(FaultText(kept.TheFault()), ":8: column 1 `file`: the picture is missing"));

  description.rows_with_missing = contracts::RowsWithMissing::kDrop;
  const auto data = LoadDataset(description, schema);
  REQUIRE(data.ok());
  CHECK(data->counts.read == 12);
  CHECK(data->counts.dropped == 4);
  CHECK(data->counts.used == 8);
  CHECK(data->missing_counts == std::vector<std::uint64_t>{4});
  CHECK(data->training.NumRows() == 8);
  CHECK(data->training.num_inputs == 0);
  CHECK(data->training.labels == std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1, 1, 0});
  REQUIRE(data->training.pixels.size() == 8 * 3 * 64);
  // The second row is grey: three equal planes, as registration and training decode alike.
  const auto plane = [&](std::size_t at) {
    const auto first = data->training.pixels.begin() + static_cast<std::ptrdiff_t>(192 + 64 * at);
    return std::vector<std::uint8_t>(first, first + 64);
  };
  CHECK(plane(0) == plane(1));
  CHECK(plane(0) == plane(2));
  bool is_named = false;
  for (const std::string& notice : data->notices) {
    is_named = is_named || (Contains(notice, "absent.png") && Contains(notice, "missing"));
  }
  CHECK(is_named);
}

TEST_CASE("ReadTable: a manifest leads nowhere but into its folder") {
  const Folder folder;
  const std::string picture = PrintPicture({1, 1, 1, {7}});
  folder.Write("in.png", picture);
  std::filesystem::create_directory(JoinPath(folder.Path(), "sub"));
  const auto read = [&](const std::string& name) {
    return ReadTable(DescribeManifest(folder.Write("sub/m.csv", "file,label\n" + name + ",a\n")));
  };
  folder.Write("sub/ok.png", picture);

  CHECK(read("ok.png").ok());
  CHECK(read("./ok.png").ok());
  const auto above = read("../in.png");
  REQUIRE_FALSE(above.ok());
  CHECK(Contains(FaultText(above.TheFault()), "m.csv:2: "));
  CHECK(Contains(FaultText(above.TheFault()), "leads out of the folder"));
  CHECK_FALSE(read(JoinPath(folder.Path(), "sub/ok.png")).ok());

  auto elsewhere = DescribeManifest(folder.Write("sub/m.csv", "file,label\nin.png,a\n"));
  CHECK_FALSE(ReadTable(elsewhere).ok());
  elsewhere.folder = folder.Path();
  CHECK(ReadTable(elsewhere).ok());
  elsewhere.columns.clear();
  CHECK(Contains(FaultText(ReadTable(elsewhere).TheFault()),
                 "m.csv:1: no column `image` of picture files; found `file`, `label`"));
}

TEST_CASE("LoadDataset: without a manifest every folder is a class, in the order of names") {
  const Folder folder;
  std::filesystem::create_directory(JoinPath(folder.Path(), "dog"));
  std::filesystem::create_directory(JoinPath(folder.Path(), "cat"));
  folder.Write("dog/1.png", PrintPicture({1, 1, 1, {3}}));
  folder.Write("cat/b.png", PrintPicture({1, 1, 1, {2}}));
  folder.Write("cat/a.png", PrintPicture({1, 1, 1, {1}}));
  DatasetDescription description = Describe({});
  description.source = DataSource::kImages;
  description.folder = folder.Path();

  const auto data = LoadDataset(description, Pictures(1, 1, 1, {"dog", "cat"}));
  REQUIRE(data.ok());
  CHECK(data->training.pixels == std::vector<std::uint8_t>{1, 2, 3});
  CHECK(data->training.labels == std::vector<std::uint32_t>{1, 1, 0});

  const auto unknown = LoadDataset(description, Pictures(1, 1, 1, {"dog", "bird"}));
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.TheFault().Travels().rows_refused == 2);
  CHECK(Contains(FaultText(unknown.TheFault()),
                 "cat picture 1: column 2 `label`: label not declared by the job"));
}

// Two pictures of 1 x 3 and their labels, as the world writes them.
const std::string kTwoPictures("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03\x01\x02\x03\x04\x05\x06",
                               22);
const std::string kTwoLabels("\0\0\x08\x01\0\0\0\x02\x09\0", 10);

DatasetDescription DescribeIdx(std::string images, std::string labels) {
  DatasetDescription description = Describe({std::move(images)});
  description.source = DataSource::kIdx;
  description.labels = {std::move(labels)};
  description.columns = {Column("label")};
  description.columns[0].codes = {{"0", "top"}, {"9", "boot"}};
  return description;
}

TEST_CASE("LoadDataset: IDX pictures and labels belong to each other in order") {
  const Folder folder;
  const auto description =
      DescribeIdx(folder.Write("i", kTwoPictures), folder.Write("l", kTwoLabels));

  const auto data = LoadDataset(description, Pictures(1, 1, 3, {"top", "boot"}));

  REQUIRE(data.ok());
  CHECK(data->training.pixels == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6});
  CHECK(data->training.labels == std::vector<std::uint32_t>{1, 0});
}

TEST_CASE("ReadTable: IDX files that do not belong together, or say what is not so, are refused") {
  const Folder folder;
  const auto refusal = [&](const std::string& images, const std::string& labels) {
    const auto table = ReadTable(DescribeIdx(folder.Write("i", images), folder.Write("l", labels)));
    REQUIRE_FALSE(table.ok());
    return FaultText(table.TheFault());
  };
  std::string three = kTwoLabels + '\0';
  three[7] = 3;
  CHECK(Contains(refusal(kTwoPictures, three), "2 pictures, but 3 labels"));
  CHECK(Contains(refusal(kTwoPictures, kTwoLabels + "x"), "another number of bytes"));
  CHECK(Contains(refusal(kTwoPictures.substr(0, 20), kTwoLabels), "another number of bytes"));
  CHECK(Contains(refusal(kTwoPictures.substr(0, 9), kTwoLabels), "ends in its header"));
  CHECK(Contains(refusal(kTwoLabels, kTwoLabels), "pictures are `idx3`"));
  CHECK(Contains(refusal("\x89PNG", kTwoLabels), "not an IDX file"));
  std::string huge = kTwoPictures;
  huge.replace(4, 12, std::string(12, '\xFF'));  // a product beyond 64 bits
  CHECK(Contains(refusal(huge, kTwoLabels), "another number of bytes"));
}

TEST_CASE("Gunzip: whole files are unpacked, damaged ones and bombs are refused") {
  const Folder folder;
  const std::string plain = folder.Write("plain", std::string(3'000'000, 'a'));
  REQUIRE(std::system(("gzip -k " + plain).c_str()) == 0);
  const std::string packed = ReadFile(plain + ".gz", 1 << 20).value();

  CHECK(Gunzip(AsBytes(packed), 3'000'000).value() == Bytes(3'000'000, 'a'));
  CHECK(Gunzip(AsBytes(packed + packed), 6'000'000).value().size() == 6'000'000);
  CHECK(Gunzip(AsBytes("plain text"), 100).value() == ToBytes("plain text"));
  const auto refusal = [](std::string_view file, std::uint64_t max_bytes) {
    return std::string(Message(Gunzip(AsBytes(file), max_bytes).status()));
  };
  CHECK(Contains(refusal(packed, 2'999'999), "more than 2999999 bytes when unpacked"));
  CHECK(Contains(refusal(packed.substr(0, packed.size() - 1), 3'000'000), "ends early"));
  std::string damaged = packed;
  damaged[packed.size() - 6] ^= 1;  // of the checksum
  CHECK(Contains(refusal(damaged, 3'000'000), "a damaged gzip file"));
  CHECK(Contains(refusal(packed + "x", 6'000'000), "ends early"));
}

TEST_CASE("LoadDataset: Fashion-MNIST, as its package lays it down") {
  const std::string folder = "/usr/share/datasets/fashion-mnist/";
  if (!FileExists(folder + "t10k-images-idx3-ubyte.gz")) {
    MESSAGE("skipped: Fashion-MNIST is not installed (Debian: dataset-fashion-mnist)");
    return;
  }
  DatasetDescription description = Describe({folder + "t10k-images-idx3-ubyte.gz"});
  description.source = DataSource::kIdx;
  description.labels = {folder + "t10k-labels-idx1-ubyte.gz"};

  const auto data = LoadDataset(
      description, Pictures(1, 28, 28, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));

  REQUIRE(data.ok());
  CHECK(data->training.NumRows() == 10'000);
  const std::vector<std::uint32_t>& labels = data->training.labels;
  for (std::uint32_t label = 0; label < 10; ++label) {
    CHECK(std::count(labels.begin(), labels.end(), label) == 1'000);
  }
  CHECK(labels[0] == 9);  // a boot
  const std::vector<std::uint8_t>& pixels = data->training.pixels;
  CHECK(pixels.size() == 10'000 * 784);
  // The published mean of the test pictures, 0.2868 of 255.
  const double mean = std::accumulate(pixels.begin(), pixels.end(), 0.0) / (10'000 * 784 * 255.0);
  CHECK(mean == doctest::Approx(0.2868).epsilon(1e-3));
}

}  // namespace
}  // namespace domicile::site_agent

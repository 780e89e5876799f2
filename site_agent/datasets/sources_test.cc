// Sources that hold numbers as numbers: SQLite databases and arrays.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/file.h"
#include "base/sqlite.h"
#include "site_agent/datasets/arrays.h"
#include "site_agent/datasets/csv.h"
#include "site_agent/datasets/dataset.h"
#include "site_agent/datasets/internal/number_text.h"
#include "site_agent/datasets/picture.h"
#include "site_agent/datasets/testing.h"

namespace domicile::site_agent {
namespace {

using contracts::DatasetDescription;
using contracts::DataSource;

TEST_CASE("NumberCell: every finite number reads back to the same bits, with either mark") {
  REQUIRE(rc::check([] {
    const auto bits = *rc::gen::arbitrary<std::uint64_t>();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    for (const char mark : {'.', ','}) {
      const std::optional<std::string> cell = internal::NumberCell(value, mark);
      RC_ASSERT(cell.has_value() == std::isfinite(value));
      if (cell) {
        const std::optional<double> read = ParseNumber(*cell, mark, std::nullopt);
        RC_ASSERT(read.has_value());
        RC_ASSERT(std::memcmp(&*read, &value, sizeof value) == 0);
      }
    }
  }));
}

class Ward {
 public:
  Ward() {
    Database db = Database::Open(Path(), Database::Mode::kCreate).value();
    REQUIRE(db.Execute("CREATE TABLE ward (id INTEGER, chol REAL, sex TEXT, died INTEGER, x);"
                       "INSERT INTO ward VALUES (1, 0.1, 'M', 0, NULL), (2, 6, 'F', 1, 1e999),"
                       " (3, NULL, 'M', 0, x'414200'), (4, -1e-300, '', 1, 'a,\"b')")
                .ok());
  }

  std::string Path() const { return JoinPath(folder_.Path(), "ward.db"); }

  DatasetDescription Describe(std::string query) const {
    DatasetDescription description = site_agent::Describe({Path()});
    description.source = DataSource::kSqlite;
    description.query = std::move(query);
    return description;
  }

 private:
  Folder folder_;
};

TEST_CASE("LoadDataset: a query of a database gives the table, its numbers to the last bit") {
  const Ward ward;
  auto description =
      ward.Describe("SELECT id, chol, sex AS s, died AS label FROM ward ORDER BY id DESC");
  description.decimal_mark = ',';
  description.columns = {Column("sex", "s")};

  const auto schema = [] {
    contracts::SchemaContract numbers = Numbers({"chol"}, "label");
    numbers.features.push_back({"sex", contracts::FeatureKind::kCategory, false, {"M"}});
    return numbers;
  }();
  const auto data = LoadDataset(description, schema);

  REQUIRE(data.ok());
  CHECK(data->training.inputs == std::vector<double>{-1e-300, 0, 0, 1, 6, 0, 0.1, 1});
  CHECK(data->training.missing == std::vector<std::uint8_t>{0, 0, 1, 0, 0, 0, 0, 0});
  CHECK(data->missing_counts == std::vector<std::uint64_t>{1, 1});
  CHECK(data->training.labels == std::vector<std::uint32_t>{1, 0, 1, 0});

  const auto table = ReadTable(ward.Describe("SELECT x, sex FROM ward WHERE id > 2 ORDER BY id"));
  REQUIRE(table.ok());
  CHECK(table->records.Cell(0, 0) == std::string_view("AB\0", 3));
  CHECK(table->records.Cell(1, 0) == "a,\"b");
  CHECK(table->records.Place(1) == ward.Path() + " row 2");
}

TEST_CASE("ReadTable: a database that changes, or a query that is none, is refused by name") {
  const Ward ward;
  const auto refusal = [&ward](const std::string& query) {
    const auto table = ReadTable(ward.Describe(query));
    REQUIRE_FALSE(table.ok());
    return FaultText(table.TheFault());
  };
  CHECK(Contains(refusal("SELECT x FROM ward"), ward.Path() + " row 2: column 1: an infinite"));
  CHECK(Contains(refusal("DELETE FROM ward"), "must be one SELECT"));
  CHECK(Contains(refusal("SELECT id, id FROM ward"), "two columns are named `id`"));
  CHECK(Contains(refusal("SELECT nobody FROM ward"), "is not understood: no such column"));
  CHECK_FALSE(std::filesystem::exists(ward.Path() + "-wal"));

  Database writer = Database::Open(ward.Path(), Database::Mode::kReadWrite).value();
  REQUIRE(writer.Execute("DELETE FROM ward").ok());
  CHECK(Contains(refusal("SELECT id FROM ward"), "-wal"));
}

// A .npy file of version 1, as numpy writes it.
std::string Npy(const std::string& type, const std::string& shape, std::string_view data,
                char version = 1) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize((header.size() / 64 + 1) * 64 - (version == 1 ? 10 : 12) + 64, ' ');
  header.back() = '\n';
  std::string file = std::string("\x93NUMPY") + version + '\0';
  file += static_cast<char>(header.size() % 256);
  file += static_cast<char>(header.size() / 256);
  file += version == 1 ? "" : std::string(2, '\0');
  return file + header + std::string(data);
}

template <typename T>
std::string BytesOfAll(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST_CASE("ParseNpy: every version and type that is promised, and nothing else") {
  const std::string two = BytesOfAll<float>({1.5F, -2});
  for (const char version : {'\1', '\2', '\3'}) {
    const StatusOr<Array> array = ParseNpy(ToBytes(Npy("<f4", "(2,)", two, version)), "x");
    INFO(ToString(array.status()));
    REQUIRE(array.ok());
    CHECK(*array == Array{"x", ArrayType::kFloat32, {2}, ToBytes(two)});
  }
  CHECK(ParseNpy(ToBytes(Npy("<f8", "(1, 1)", two)), "x")->type == ArrayType::kFloat64);
  CHECK(ParseNpy(ToBytes(Npy("<i8", "(1,)", two)), "x")->type == ArrayType::kInt64);
  CHECK(ParseNpy(ToBytes(Npy("|u1", "(2, 2, 2)", two)), "x")->type == ArrayType::kUint8);
  CHECK(ParseNpy(ToBytes(Npy("|u1", "(4, 0)", "")), "x").ok());

  const auto refusal = [](std::string file) {
    return std::string(Message(ParseNpy(ToBytes(file), "x").status()));
  };
  CHECK(Contains(refusal(Npy(">f4", "(2,)", two)), "numbers of another type"));
  CHECK(Contains(refusal(Npy("|O", "(2,)", two)), "numbers of another type"));
  CHECK(Contains(refusal(Npy("<f4", "(3,)", two)), "another number of bytes"));
  CHECK(Contains(refusal(Npy("<f4", "(-2,)", two)), "a shape that is not"));
  CHECK(Contains(refusal(Npy("<f4", "(4611686018427387904, 4611686018427387904)", two)),
                 "another number of bytes"));
  CHECK(Contains(refusal(Npy("<f4", "(2,)", two, 4)), "of a version that is not 1 to 3"));
  std::string fortran = Npy("<f4", "(2,)", two);
  fortran.replace(fortran.find("False"), 5, "True ");
  CHECK(Contains(refusal(fortran), "Fortran's order"));
  std::string twice = Npy("<f4", "(2,)", two);
  twice.replace(twice.find("'shape'"), 7, "'descr'");
  CHECK(Contains(refusal(twice), "not expected, or twice"));
  CHECK(Contains(refusal("\x93NUMPY"), "not a .npy file"));
}

std::string Safetensors(std::string_view header, std::string_view data) {
  Bytes file;
  AppendU64(file, header.size());
  return std::string(AsText(file)) + std::string(header) + std::string(data);
}

TEST_CASE("ParseSafetensorsArrays: tensors that lie side by side, and nothing else") {
  const std::string data = BytesOfAll<double>({1, 2});
  const auto arrays = ParseSafetensorsArrays(AsBytes(Safetensors(
      R"({"__metadata__":{"a":"b"},"y":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
      R"("x":{"dtype":"F64","shape":[1,1],"data_offsets":[8,16]}})",
      data)));
  INFO(ToString(arrays.status()));
  REQUIRE(arrays.ok());
  REQUIRE(arrays->size() == 2);
  CHECK((*arrays)[0].name == "y");
  CHECK((*arrays)[1] == Array{"x", ArrayType::kFloat64, {1, 1}, ToBytes(data.substr(8))});

  const auto refusal = [&data](std::string_view header) {
    return std::string(
        Message(ParseSafetensorsArrays(AsBytes(Safetensors(header, data))).status()));
  };
  CHECK(Contains(refusal(R"({"x":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})"),
                 "belong to no tensor"));
  CHECK(Contains(refusal(R"({"x":{"dtype":"F64","shape":[1],"data_offsets":[8,16]}})"), "hole"));
  CHECK(
      Contains(refusal(R"({"x":{"dtype":"F64","shape":[3],"data_offsets":[0,24]}})"), "not there"));
  CHECK(Contains(refusal(R"({"x":{"dtype":"F64","shape":[3],"data_offsets":[0,16]}})"),
                 "another number of bytes"));
  CHECK(Contains(refusal(R"({"x":{"dtype":"BF16","shape":[8],"data_offsets":[0,16]}})"),
                 "another type"));
  CHECK(Contains(refusal("[]"), "not an object"));
}

// Adds `member` to an archive by the zip program's Python cousin, or says that it is not there.
bool Zip(const std::string& archive, const std::vector<std::string>& members,
         const std::string& folder) {
  std::string command = "cd " + folder + " && python3 -m zipfile -c " + archive;
  for (const std::string& member : members) {
    command += " " + member;
  }
  return std::system((command + " 2>/dev/null").c_str()) == 0;
}

TEST_CASE("LoadDataset: arrays side by side are a table, and pictures are pictures") {
  const Folder folder;
  folder.Write("x.npy", Npy("<f4", "(3, 2)", BytesOfAll<float>({0.1F, 1, 2, NAN, -4, 5e-30F})));
  folder.Write("y.npy", Npy("<i8", "(3,)", BytesOfAll<std::int64_t>({0, 1, 1})));
  folder.Write("p.npy", Npy("|u1", "(3, 3, 1, 2)", "abcdefABCDEF012345"));
  REQUIRE(Zip("all.npz", {"x.npy", "y.npy", "p.npy"}, folder.Path()));
  DatasetDescription description = Describe({JoinPath(folder.Path(), "all.npz")});
  description.source = DataSource::kArrays;
  description.columns = {Column("label", "y"), Column("image", "p")};

  const auto table = LoadDataset(description, Numbers({"x.0", "x.1"}, "label"));
  REQUIRE(table.ok());
  CHECK(table->training.inputs == std::vector<double>{double{0.1F}, 1, 2, 0, -4, double{5e-30F}});
  CHECK(table->training.missing == std::vector<std::uint8_t>{0, 0, 0, 1, 0, 0});
  CHECK(table->training.labels == std::vector<std::uint32_t>{0, 1, 1});

  const auto pictures = LoadDataset(description, Pictures(3, 1, 2, {"0", "1"}));
  REQUIRE(pictures.ok());
  CHECK(std::string(AsText(pictures->training.pixels)) == "abcdefABCDEF012345");
  CHECK(pictures->training.labels == std::vector<std::uint32_t>{0, 1, 1});

  const auto not_pictures = LoadDataset(description, Pictures(4, 1, 2, {"0", "1"}));
  REQUIRE_FALSE(not_pictures.ok());
  CHECK(not_pictures.TheFault().Travels().rows_refused == 3);
}

TEST_CASE("ReadTable: arrays that are no table are refused by name") {
  const Folder folder;
  const auto refusal = [&folder](const std::string& header, std::string_view data) {
    DatasetDescription description =
        Describe({folder.Write("a.safetensors", Safetensors(header, data))});
    description.source = DataSource::kArrays;
    const auto table = ReadTable(description);
    REQUIRE_FALSE(table.ok());
    return FaultText(table.TheFault());
  };
  CHECK(Contains(refusal(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                         R"("y":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                         "abc"),
                 "array `y`: has 1 rows, but `x` has 2"));
  CHECK(Contains(refusal(R"({"x":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", "a"),
                 "array `x`: an array of 0 dimensions"));
  CHECK(Contains(refusal(R"({"x":{"dtype":"F32","shape":[1,1,1],"data_offsets":[0,4]}})", "aaaa"),
                 "array `x`: pictures must be numbers of 8 bits"));
  CHECK(Contains(refusal(R"({"x":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})",
                         BytesOfAll<double>({std::numeric_limits<double>::infinity()})),
                 "a.safetensors row 1: array `x`: an infinite number"));
  CHECK(Contains(refusal("{}", ""), "has no arrays"));
}

TEST_CASE("ParseNpz: archives are bounded, whole, and of arrays only") {
  const Folder folder;
  folder.Write("x.npy", Npy("|u1", "(200000,)", std::string(200'000, 'x')));
  folder.Write("notes.txt", "no array");
  REQUIRE(Zip("good.npz", {"x.npy"}, folder.Path()));
  REQUIRE(Zip("bad.npz", {"x.npy", "notes.txt"}, folder.Path()));
  const auto read = [&folder](const std::string& name) {
    return ReadFile(JoinPath(folder.Path(), name), 1 << 20).value();
  };
  const std::string good = read("good.npz");

  CHECK(ParseNpz(AsBytes(good))->front().values.size() == 200'000);
  CHECK(Contains(Message(ParseNpz(AsBytes(good), 200'000).status()),
                 "member `x.npy`: more than 200000 bytes when unpacked"));
  CHECK(Contains(Message(ParseNpz(AsBytes(read("bad.npz"))).status()), "member 2 is not an array"));
  CHECK_FALSE(ParseNpz(AsBytes(good).first(good.size() - 1)).ok());
  std::string damaged = good;
  damaged[damaged.find("xxxx") == std::string::npos ? 100 : damaged.find("xxxx")] ^= 1;
  CHECK_FALSE(ParseNpz(AsBytes(damaged)).ok());
}

}  // namespace
}  // namespace domicile::site_agent

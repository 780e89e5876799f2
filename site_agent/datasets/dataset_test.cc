#include "site_agent/datasets/dataset.h"

#include <array>
#include <numeric>
#include <sstream>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "site_agent/datasets/testing.h"

namespace domicile::site_agent {
namespace {

using contracts::DatasetDescription;
using contracts::FeatureKind;
using contracts::SchemaContract;

double Mean(const Rows& rows, std::size_t input) {
  double sum = 0;
  for (std::size_t row = 0; row < rows.NumRows(); ++row) {
    sum += rows.inputs[row * rows.num_inputs + input];
  }
  return sum / static_cast<double>(rows.NumRows());
}

constexpr std::string_view kClinic =
    "patient_id,age,bp,outcome\np1,34,120.5,no\np2,51,141.0,yes\np3,47,133.25,no\n"
    "p4,29,118.0,no\np5,63,150.75,yes\np6,58,139.5,yes\n";

// The clinic's table with other line ends; the first `num_crlf` records keep CRLF, the rest get LF.
std::string WithEnds(std::string_view end, int num_lines, std::string_view rest) {
  std::string out;
  for (const char c : kClinic) {
    if (c == '\n') {
      out += num_lines-- > 0 ? end : rest;
    } else {
      out += c;
    }
  }
  return out;
}

TEST_CASE("LoadDataset: the four spellings of one export are one dataset (C01)") {
  const Folder folder;
  SchemaContract schema = Numbers({"age", "bp"}, "outcome");
  schema.label.positive_above.reset();
  schema.label.classes = {"no", "yes"};
  std::string mixed = WithEnds("\r\n", 4, "\n");
  mixed.pop_back();
  const std::vector<std::string> files = {
      folder.Write("lf.csv", kClinic),
      folder.Write("bom_crlf.csv", "\xEF\xBB\xBF" + WithEnds("\r\n", 100, "")),
      folder.Write("mixed.csv", mixed), folder.Write("cr.csv", WithEnds("\r", 100, ""))};
  std::optional<Digest> content;
  for (const std::string& file : files) {
    CAPTURE(file);
    const auto table = ReadTable(Describe({file}));
    REQUIRE(table.ok());
    CHECK(table->records.Columns().front() == "patient_id");
    CHECK(table->records.Columns().front().size() == 10);
    CHECK(table->records.Columns().size() == 4);
    content = content.value_or(table->content);
    CHECK(table->content == *content);

    const auto data = BuildDataset(*table, schema);
    REQUIRE(data.ok());
    CHECK(data->counts.read == 6);
    CHECK(data->counts.used == 6);
    CHECK(std::accumulate(data->training.labels.begin(), data->training.labels.end(), 0U) == 3);
    CHECK(Mean(data->training, 0) == 47.0);
    CHECK(Mean(data->training, 1) == doctest::Approx(803.0 / 6).epsilon(1e-15));
  }
  const auto other = ReadTable(
      Describe({folder.Write("other.csv", "patient_id,age,bp,outcome\np1,34,120.5,no\n")}));
  CHECK(other->content != *content);
}

TEST_CASE("LoadDataset: an absent column is named with those found, invisible bytes shown (C01)") {
  const Folder folder;
  const std::string file = folder.Write("t.csv", "\"age\xE2\x80\x8B\",y\n1,0\n");

  const auto data = LoadDataset(Describe({file}), Numbers({"age"}, "y"));

  REQUIRE_FALSE(data.ok());
  CHECK(data.TheFault().Travels().reason == policy::Reason::kDatasetInvalid);
  CHECK(data.TheFault().Travels().rows_refused == 0);
  CHECK(FaultText(data.TheFault()) ==
        file + ": no column `age`, which the job asks for; found `age\\xe2\\x80\\x8b`, `y`");
}

TEST_CASE("LoadDataset: numbers are read in the declared form or refused (C03)") {
  const Folder folder;
  const std::string semicolon = folder.Write(
      "s.csv",
      "id;glucose;hba1c;label\nP01;5,6;41;0\nP02;7,25;52;1\nP03;6,0;44;0\nP04;11,5;77;1\n");
  const std::string quoted = folder.Write(
      "q.csv",
      "id,glucose,hba1c,label\nP01,\"5,6\",41,0\nP02,\"7,25\",52,1\nP03,\"6,0\",44,0\nP04,\"11,5\","
      "77,1\n");
  const SchemaContract schema = Numbers({"glucose"}, "label");

  auto description = Describe({quoted});
  const auto undeclared = LoadDataset(description, schema);
  REQUIRE_FALSE(undeclared.ok());
  CHECK(undeclared.TheFault().Travels().rows_refused == 4);
  CHECK(Contains(FaultText(undeclared.TheFault()),
                 quoted + ":2: column 2 `glucose`: not a number in the declared form"));
  // The semicolons alone make one column of it all: the one asked for is not there.
  CHECK_FALSE(LoadDataset(Describe({semicolon}), schema).ok());
  description = Describe({semicolon});
  description.delimiter = ';';
  const auto only_delimiter = LoadDataset(description, schema);
  REQUIRE_FALSE(only_delimiter.ok());
  CHECK(Contains(FaultText(only_delimiter.TheFault()), ":2: column 2 `glucose`: not a number"));

  description.decimal_mark = ',';
  const auto declared = LoadDataset(description, schema);
  REQUIRE(declared.ok());
  CHECK(declared->counts.used == 4);
  CHECK(Mean(declared->training, 0) == 7.5875);

  const std::string thousands =
      folder.Write("t.csv", "id;income;label\nP01;1.234,5;0\nP02;12.000;1\nP03;950,25;0\n");
  description.files = {thousands};
  const SchemaContract income = Numbers({"income"}, "label");
  const auto ungrouped = LoadDataset(description, income);
  REQUIRE_FALSE(ungrouped.ok());
  CHECK(Contains(FaultText(ungrouped.TheFault()), thousands + ":2: column 2 `income`"));
  description.grouping = '.';
  const auto grouped = LoadDataset(description, income);
  REQUIRE(grouped.ok());
  CHECK(grouped->training.inputs == std::vector<double>{1234.5, 12000, 950.25});
  CHECK(Mean(grouped->training, 0) == doctest::Approx(4728.25).epsilon(1e-15));
}

std::string Calls(int offset) {
  const char* const accounts[] = {"a10", "a11", "a12", "a10", "a13", "a10",
                                  "a11", "a12", "a10", "a13", "a12", "a10"};
  std::string text = "acct,minutes,churn\n";
  for (int i = 0; i < 12; ++i) {
    text += std::string(accounts[i]) + "," + std::to_string(offset + i + 1) + "," +
            std::to_string(i % 2) + "\n";
  }
  return text;
}

TEST_CASE("LoadDataset: every row counts unless a key is declared, and then none is lost (C05)") {
  const Folder folder;
  const std::string first = folder.Write("calls.csv", Calls(0));
  const std::string second = folder.Write("calls2.csv", Calls(100));
  const SchemaContract schema = Numbers({"minutes"}, "churn");

  auto description = Describe({first});
  const auto plain = LoadDataset(description, schema);
  REQUIRE(plain.ok());
  CHECK(plain->counts.read == 12);
  CHECK(plain->counts.used == 12);
  CHECK(Mean(plain->training, 0) == 6.5);
  REQUIRE(plain->notices.size() == 1);
  CHECK(Contains(plain->notices[0], "`acct` has 4 distinct values in 12 rows"));

  description.group_id = "acct";
  const auto grouped = LoadDataset(description, schema);
  REQUIRE(grouped.ok());
  CHECK(grouped->counts.used == 12);

  description.group_id.reset();
  description.unique_key = "acct";
  const auto keyed = LoadDataset(description, schema);
  REQUIRE_FALSE(keyed.ok());
  CHECK(keyed.TheFault().LocalLines()[0] == first + ":5: column 1 `acct`: the same key as " +
                                                first + ":2, and it is declared unique_key");
  CHECK(keyed.TheFault().Travels().rows_refused == 8);
  CHECK_FALSE(Contains(FaultText(keyed.TheFault()), "a10"));
  const auto shown = LoadDataset(description, schema, {.show_values = true});
  CHECK(Contains(FaultText(shown.TheFault()), "`a10`"));

  const auto both = LoadDataset(Describe({first, second}), schema);
  REQUIRE(both.ok());
  CHECK(both->counts.used == 24);
  CHECK(Mean(both->training, 0) == 56.5);
}

TEST_CASE("LoadDataset: NA is a country until somebody declares it missing (C07)") {
  const Folder folder;
  const std::string file =
      folder.Write("branches.csv",
                   "branch,country,owner,turnover,label\nb1,NA,Nangolo,10,1\nb2,\"NA\",Null,20,0\n"
                   "b3,ZA,None,30,1\nb4,,Botha,40,0\nb5,DE,NaN,50,1\nb6,ZA,Weber,60,0\n");
  SchemaContract schema = Numbers({}, "label");
  schema.features.push_back(
      {.column = "country", .kind = FeatureKind::kCategory, .codes = {"NA", "ZA", "DE"}});
  schema.features.push_back({.column = "owner",
                             .kind = FeatureKind::kCategory,
                             .codes = {"Nangolo", "Null", "None", "Botha", "NaN", "Weber"}});
  const auto sums = [](const Rows& rows) {
    std::vector<double> out(rows.num_inputs, 0);
    for (std::size_t i = 0; i < rows.inputs.size(); ++i) {
      out[i % rows.num_inputs] += rows.inputs[i];
    }
    return out;
  };

  auto description = Describe({file});
  const auto standard = LoadDataset(description, schema);
  REQUIRE(standard.ok());
  CHECK(sums(standard->training) == std::vector<double>{2, 2, 1, 1, 1, 1, 1, 1, 1});
  CHECK(standard->missing_counts == std::vector<std::uint64_t>{1, 0});
  CHECK(standard->input_names[0] == "country=NA");

  description.columns.push_back(Column("country"));
  description.columns.back().missing = std::vector<std::string>{"", "NA"};
  const auto declared = LoadDataset(description, schema);
  REQUIRE(declared.ok());
  CHECK(sums(declared->training) == std::vector<double>{0, 2, 1, 1, 1, 1, 1, 1, 1});
  CHECK(declared->missing_counts == std::vector<std::uint64_t>{3, 0});
  CHECK(std::accumulate(declared->training.missing.begin(), declared->training.missing.end(), 0) ==
        0);
}

TEST_CASE("LoadDataset: no rows, and rows that are all dropped, are counted (C13)") {
  const Folder folder;
  const SchemaContract schema = Numbers({"f1", "f2"}, "label");
  const auto empty = LoadDataset(Describe({folder.Write("h.csv", "f1,f2,label\n")}), schema);
  REQUIRE(empty.ok());
  CHECK(empty->counts.read == 0);
  CHECK(empty->training.NumRows() == 0);
  REQUIRE(empty->notices.size() == 1);
  CHECK(Contains(empty->notices[0], "no records"));

  auto description = Describe({folder.Write("m.csv", "f1,f2,label\n,1.0,0\n2.0,,1\n,,0\n")});
  description.rows_with_missing = contracts::RowsWithMissing::kDrop;
  const auto dropped = LoadDataset(description, schema);
  REQUIRE(dropped.ok());
  CHECK(dropped->counts.read == 3);
  CHECK(dropped->counts.dropped == 3);
  CHECK(dropped->counts.used == 0);
  CHECK(dropped->missing_counts == std::vector<std::uint64_t>{2, 2});

  description.rows_with_missing = contracts::RowsWithMissing::kKeep;
  const auto kept = LoadDataset(description, schema);
  REQUIRE(kept.ok());
  CHECK(kept->training.missing == std::vector<std::uint8_t>{1, 0, 0, 1, 1, 1});
}

TEST_CASE("LoadDataset: faults say where at the site, and only a code and counts travel (C37)") {
  const Folder folder;
  const std::string file = folder.Write(
      "patients.csv",
      "ssn,age,crp,diagnosis\n900101-QX7731,34,5.5,benign\n911212-QX7732,51,7.25,malignant\n"
      "920303-QX7733,47,QX-SENTINEL-7731,benign\n930404-QX7734,29,6.0,QX-LABEL-5512\n");
  SchemaContract schema = Numbers({"age", "crp"}, "diagnosis");
  schema.label.positive_above.reset();
  schema.label.classes = {"benign", "malignant"};

  const auto data = LoadDataset(Describe({file}), schema);

  REQUIRE_FALSE(data.ok());
  const Fault& fault = data.TheFault();
  REQUIRE(fault.LocalLines().size() == 2);
  CHECK(fault.LocalLines()[0].starts_with(file + ":4: column 3 `crp`: not a number"));
  CHECK(fault.LocalLines()[1] == file + ":5: column 4 `diagnosis`: label not declared by the job");
  for (const char* word : {"QX", "7731", "SENTINEL", "5512"}) {
    CHECK_FALSE(Contains(FaultText(fault), word));
  }
  CHECK(fault.Travels().reason == policy::Reason::kDatasetInvalid);
  CHECK(fault.Travels().dataset.text() == "clinic");
  CHECK(fault.Travels().rows_refused == 2);
  const auto shown = LoadDataset(Describe({file}), schema, {.show_values = true});
  CHECK(Contains(FaultText(shown.TheFault()), "`QX-SENTINEL-7731`"));
}

TEST_CASE("LoadDataset: ranges, zeros that mean missing, and missing labels") {
  const Folder folder;
  auto description = Describe({folder.Write("t.csv", "x,y\n0,1\n5,0\n11,1\n,1\n")});
  description.columns.push_back(Column("x"));
  description.columns.back().min = 1;
  description.columns.back().max = 10;
  SchemaContract schema = Numbers({"x"}, "y");
  auto data = LoadDataset(description, schema);
  REQUIRE_FALSE(data.ok());
  CHECK(data.TheFault().Travels().rows_refused == 2);
  CHECK(Contains(FaultText(data.TheFault()), ":4: column 1 `x`: outside the range"));

  schema.features[0].zero_is_missing = true;
  description.columns[0].max = 11;
  data = LoadDataset(description, schema);
  REQUIRE(data.ok());
  CHECK(data->training.missing == std::vector<std::uint8_t>{1, 0, 0, 1});
  CHECK(data->missing_counts == std::vector<std::uint64_t>{2});

  description = Describe({folder.Write("l.csv", "x,y\n1,\n2,1\n")});
  CHECK_FALSE(LoadDataset(description, Numbers({"x"}, "y")).ok());
  description.rows_with_missing = contracts::RowsWithMissing::kDrop;
  data = LoadDataset(description, Numbers({"x"}, "y"));
  REQUIRE(data.ok());
  CHECK(data->counts.dropped == 1);
}

TEST_CASE("LoadDataset: every n-th row of all files is held out") {
  const Folder folder;
  auto description = Describe({folder.Write("a.csv", "x,y\n0,0\n1,0\n2,0\n3,0\n"),
                               folder.Write("b.csv", "x,y\n4,0\n5,0\n6,0\n")});
  description.test_every = 3;

  const auto data = LoadDataset(description, Numbers({"x"}, "y"));

  CHECK(data->test.inputs == std::vector<double>{2, 5});
  CHECK(data->training.inputs == std::vector<double>{0, 1, 3, 4, 6});
}

TEST_CASE("ReadTable: files that do not belong together, and headers without sense, are refused") {
  const Folder folder;
  const std::string a = folder.Write("a.csv", "x,y\n1,0\n");
  CHECK_FALSE(ReadTable(Describe({a, folder.Write("b.csv", "y,x\n1,0\n")})).ok());
  CHECK_FALSE(ReadTable(Describe({folder.Write("c.csv", "x,x\n1,0\n")})).ok());
  CHECK_FALSE(ReadTable(Describe({folder.Write("d.csv", "x,\n1,0\n")})).ok());
  CHECK_FALSE(ReadTable(Describe({folder.Write("e.csv", "")})).ok());
  CHECK_FALSE(ReadTable(Describe({"/nonexistent/x.csv"})).ok());
  auto description = Describe({a});
  description.columns.push_back(Column("z"));
  const auto table = ReadTable(description);
  REQUIRE_FALSE(table.ok());
  CHECK(Contains(FaultText(table.TheFault()), "no column `z`"));
  CHECK(ReadTable(Describe({a})).ok());
}

TEST_CASE("RecordDigests: count the records between two versions, and need the salt") {
  const Folder folder;
  const auto digests = [&folder](std::string_view text, std::string_view salt) {
    return RecordDigests(*ReadTable(Describe({folder.Write("v.csv", text)})), AsBytes(salt));
  };
  const auto one = digests("x,y\n1,0\n2,0\n2,0\n3,1\n", "salt");

  CHECK(one[1] == one[2]);
  CHECK(one[0] != digests("x,y\n1,0\n", "pepper")[0]);
  CHECK(CountDifferingRecords(one, digests("x,y\n3,1\n2,0\n1,0\n2,0\n", "salt")) == 0);
  CHECK(CountDifferingRecords(one, digests("x,y\n1,0\n2,0\n3,1\n", "salt")) == 1);
  CHECK(CountDifferingRecords(one, digests("x,y\n1,0\n2,0\n2,0\n4,1\n", "salt")) == 1);
  CHECK(CountDifferingRecords(one, digests("x,y\n5,0\n6,0\n2,0\n3,1\n7,1\n", "salt")) == 3);
  CHECK(CountDifferingRecords({}, one) == 4);

  const auto table = ReadTable(Describe({folder.Write("v.csv", "x,y\n1,0\n")}));
  CHECK(Commitment(*table, AsBytes("salt")) != Commitment(*table, AsBytes("pepper")));
}

TEST_CASE("RecordDigests: cells cannot run into each other") {
  const Folder folder;
  const auto table = ReadTable(Describe({folder.Write("v.csv", "x,y\nab,c\na,bc\n")}));
  const auto digests = RecordDigests(*table, AsBytes("salt"));

  CHECK(digests[0] != digests[1]);
}

// A record cannot be printed: `<<` is deleted, and there is no conversion to text.
template <typename T>
concept Printable = requires(std::ostringstream& out, const T& value) {
  out << value;
};
static_assert(Printable<std::string>);
static_assert(!Printable<RawRecords>);
static_assert(!std::is_copy_constructible_v<RawRecords>);

}  // namespace
}  // namespace domicile::site_agent

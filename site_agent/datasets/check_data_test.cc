#include "site_agent/datasets/check_data.h"

#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "crypto/sha256.h"
#include "site_agent/datasets/testing.h"

namespace domicile::site_agent {
namespace {

const std::string kExamples = DOMICILE_SOURCE_DIR "/deploy/examples/heart/";

// A hospital whose words are not the job's.
std::string WriteHospital(const Folder& folder, std::string_view rows) {
  folder.Write("h.csv", "AGE,X,\xC3\x9C\n" + std::string(rows));
  return folder.Write("d.toml",
                      "[dataset]\nalias = \"heart\"\nversion = \"7\"\nfiles = [\"h.csv\"]\n"
                      "missing = [\"?\"]\nrows_with_missing = \"drop\"\ntest_every = 2\n"
                      "[[column]]\nname = \"age\"\nlocal = \"AGE\"\n");
}

// The example job, of one column.
std::string WriteJob(const Folder& folder) {
  std::string job = ReadFile(kExamples + "job.toml", 1 << 20).value();
  const std::size_t features = job.find("[[feature]]");
  const std::size_t label = job.find("[label]");
  REQUIRE(features < label);
  job.replace(features, label - features,
              "[[feature]]\ncolumn = \"age\"\nkind = \"number\"\noffset = 50\nrange = 100\n\n");
  const std::size_t column = job.find("column", job.find("[label]"));
  job.replace(column, job.find('\n', column) - column, "column = \"X\"");
  return folder.Write("job.toml", job);
}

const Json& At(const Json& json, std::string_view key) {
  const Json* const found = json.Find(key);
  REQUIRE(found != nullptr);
  return *found;
}

std::int64_t Int(const Json& json, std::string_view key) { return *At(json, key).TryInt(); }

TEST_CASE("CheckData: rows, classes and missing values are counted before any round") {
  const Folder folder;
  const std::string description = WriteHospital(folder, "50,0,a\n60,1,\n?,1,c\n70,2,\n");

  const StatusOr<CheckReport> report = CheckData({description, WriteJob(folder), {}, false});

  INFO(ToString(report.status()));
  REQUIRE(report.ok());
  INFO(report->text);
  CHECK(report->fits);
  const Json& json = report->json;
  CHECK(Int(json, "rows") == 4);
  const JsonArray& columns = *At(json, "columns").TryArray();
  REQUIRE(columns.size() == 3);
  CHECK(*At(columns[0], "job_name").TryString() == "age");
  CHECK(Int(columns[0], "missing") == 1);
  CHECK(Int(columns[2], "missing") == 2);
  CHECK(*At(columns[2], "name").TryString() == "\\xc3\\x9c");
  const Json& plan = At(json, "plan");
  CHECK(Int(plan, "rows_read") == 4);
  CHECK(Int(plan, "rows_used") == 3);
  CHECK(Int(plan, "rows_dropped") == 1);
  CHECK(Int(plan, "training_rows") == 1);
  CHECK(Int(plan, "test_rows") == 2);
  CHECK(Int(At(plan, "missing").TryArray()->front(), "rows") == 1);
  const JsonArray& classes = *At(plan, "classes").TryArray();
  REQUIRE(classes.size() == 2);
  CHECK(Int(classes[0], "rows") == 1);
  CHECK(Int(classes[1], "rows") == 2);
  CHECK(Contains(report->text, "4 rows read, 3 used, 1 dropped; 1 to train, 2 to test\n"));
  CHECK(Contains(report->text, "column 1 `AGE`, to jobs `age`, missing in 1 records\n"));
  CHECK(report->text.ends_with("fits\n"));
}

TEST_CASE(
    "CheckData: a fault has its file, line and column, and its cell only if it is asked for") {
  const Folder folder;
  const std::string description = WriteHospital(folder, "50,0,a\nsixty,1,b\n");
  const std::string job = WriteJob(folder);

  const StatusOr<CheckReport> report = CheckData({description, job, {}, false});
  REQUIRE(report.ok());
  CHECK_FALSE(report->fits);
  const JsonArray& faults = *At(report->json, "faults").TryArray();
  REQUIRE(faults.size() == 1);
  CHECK(Contains(*faults[0].TryString(), "h.csv:3: column 1 `AGE`: not a number"));
  CHECK_FALSE(Contains(PrintJson(report->json) + report->text, "sixty"));
  CHECK(report->text.ends_with("does not fit\n"));

  CHECK(Contains(CheckData({description, job, {}, true})->text, "sixty"));
  // Without a job there is nothing that the cell should be.
  CHECK(CheckData({description, {}, {}, false})->fits);
}

TEST_CASE(
    "CheckData: a table that cannot be read is a report, a description that cannot an error") {
  const Folder folder;
  const std::string description = WriteHospital(folder, "50,0\n");
  const StatusOr<CheckReport> report = CheckData({description, {}, {}, false});
  REQUIRE(report.ok());
  CHECK_FALSE(report->fits);
  CHECK(Contains(report->text, "fault: " + JoinPath(folder.Path(), "h.csv") + ":2: "));
  CHECK(report->json.Find("rows") == nullptr);

  const auto refusal = [](const CheckRequest& request) {
    return std::string(Message(CheckData(request).status()));
  };
  const std::string wrong = folder.Write("wrong.toml", "[dataset]\nalias = \"A\"\n");
  CHECK(Contains(refusal({wrong, {}, {}, false}), wrong + ":2:"));
  CHECK_FALSE(refusal({"/nonexistent.toml", {}, {}, false}).empty());
  const std::string other = folder.Write(
      "other.toml", "[dataset]\nalias = \"lung\"\nversion = \"7\"\nfiles = [\"h.csv\"]\n");
  CHECK(Contains(refusal({other, WriteJob(folder), {}, false}),
                 "the plan is for the dataset `heart`, the description says `lung`"));
  const std::string words = folder.Write("words.txt", "a\na\n");
  CHECK(Contains(refusal({description, {}, {words}, false}), words + ": "));
}

}  // namespace
}  // namespace domicile::site_agent

// What a site's columns, units and codes mean in the words of a job.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "site_agent/datasets/dataset.h"
#include "site_agent/datasets/testing.h"

namespace domicile::site_agent {
namespace {

using contracts::SchemaContract;

constexpr std::string_view kWard = "CHOL,SEX,DIED\n5,M,0\n6.5,F,2\n,M,0\n0,F,1\n";

// The ward's own words for `cholesterol` (mg/dl), `sex` and `outcome`.
contracts::DatasetDescription DescribeWard(const std::string& file) {
  contracts::DatasetDescription description = Describe({file});
  contracts::ColumnDescription cholesterol = Column("cholesterol", "CHOL");
  cholesterol.scale = 38.5;
  cholesterol.offset = 1;
  contracts::ColumnDescription sex = Column("sex", "SEX");
  sex.codes = {{"M", "1"}, {"F", "0"}};
  contracts::ColumnDescription outcome = Column("outcome", "DIED");
  outcome.codes = {{"0", "alive"}, {"1", "dead"}, {"2", "dead"}};
  description.columns = {cholesterol, sex, outcome};
  return description;
}

SchemaContract WardSchema() {
  SchemaContract schema = Numbers({"cholesterol"}, "outcome");
  schema.features.push_back({"sex", contracts::FeatureKind::kCategory, false, {"1"}});
  schema.label = {};
  schema.label.column = "outcome";
  schema.label.classes = {"alive", "dead"};
  return schema;
}

TEST_CASE("BuildDataset: units and codes of the site become those of the job") {
  const Folder folder;
  const auto data = LoadDataset(DescribeWard(folder.Write("w.csv", kWard)), WardSchema());

  REQUIRE(data.ok());
  CHECK(data->training.inputs == std::vector<double>{193.5, 1, 251.25, 0, 0, 1, 1, 0});
  CHECK(data->training.missing == std::vector<std::uint8_t>{0, 0, 0, 0, 1, 0, 0, 0});
  CHECK(data->training.labels == std::vector<std::uint32_t>{0, 1, 0, 1});
}

TEST_CASE("BuildDataset: a range and a zero that means missing are about what was recorded") {
  const Folder folder;
  auto description = DescribeWard(folder.Write("w.csv", kWard));
  description.columns[0].min = 4;
  description.columns[0].max = 7;
  SchemaContract schema = WardSchema();

  const auto refused = LoadDataset(description, schema);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.TheFault().Travels().rows_refused == 1);
  CHECK(Contains(FaultText(refused.TheFault()),
                 ":5: column 1 `CHOL`: outside the range declared for the column"));

  schema.features[0].zero_is_missing = true;
  const auto data = LoadDataset(description, schema);
  REQUIRE(data.ok());
  CHECK(data->missing_counts == std::vector<std::uint64_t>{2, 0});
  CHECK(data->training.inputs == std::vector<double>{193.5, 1, 251.25, 0, 0, 1, 0, 0});
}

TEST_CASE("BuildDataset: a code that nobody has explained is an error, in features and in labels") {
  const Folder folder;
  auto description = DescribeWard(folder.Write("w.csv", kWard));
  description.columns[1].codes.pop_back();
  description.columns[2].codes.pop_back();

  const auto data = LoadDataset(description, WardSchema());

  REQUIRE_FALSE(data.ok());
  CHECK(data.TheFault().Travels().rows_refused == 2);
  const std::string text = FaultText(data.TheFault());
  CHECK(Contains(text, ":3: column 2 `SEX`: a code that the dataset description does not list"));
  CHECK(Contains(text, ":3: column 3 `DIED`: a code that the dataset description does not list"));
  CHECK(Contains(text, ":5: column 2 `SEX`"));
  CHECK_FALSE(Contains(text, "`F`"));
}

TEST_CASE("BuildDataset: a code of the site that the job does not know is an error of the label") {
  const Folder folder;
  auto description = DescribeWard(folder.Write("w.csv", kWard));
  description.columns[2].codes[0].second = "well";

  const auto data = LoadDataset(description, WardSchema());

  REQUIRE_FALSE(data.ok());
  CHECK(Contains(FaultText(data.TheFault()), ":2: column 3 `DIED`: label not declared by the job"));
}

TEST_CASE("BuildDataset: where a job wants a number of a column with codes, it is the code's") {
  const Folder folder;
  auto description = DescribeWard(folder.Write("w.csv", kWard));
  description.decimal_mark = ',';  // of the table; codes are in the words of jobs
  description.columns[1].codes = {{"M", "1.5"}, {"F", "-2"}};
  description.columns[2].codes = {{"0", "0"}, {"1", "1"}, {"2", "1"}};

  const auto data = LoadDataset(description, Numbers({"sex"}, "outcome"));
  REQUIRE(data.ok());
  CHECK(data->training.inputs == std::vector<double>{1.5, -2, 1.5, -2});
  CHECK(data->training.labels == std::vector<std::uint32_t>{0, 1, 0, 1});

  description.columns[1].codes[1].second = "female";
  const auto refused = LoadDataset(description, Numbers({"sex"}, "outcome"));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.TheFault().Travels().rows_refused == 2);
  CHECK(Contains(FaultText(refused.TheFault()), ":3: column 2 `SEX`: a code that is not a number"));
}

TEST_CASE("BuildDataset: a job knows a described column by one name only") {
  const Folder folder;
  const auto description = DescribeWard(folder.Write("w.csv", kWard));

  // By its own name it would come without its unit, or a label as a feature.
  const auto data = LoadDataset(description, Numbers({"CHOL"}, "outcome"));

  REQUIRE_FALSE(data.ok());
  CHECK(Contains(FaultText(data.TheFault()),
                 "asks for a column `CHOL`; the one of that name is known to jobs as "
                 "`cholesterol`"));
}

TEST_CASE("BuildDataset: a number as a label is a target, in the unit of the job") {
  const Folder folder;
  auto description = Describe({folder.Write("t.csv", "x,days\n1,2\n2,0.5\n3,-1\n4,\n")});
  contracts::ColumnDescription hours = Column("hours", "days");
  hours.scale = 24;
  description.columns = {hours};
  description.rows_with_missing = contracts::RowsWithMissing::kDrop;
  description.test_every = 3;
  SchemaContract schema = Numbers({"x"}, "hours");
  schema.label = {};
  schema.label.column = "hours";
  schema.label.number = contracts::NumberLabel{.offset = 10, .scale = 2};

  const auto data = LoadDataset(description, schema);

  REQUIRE(data.ok());
  CHECK(data->num_classes == 0);
  CHECK(data->training.labels.empty());
  CHECK(data->training.targets == std::vector<double>{48, 12});
  CHECK(data->test.targets == std::vector<double>{-24});
  CHECK(data->training.NumRows() == 2);
  CHECK(data->counts.dropped == 1);
}

TEST_CASE("BuildDataset: a number that overflows in the unit of the job is refused") {
  const Folder folder;
  auto description = Describe({folder.Write("t.csv", "x,y\n1e300,0\n")});
  description.columns = {Column("x")};
  description.columns[0].scale = 1e300;

  const auto data = LoadDataset(description, Numbers({"x"}, "y"));

  REQUIRE_FALSE(data.ok());
  CHECK(Contains(FaultText(data.TheFault()), "too large for a number in the unit of the job"));
}

}  // namespace
}  // namespace domicile::site_agent

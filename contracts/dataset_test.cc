// Schema contracts, and the descriptions of tables at sites.
#include "contracts/dataset.h"

#include <string>

#include <doctest/doctest.h>

#include "base/text.h"
#include "contracts/schema.h"

namespace domicile::contracts {
namespace {

constexpr std::string_view kDescription = R"([dataset]
alias = "heart"
version = "2026-11"
files = ["cleveland.csv", "/data/more.csv"]
delimiter = ";"
decimal_mark = ","
grouping = "."
missing = ["?"]
unique_key = "id"
group_id = "patient"
rows_with_missing = "drop"
test_every = 3

[[column]]
name = "chol"
missing = ["NA"]
min = 0
max = 1000

[[column]]
name = "größe"
)";

std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string copy(text);
  const std::size_t at = copy.find(from);
  REQUIRE(at != std::string::npos);
  return copy.replace(at, from.size(), to);
}

TEST_CASE("Dataset description: every field is read") {
  const StatusOr<DatasetDescription> parsed =
      ParseDatasetDescription(kDescription, "/etc/domicile/heart.toml");

  INFO(ToString(parsed.status()));
  REQUIRE(parsed.ok());
  CHECK(parsed->alias.text() == "heart");
  CHECK(parsed->version == "2026-11");
  CHECK(parsed->files == std::vector<std::string>{"/etc/domicile/cleveland.csv", "/data/more.csv"});
  CHECK(parsed->delimiter == ';');
  CHECK(parsed->decimal_mark == ',');
  CHECK(parsed->grouping == '.');
  CHECK(parsed->missing == std::vector<std::string>{"", "?"});
  CHECK(parsed->unique_key == "id");
  CHECK(parsed->group_id == "patient");
  CHECK(parsed->rows_with_missing == RowsWithMissing::kDrop);
  CHECK(parsed->test_every == 3);
  REQUIRE(parsed->columns.size() == 2);
  ColumnDescription chol;
  chol.name = "chol";
  chol.missing = {"", "NA"};
  chol.min = 0;
  chol.max = 1000;
  CHECK(parsed->columns[0] == chol);
  CHECK(parsed->columns[1].name == "größe");
  CHECK(DataPaths(*parsed) == parsed->files);
}

constexpr std::string_view kMeanings = R"([dataset]
alias = "ward"
version = "1"
files = ["w.csv"]

[[column]]
name = "cholesterol"
local = "CHOL"
scale = 38.67
offset = -0.5

[[column]]
name = "sex"
codes = { "M" = "1", "F" = "0", "weiblich, alt" = "0" }
)";

TEST_CASE("Dataset description: units and codes of the table are told in the words of jobs") {
  const StatusOr<DatasetDescription> parsed = ParseDatasetDescription(kMeanings, "d.toml");

  INFO(ToString(parsed.status()));
  REQUIRE(parsed.ok());
  const ColumnDescription* const cholesterol = parsed->FindColumn("cholesterol");
  REQUIRE(cholesterol != nullptr);
  CHECK(cholesterol->Local() == "CHOL");
  CHECK(cholesterol->scale == 38.67);
  CHECK(cholesterol->offset == -0.5);
  CHECK(parsed->FindLocalColumn("CHOL") == cholesterol);
  CHECK(parsed->FindColumn("CHOL") == nullptr);
  const ColumnDescription* const sex = parsed->FindLocalColumn("sex");
  REQUIRE(sex != nullptr);
  CHECK(sex->codes == std::vector<std::pair<std::string, std::string>>{
                          {"M", "1"}, {"F", "0"}, {"weiblich, alt", "0"}});
}

TEST_CASE("Dataset description: every source asks for its own keys only") {
  const auto parse = [](std::string_view keys) {
    return ParseDatasetDescription(
        "[dataset]\nalias = \"x\"\nversion = \"1\"\n" + std::string(keys), "/d/d.toml");
  };
  const auto paths = [&parse](std::string_view keys) {
    const StatusOr<DatasetDescription> parsed = parse(keys);
    INFO(ToString(parsed.status()));
    REQUIRE(parsed.ok());
    return DataPaths(*parsed);
  };
  using Paths = std::vector<std::string>;
  CHECK(paths("source = \"sqlite\"\nfiles = [\"a.db\"]\nquery = \"SELECT 1\"\n") ==
        Paths{"/d/a.db"});
  CHECK(paths("source = \"postgresql\"\nfiles = [\"a.csv\"]\nquery = \"SELECT 1\"\n"
              "service = \"clinic\"\n") == Paths{"/d/a.csv", "/d/a.csv.sha256"});
  CHECK(paths("source = \"idx\"\nfiles = [\"i.gz\"]\nlabels = [\"l.gz\"]\n") ==
        Paths{"/d/i.gz", "/d/l.gz"});
  CHECK(paths("source = \"images\"\nfiles = [\"m/a.csv\", \"m/b.csv\"]\ndelimiter = \";\"\n") ==
        Paths{"/d/m/a.csv", "/d/m/b.csv", "/d/m"});
  CHECK(paths("source = \"images\"\nfiles = [\"a.csv\"]\nfolder = \"/p\"\n"
              "unreadable = \"missing\"\n") == Paths{"/d/a.csv", "/p"});
  CHECK(paths("source = \"images\"\nfolder = \"p\"\n") == Paths{"/d/p"});
  CHECK(paths("source = \"arrays\"\nfiles = [\"a.npz\"]\n") == Paths{"/d/a.npz"});

  const auto refusal = [&parse](std::string_view keys) {
    return std::string(Message(parse(keys).status()));
  };
  const auto contains = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(contains(refusal("source = \"mysql\"\nfiles = [\"a\"]\n"),
                 "/d/d.toml:4:10: `dataset.source` must be `csv`, `sqlite`"));
  CHECK(contains(refusal("files = [\"a\"]\nquery = \"SELECT 1\"\n"), "unknown key"));
  CHECK(contains(refusal("source = \"sqlite\"\nfiles = [\"a\"]\n"), "`dataset.query` is missing"));
  CHECK(contains(refusal("source = \"sqlite\"\nfiles = [\"a\", \"b\"]\nquery = \"SELECT 1\"\n"),
                 "`dataset.files` must be one file"));
  CHECK(contains(refusal("source = \"sqlite\"\nfiles = [\"a\"]\nquery = \" \"\n"),
                 "`dataset.query` must be one SELECT"));
  CHECK(contains(refusal("source = \"sqlite\"\nfiles = [\"a\"]\nquery = \"SELECT 1\"\n"
                         "delimiter = \";\"\n"),
                 "unknown key `dataset.delimiter`"));
  CHECK(contains(refusal("source = \"idx\"\nfiles = [\"a\", \"b\"]\nlabels = [\"c\"]\n"),
                 "`dataset.labels` must name as many"));
  CHECK(contains(refusal("source = \"images\"\n"), "`dataset.files` is missing"));
  CHECK(contains(refusal("source = \"images\"\nfolder = \"p\"\nunreadable = \"skip\"\n"),
                 "`dataset.unreadable` must be `refuse` or `missing`"));
}

TEST_CASE("Dataset description: by default only the empty cell is missing, and nothing is a key") {
  const StatusOr<DatasetDescription> parsed = ParseDatasetDescription(
      "[dataset]\nalias = \"x\"\nversion = \"1\"\nfiles = [\"a.csv\"]\n", "d.toml");

  REQUIRE(parsed.ok());
  CHECK(parsed->missing == std::vector<std::string>{""});
  CHECK(parsed->delimiter == ',');
  CHECK(parsed->decimal_mark == '.');
  CHECK_FALSE(parsed->grouping.has_value());
  CHECK_FALSE(parsed->unique_key.has_value());
  CHECK_FALSE(parsed->group_id.has_value());
  CHECK(parsed->rows_with_missing == RowsWithMissing::kKeep);
  CHECK(parsed->test_every == 0);
  CHECK(parsed->columns.empty());
}

TEST_CASE("Dataset description: what is wrong is named with its place") {
  struct Case {
    std::string name;
    const char* from;
    const char* to;
    const char* want;
  };
  const Case cases[] = {
      {"alias", "\"heart\"", "\"Heart\"", "d.toml:2:9: `dataset.alias` is wrong: `Heart` is not a"},
      {"version", "\"2026-11\"", "\"\"", "d.toml:3:11: `dataset.version` must be"},
      {"no files", "[\"cleveland.csv\", \"/data/more.csv\"]", "[]",
       "`dataset.files` must name 1 to"},
      {"file twice", "\"/data/more.csv\"", "\"cleveland.csv\"",
       "`dataset.files` names a file twice"},
      {"delimiter", "delimiter = \";\"", "delimiter = \"ab\"",
       "`dataset.delimiter` must be one of"},
      {"letter as delimiter", "delimiter = \";\"", "delimiter = \"e\"",
       "`dataset.delimiter` must be"},
      {"decimal mark", "decimal_mark = \",\"", "decimal_mark = \";\"",
       "`dataset.decimal_mark` must"},
      {"grouping is the decimal mark", "grouping = \".\"", "grouping = \",\"",
       "`dataset.grouping` must differ"},
      {"grouping by digits", "grouping = \".\"", "grouping = \"0\"",
       "`dataset.grouping` must be one"},
      {"grouping is the delimiter", "delimiter = \";\"\ndecimal_mark = \",\"\ngrouping = \".\"",
       "delimiter = \",\"\ngrouping = \",\"", "`dataset.grouping` must differ"},
      {"key and group", "group_id = \"patient\"", "group_id = \"id\"", "`dataset.group_id` is the"},
      {"key", "unique_key = \"id\"", "unique_key = \"i\\rd\"",
       "`dataset.unique_key` is not the name"},
      {"rows", "\"drop\"", "\"dorp\"", "`dataset.rows_with_missing` must be `keep` or `drop`"},
      {"every row a test", "test_every = 3", "test_every = 1", "would hold out every row"},
      {"bounds", "min = 0", "min = 1001", "`column[0].min` is above `max`"},
      {"column twice", "name = \"größe\"", "name = \"chol\"",
       "`column[1].name` describes a column"},
      {"unknown key", "max = 1000", "maximum = 1000", "unknown key `column.maximum`"},
      {"misspelt", "unique_key =", "uniqe_key =", "did you mean `dataset.unique_key`?"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const StatusOr<DatasetDescription> parsed =
        ParseDatasetDescription(Replaced(kDescription, c.from, c.to), "d.toml");
    CHECK(parsed.status().code() == StatusCode::kInvalidArgument);
    const std::string message(Message(parsed.status()));
    CAPTURE(message);
    CHECK(message.find("d.toml:") == 0);
    CHECK(message.find(c.want) != std::string::npos);
  }
}

TEST_CASE("Dataset description: a meaning that says nothing, or two things, is refused") {
  struct Case {
    std::string name;
    const char* from;
    const char* to;
    const char* want;
  };
  const Case cases[] = {
      {"scale 0", "scale = 38.67", "scale = 0", "d.toml:9:9: `column[0].scale` must not be 0"},
      {"infinite", "scale = 38.67", "scale = inf", "`column[0].scale`"},
      {"both", "offset = -0.5", "codes = { \"a\" = \"b\" }", "`column[0].codes` cannot stand"},
      {"no codes", "{ \"M\" = \"1\", \"F\" = \"0\", \"weiblich, alt\" = \"0\" }", "{}",
       "`column[1].codes` must be 1 to"},
      {"empty cell", "\"M\" = \"1\"", "\"\" = \"1\"", "an empty cell is missing"},
      {"no code of a job", "\"M\" = \"1\"", "\"M\" = \"=\"", "cannot be a code of a job"},
      {"number as a code", "\"M\" = \"1\"", "\"M\" = 1", "must be a string"},
      {"column of the table twice", "name = \"sex\"", "name = \"sex\"\nlocal = \"CHOL\"",
       "`column[1].local` describes a column of the table twice"},
      {"no name of a column", "local = \"CHOL\"", "local = \"\"",
       "`column[0].local` is not the name"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const StatusOr<DatasetDescription> parsed =
        ParseDatasetDescription(Replaced(kMeanings, c.from, c.to), "d.toml");
    CHECK(parsed.status().code() == StatusCode::kInvalidArgument);
    const std::string message(Message(parsed.status()));
    CAPTURE(message);
    CHECK(message.find(c.want) != std::string::npos);
  }
}

TEST_CASE(
    "Schema contract: the number and order of classes come from the job, not from any table") {
  SchemaContract schema;
  schema.features = {{"f1", FeatureKind::kNumber, false, {}},
                     {"ward", FeatureKind::kCategory, false, {"NA", "Null"}}};
  schema.label = {.column = "label", .classes = {"benign", "malignant", "unclear"}};

  CHECK(schema.label.NumClasses() == 3);
  CHECK(schema.InputNames() == std::vector<std::string>{"f1", "ward=NA", "ward=Null"});
  CHECK(SchemaFromJson(ToJson(schema)).value() == schema);
  schema.label = {.column = "label", .positive_above = 2.5};
  CHECK(schema.label.NumClasses() == 2);
  CHECK(SchemaFromJson(ToJson(schema)).value() == schema);
}

TEST_CASE("SchemaFromJson: a schema that does not hold together is refused") {
  struct Case {
    std::string name;
    const char* json;
    const char* want;
  };
  const Case cases[] = {
      {"no features", R"({"features":[],"label":{"classes":["a","b"],"column":"y"}})",
       "schema: `feature` or `image` or `text` must be there"},
      {"empty label", R"({"features":[{"column":"x","kind":"number"}],"label":{"column":"y"}})",
       "`schema.label.classes` is missing"},
      {"unknown kind", R"({"features":[{"column":"x","kind":"text"}],"label":{"column":"y"}})",
       "`schema.features[0].kind` must be one of"},
      {"threshold as a number",
       R"({"features":[{"column":"x","kind":"number"}],"label":{"column":"y","positive_above":0}})",
       "`schema.label.positive_above` must be a string"},
      {"label among features",
       R"({"features":[{"column":"y","kind":"number"}],"label":{"column":"y","positive_above":"0"}})",
       "`label.column` is also a feature"},
      {"list", "[]", "`schema` must be an object"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const StatusOr<SchemaContract> schema = SchemaFromJson(*ParseJson(c.json));
    CHECK(schema.status().code() == StatusCode::kInvalidArgument);
    CHECK(Message(schema.status()).find(c.want) != std::string_view::npos);
  }
}

}  // namespace
}  // namespace domicile::contracts

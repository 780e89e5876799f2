// The real domicile-trainer and every source of data: read behind its walls, and checked before.
#include <filesystem>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "base/json.h"
#include "base/sqlite.h"
#include "crypto/sha256.h"
#include "site_agent/trainer/testing_program.h"

namespace domicile::site_agent {
namespace {

const std::string kPictures = DOMICILE_SOURCE_DIR "/tests/golden/cases/C11/";
const std::string kCorpus = DOMICILE_SOURCE_DIR "/tests/fuzz/corpus/";

// A dataset of every source, each by its alias, and one that cannot be read.
std::string WriteDatasets(const TestSite& site) {
  std::string list = "[\"dataset.toml\"";
  const auto write = [&](const std::string& alias, const std::string& keys) {
    site.Write(alias + ".toml", "[dataset]\nalias = \"" + alias + "\"\nversion = \"1\"\n" + keys);
    list += ", \"" + alias + ".toml\"";
  };
  REQUIRE(Database::Open(site.In("ward.db"), Database::Mode::kCreate)
              ->Execute("CREATE TABLE w (x REAL, y INTEGER); INSERT INTO w VALUES (0.5, 1)")
              .ok());
  write("ward",
        "source = \"sqlite\"\nfiles = [\"ward.db\"]\nquery = \"SELECT * FROM w ORDER BY x\"\n");
  const std::string snapshot = "x,y\r\n1,0\r\n";
  site.Write("s.csv", snapshot);
  site.Write("s.csv.sha256", PrintHex(crypto::Sha256(AsBytes(snapshot))) + "  s.csv\n");
  write("registry", "source = \"postgresql\"\nfiles = [\"s.csv\"]\nquery = \"SELECT 1\"\n");
  write("digits", "source = \"idx\"\nfiles = [\"" + kCorpus + "idx/images.gz\"]\nlabels = [\"" +
                      kCorpus + "idx/labels\"]\n");
  write("scans", "source = \"images\"\nfiles = [\"" + kPictures +
                     "manifest.csv\"]\nunreadable = \"missing\"\n[[column]]\nname = "
                     "\"image\"\nlocal = \"file\"\n");
  std::filesystem::create_directories(site.In("photos/cat"));
  std::filesystem::copy_file(kPictures + "images/rgb.png", site.In("photos/cat/1.png"));
  write("photos", "source = \"images\"\nfolder = \"photos\"\n");
  std::filesystem::copy_file(kCorpus + "arrays/xy.npz", site.In("xy.npz"));
  write("broken", "source = \"arrays\"\nfiles = [\"xy.npz\"]\n");  // columns of two lengths
  write("arrays", "source = \"arrays\"\nfiles = [\"a.safetensors\"]\n");
  const std::string header = R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  Bytes arrays;
  AppendU64(arrays, header.size());
  site.Write("a.safetensors", std::string(AsText(arrays)) + header + "ab");
  return list + "]";
}

}  // namespace

TEST_CASE("domicile-trainer: every source of data is read behind the walls") {
  TestSite site("output = \"trainer.log\"\n");
  std::string config = site.Config("state", "t.sock", "output = \"trainer.log\"\n", {});
  const std::string one = "[\"dataset.toml\"]";
  config.replace(config.find(one), one.size(), WriteDatasets(site));
  site.Write("trainer.toml", config);

  Process trainer = site.Start();
  REQUIRE(trainer.Line() == "ready: unix:" + site.In("t.sock"));

  std::set<std::string> offered;
  const TrainerClient client = site.Connect();
  for (const auto& dataset : client.hello().datasets) {
    offered.insert(dataset.alias.text());
  }
  CHECK(offered ==
        std::set<std::string>{"arrays", "digits", "heart", "photos", "registry", "scans", "ward"});
  trainer.Signal(SIGTERM);
  CHECK(trainer.Wait() == 0);
  const std::string log = ReadFile(site.In("trainer.log"), 1 << 20).value();
  CHECK(log.find("dataset `broken` cannot be read and is not offered") != std::string::npos);
  CHECK(log.find("xy.npz: array `y`: has 3 rows, but `x` has 2") != std::string::npos);
  CHECK(log.find("truncated.jpg") != std::string::npos);
}

struct Said {
  int code = -1;
  std::string text;  // both streams
};

Said Say(const std::string& arguments) {
  Process program({"/bin/sh", "-c", "exec " + Program("domicile-trainer") + arguments + " 2>&1"},
                  false);
  Said said;
  said.text = program.Rest();
  said.code = program.Wait();
  return said;
}

TEST_CASE("domicile-trainer --check-data: says before any round whether the data fits a job") {
  const TestSite site;
  const std::string check = " --check-data " + site.In("dataset.toml");
  const std::string job = " --plan " + ExampleFile("job.toml");

  const Said fits = Say(check + job + " --json");
  CHECK(fits.code == 0);
  const StatusOr<Json> report = ParseJson(fits.text);
  REQUIRE(report.ok());
  REQUIRE(report->Find("plan") != nullptr);
  CHECK(*report->Find("plan")->Find("training_rows")->TryInt() == 202);
  CHECK(*report->Find("plan")->Find("test_rows")->TryInt() == 101);

  std::string table = ReadFile(site.In("table.csv"), 1 << 20).value();
  const std::size_t second = table.find(',', table.find('\n')) + 1;  // the age of the first
  table.replace(second, table.find(',', second) - second, "CanaryAge");
  site.Write("table.csv", table);
  const Said wrong = Say(check + job);
  CHECK(wrong.code == 1);
  CHECK(wrong.text.find("table.csv:2: column 2 `age`: not a number") != std::string::npos);
  CHECK(wrong.text.find("CanaryAge") == std::string::npos);
  CHECK(Say(check + job + " --show-values").text.find("CanaryAge") != std::string::npos);
  CHECK(Say(check).code == 0);  // without a job it is a cell like any other

  CHECK(Say(check + " --plan " + site.In("none.toml")).code == 2);
  CHECK(Say(check + " --local").code == 2);
  const Said no_database = Say(" --snapshot " + site.In("dataset.toml"));
  CHECK(no_database.code == 2);
  CHECK(no_database.text.find("a snapshot is taken of a dataset of source `postgresql`") !=
        std::string::npos);
}

}  // namespace domicile::site_agent

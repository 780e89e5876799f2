// Canaries: strings and numbers planted where only a site may see them. A fault touches them; then
// they are searched for in everything that anybody else has stored, logged or said.
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "tests/support/federation_processes.h"
#include "tests/support/run_command.h"

namespace domicile::test {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 20U;
const std::string kSite = "cleveland";
const std::string kCell = "QX-SENTINEL-7731";     // in a column of numbers
const std::string kFile = "MUELLER-JAN-5512";     // the name of the table's file
const std::string kColumn = "secretcolumn9917";   // of a column that no job uses
const std::string kVersion = "SENTINEL-VERSION";  // of the dataset
constexpr double kNumber = 613.0625;              // a cell that is read, exact in every format

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

template <typename T>
std::string BytesOf(T number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

// Line 4 of the table: its third record.
void PlantCanaries(const FederationProcesses& federation) {
  const std::string data = federation.Folders().Path("sites/" + kSite + "/data");
  const std::string table = data + "/data/" + kSite + ".csv";
  auto text = ReadFile(table, kLargest);
  REQUIRE(text.ok());
  std::string planted = Replaced(*text, ",slope,", "," + kColumn + ",");
  planted = Replaced(planted, "2,67,1,4,160,286,", "2,67,1,4,160,613.0625,");
  planted = Replaced(planted, "\n3,67,1,4,120,229,", "\n3,67,1,4,120," + kCell + ",");
  REQUIRE(WriteFileDurably(data + "/data/" + kFile + ".csv", AsBytes(planted)).ok());
  REQUIRE(RemoveFile(table).ok());
  auto description = ReadFile(data + "/dataset.toml", kLargest);
  REQUIRE(description.ok());
  // Without its [[column]] limits, the bad cell shows only when a job reads its column.
  const std::string top = description->substr(0, description->find("[[column]]"));
  const std::string changed = Replaced(
      Replaced(top, "data/" + kSite + ".csv", "data/" + kFile + ".csv"), "1988-1", kVersion);
  REQUIRE(WriteFileDurably(data + "/dataset.toml", AsBytes(changed)).ok());
}

}  // namespace

TEST_CASE("Canary: a fault in the data is told in full at the site and by a code elsewhere") {
  auto made = FederationProcesses::Create({.rounds = 3, .quorum = 3, .attempts = 1});
  REQUIRE_MESSAGE(made.ok(), Message(made.status()));
  FederationProcesses& federation = **made;
  PlantCanaries(federation);

  const Status started = federation.StartAll();
  REQUIRE_MESSAGE(started.ok(), Message(started));
  const StatusOr<JobId> job = federation.SubmitAndApprove();
  REQUIRE_MESSAGE(job.ok(), Message(job.status()));
  const auto ended = federation.WaitForEnd(*job);
  REQUIRE_MESSAGE(ended.ok(), Message(ended.status()));
  federation.StopAll();

  // At the site: file, line and column. The search itself works: it finds them in the data.
  const std::string site = federation.Folders().Path("sites/" + kSite);
  const auto said = ReadFile(site + "/trainer/output.log", kLargest);
  REQUIRE(said.ok());
  CHECK_MESSAGE(said->find(kFile + ".csv:4: column 6 `chol`: ") != std::string::npos, *said);
  const auto leaves = federation.Leaves(kSite);
  REQUIRE(leaves.ok());
  CHECK(CountLeaves(*leaves, [](const audit::Leaf& leaf) {
          return leaf.event.type() == audit::EventType::kTrainEnded &&
                 leaf.event.Text("result") == "failed";
        }) >= 1);
  const std::string root = federation.Folders().Folder();
  for (const std::string& canary : {kCell, kFile, kColumn, kVersion, std::string("613.0625")}) {
    CAPTURE(canary);
    CHECK_FALSE(FindBytes(site + "/data", canary).empty());
    // Beside the data and the trainer's own output nothing has it, anywhere: not the aggregator's
    // database, models and output, not a log, not what the agent wrote for its operator.
    CHECK(FindBytes(root, canary, {"/sites/" + kSite + "/data", "/sites/" + kSite + "/trainer"}) ==
          "");
  }
  // The cell never leaves the trainer's memory, and no log of its own shows it.
  CHECK(FindBytes(site + "/trainer", kCell) == "");
  for (const std::string& bytes : {BytesOf(kNumber), BytesOf(static_cast<float>(kNumber))}) {
    CHECK(FindBytes(root, bytes, {"/data", "/trainer"}) == "");
  }
}

}  // namespace domicile::test

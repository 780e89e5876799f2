// `domicile demo --case`: pictures and texts, small, with the real programs.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "base/text.h"
#include "tests/support/federation_processes.h"
#include "tests/support/run_command.h"

namespace domicile::test {
namespace {

CommandResult Demo(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {ProgramFolder() + "/domicile", "demo"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const StatusOr<CommandResult> result = RunCommand(command);
  REQUIRE_MESSAGE(result.ok(), Message(result.status()));
  return *result;
}

// The accuracy in the row of a table that begins with `title`; -1 without one.
double AccuracyOf(const std::string& out, std::string_view title) {
  for (const std::string_view line : Split(out, '\n')) {
    const std::string_view row = StripWhitespace(line);
    if (row.starts_with(title)) {
      const std::string_view rest = StripWhitespace(row.substr(title.size()));
      return ParseDouble(rest.substr(0, rest.find(' '))).value_or(-1);
    }
  }
  return -1;
}

bool IsHere(const std::string& path) { return FileExists(path); }

std::string Cache() {
  const char* const cache = std::getenv("DOMICILE_CACHE");
  const char* const home = std::getenv("HOME");
  return cache != nullptr ? cache : std::string(home != nullptr ? home : "") + "/.cache/domicile";
}

// Whether everything the case ran through was said and proven, and its models measured.
void CheckDemo(const CommandResult& result, double least_accuracy) {
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(result.out.find("both ends agree on") != std::string::npos, result.out);
  CHECK(result.out.find("NOT AS WRITTEN") == std::string::npos);
  CAPTURE(result.out);
  const double federated = AccuracyOf(result.out, "FEDERATED: no record left its laboratory");
  CHECK(federated > least_accuracy);
  // Sites that evaluate for themselves say what one who sees all records finds.
  CHECK(AccuracyOf(result.out, "the same, by the sites' counts alone") ==
        doctest::Approx(federated));
}

}  // namespace

TEST_CASE("Demo: five laboratories learn pictures, however these are cut up") {
  if (!IsHere("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz")) {
    std::puts(
        "skipped: Fashion-MNIST is not here; apt-get install dataset-fashion-mnist brings it");
    return;
  }
  CheckDemo(Demo({"--case", "fashion", "--rows", "2000", "--rounds", "3"}), 0.5);
  CheckDemo(Demo({"--case", "fashion", "--rows", "2000", "--rounds", "3", "--split", "dirichlet"}),
            0.3);
}

TEST_CASE("Demo: four laboratories train the head of an encoder on texts") {
  if (!IsHere(Cache() + "/minilm/model.safetensors")) {
    std::puts("skipped: all-MiniLM-L6-v2 is not in the cache; scripts/fetch_minilm brings it");
    return;
  }
  if (!IsHere(Cache() + "/reuters/ReutersGrain-train.arff")) {
    std::puts("skipped: the news stories are not in the cache; scripts/fetch_reuters brings them");
    return;
  }
  CheckDemo(Demo({"--case", "reuters", "--rows", "400", "--rounds", "5"}), 0.8);
}

TEST_CASE("Demo: an option of another case is refused") {
  struct Case {
    std::vector<std::string> arguments;
    const char* says;
  };
  const Case cases[] = {
      {{"--split", "iid"}, "`--split` belongs to `--case fashion`"},
      {{"--adapters"}, "`--adapters` belongs to `--case reuters`"},
      {{"--rows", "1000"}, "`--rows` belongs to"},
      {{"--case", "fashion", "--split", "random"}, "there is no split `random`"},
      {{"--case", "digits"}, "there is no case `digits`; there are `heart`, `fashion`"},
  };
  for (const Case& c : cases) {
    const CommandResult result = Demo(c.arguments);
    CAPTURE(result.err);
    CHECK(result.code == 2);
    CHECK(result.err.find(c.says) != std::string::npos);
  }
}

}  // namespace domicile::test

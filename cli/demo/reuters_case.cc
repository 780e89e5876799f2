// News stories of the Reuters-21578 collection, about grain or not, as Debian's package `weka` has
// them; cut up for four laboratories so that those with few stories have most of those about grain.
// A site's table holds one of the set's test stories behind every three others (`test_every = 4`).
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/random.h"
#include "cli/demo/arff.h"
#include "cli/demo/demo_case.h"
#include "cli/demo/partition.h"

namespace domicile::cli {

namespace {

constexpr std::size_t kSites = 4;
constexpr std::size_t kTestEvery = 4;
constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kStoriesForAdapters = 400;
constexpr std::uint64_t kLargestFile = std::uint64_t{64} << 20U;
// Shares of the stories about grain, and of the others: 22, 10, 4 and 2 in a hundred are about it.
constexpr std::array<double, kSites> kShareOfGrain = {0.4, 0.3, 0.2, 0.1};
constexpr std::array<double, kSites> kShareOfOthers = {0.1, 0.2, 0.3, 0.4};

// Where scripts/fetch_* put what they fetch.
std::string CacheFile(const std::string& name) {
  const char* const cache = std::getenv("DOMICILE_CACHE");
  const char* const home = std::getenv("HOME");
  return JoinPath(cache != nullptr ? std::string(cache)
                                   : std::string(home != nullptr ? home : "") + "/.cache/domicile",
                  name);
}

StatusOr<std::vector<ArffText>> ReadTexts(const std::string& name) {
  const std::string packaged = "/usr/share/doc/weka/examples/" + name;
  const std::string path = FileExists(packaged) ? packaged : CacheFile("reuters/" + name);
  StatusOr<std::string> file = ReadFile(path, kLargestFile);
  if (!file.ok()) {
    return Error(StatusCode::kNotFound,
                 "the news stories are not here (`" + path +
                     "`); `scripts/fetch_reuters` brings them from Debian's package weka");
  }
  return ParseArffTexts(*file, name);
}

StatusOr<std::string> FindModelFile(const std::string& name) {
  const std::string path = CacheFile("minilm/" + name);
  if (!FileExists(path)) {
    return Error(StatusCode::kNotFound, "the pretrained model is not here (`" + path +
                                            "`); `scripts/fetch_minilm` brings it");
  }
  return path;
}

void AppendRecord(const ArffText& story, std::string& table) {
  table += '"';
  for (const char c : story.text) {
    table += c == '"' ? "\"\"" : std::string(1, c);
  }
  table += "\"," + story.label + "\n";
}

Partition Cut(const std::vector<ArffText>& stories) {
  SeededRandom random(kSeed);
  Partition partition(kSites);
  for (const bool about_grain : {true, false}) {
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < stories.size(); ++row) {
      if ((stories[row].label == "1") == about_grain) {
        rows.push_back(row);
      }
    }
    DealByWeights(std::move(rows), about_grain ? kShareOfGrain : kShareOfOthers, random, partition);
  }
  return partition;
}

}  // namespace

StatusOr<DemoCase> ReutersCase(const CaseOptions& options) {
  ASSIGN_OR_RETURN(DemoCase demo, LaboratoryCase(options, "reuters", kSites));
  ASSIGN_OR_RETURN(std::string job,
                   ReadExample(options, options.adapters ? "laboratories/reuters-adapters.job.toml"
                                                         : "laboratories/reuters.job.toml"));
  ASSIGN_OR_RETURN(demo.job, WithRounds(std::move(job), options.rounds));
  ASSIGN_OR_RETURN(std::vector<ArffText> training, ReadTexts("ReutersGrain-train.arff"));
  ASSIGN_OR_RETURN(std::vector<ArffText> test, ReadTexts("ReutersGrain-test.arff"));
  SeededRandom random(kSeed);
  for (std::vector<ArffText>* stories : {&training, &test}) {
    for (std::size_t i = stories->size(); i > 1; --i) {
      std::swap((*stories)[i - 1], (*stories)[random.Below(i)]);
    }
  }
  // Training whole encoders takes a while, even by adapters.
  const std::size_t rows = options.rows != 0  ? options.rows
                           : options.adapters ? kStoriesForAdapters
                                              : training.size();
  training.resize(std::min(rows, training.size()));
  const Partition partition = Cut(training);
  std::size_t next_test = 0;
  for (std::size_t site = 0; site < kSites; ++site) {
    std::string table = "text,label\n";
    for (std::size_t i = 0; i < partition[site].size(); ++i) {
      AppendRecord(training[partition[site][i]], table);
      if (i % (kTestEvery - 1) == kTestEvery - 2 && next_test < test.size()) {
        AppendRecord(test[next_test++], table);
      }
    }
    static constexpr std::string_view kDescription =
        "# News stories. Keys: docs/formats/dataset.md.\n"
        "[dataset]\nalias = \"reuters\"\nversion = \"21578-1\"\nfiles = [\"stories.csv\"]\n"
        "test_every = 4\n";
    demo.files[demo.sites[site].name] = {
        {"dataset.toml", Bytes(kDescription.begin(), kDescription.end())},
        {"stories.csv", Bytes(table.begin(), table.end())}};
  }
  ASSIGN_OR_RETURN(const std::string model, FindModelFile("model.safetensors"));
  ASSIGN_OR_RETURN(const std::string vocabulary, FindModelFile("vocab.txt"));
  demo.pretrained = {model};
  demo.vocabularies = {vocabulary};
  if (!options.adapters && options.rows == 0 && options.rounds == 0) {
    demo.reference =
        "  A head on the same encoder, whose rows were made of unit length, in NumPy, cut up in "
        "the "
        "same way, on all 604\n  test stories: one site alone 0.937 to 0.957, federated 0.970 (AUC "
        "0.985), all in one place 0.965 (0.986).\n";
  }
  return demo;
}

}  // namespace domicile::cli

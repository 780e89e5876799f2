#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "cli/plan_words.h"
#include "cli/testing_outcome.h"
#include "models/plans/plan_model.h"

namespace domicile::cli {
namespace {

const std::string kJob = std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/heart/job.toml";
const std::string kRawJob = std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/raw/job.toml";

// A folder with the heart job's model.
class Folder {
 public:
  Folder() {
    std::string name = "/tmp/domicile-model-XXXXXX";
    path_ = mkdtemp(name.data());
    const contracts::Plan plan = ReadPlan(kJob).value();
    std::vector<models::NamedTensor> tensors =
        models::TravellingTensors(plan, models::FirstParameters(plan, {}).value());
    for (const char* constants : {"normalisation.mean", "normalisation.deviation"}) {
      models::NamedTensor tensor;
      tensor.name = constants;
      tensor.shape = {plan.NumInputs()};
      tensor.values.assign(plan.NumInputs(), 1.0F);
      tensors.push_back(std::move(tensor));
    }
    REQUIRE(WriteFileDurably(In("m.safetensors"), models::PrintSafetensors(tensors)).ok());
  }
  ~Folder() { std::system(("rm -rf '" + path_ + "'").c_str()); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string In(std::string_view name) const { return JoinPath(path_, name); }
  Outcome Export(std::string_view output, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"model", "export", In("m.safetensors"), "-o", In(output)};
    words.insert(words.end(), more.begin(), more.end());
    return RunWith(words);
  }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("domicile model export: an archive of its tensors, a graph of its plan") {
  const Folder folder;

  const Outcome npz = folder.Export("m.npz");
  const Outcome onnx = folder.Export("m.onnx", {"--plan", kJob});

  CAPTURE(npz.err);
  CAPTURE(onnx.err);
  CHECK(npz.exit == 0);
  CHECK(npz.out.empty());
  const std::string archive = ReadFile(folder.In("m.npz"), 1 << 20).value();
  CHECK(archive.starts_with("PK\x03\x04"));
  CHECK(archive.find("normalisation.mean.npy") != std::string::npos);
  CHECK(onnx.exit == 0);
  const std::string graph = ReadFile(folder.In("m.onnx"), 1 << 20).value();
  CHECK(graph.find("Heart disease at four hospitals") != std::string::npos);
  CHECK(graph.find("normalisation.deviation") != std::string::npos);
  CHECK(graph.find("Sigmoid") != std::string::npos);
  CHECK(folder.Export("m.npz").exit == 2);  // never over a file that is there
}

TEST_CASE("domicile model export: what it cannot write, and what is missing, is said") {
  const Folder folder;
  REQUIRE(WriteFileDurably(folder.In("odd.safetensors"), AsBytes("odd")).ok());
  struct Case {
    Outcome outcome;
    const char* said;
  };
  const Case cases[] = {
      {folder.Export("m.onnx"), "`--plan` is needed"},
      {folder.Export("m.onnx", {"--plan", kRawJob}), "only its own trainer knows"},
      {folder.Export("m.txt"), "must end in .npz or .onnx"},
      {RunWith({"model", "export", folder.In("odd.safetensors"), "-o", folder.In("x.npz")}),
       "odd.safetensors"},
      {RunWith({"model", "export", folder.In("m.safetensors")}), "--output"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.outcome.err);
    CHECK(c.outcome.exit == 2);
    CHECK(c.outcome.Complains(c.said));
  }
  CHECK_FALSE(FileExists(folder.In("m.onnx")));
}

}  // namespace domicile::cli

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "cli/plan_words.h"
#include "cli/testing_outcome.h"
#include "contracts/testing_jobs.h"
#include "crypto/sha256.h"
#include "models/initial.h"
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
  std::string Write(std::string_view name, ByteSpan bytes) const {
    REQUIRE(WriteFileDurably(In(name), bytes).ok());
    return In(name);
  }
  Outcome Export(std::string_view output, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"model", "export", In("m.safetensors"), "-o", In(output)};
    words.insert(words.end(), more.begin(), more.end());
    return RunWith(words);
  }

 private:
  std::string path_;
};

// The bytes of numbers as an ONNX file holds them.
std::string_view RawBytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string FileText(const std::string& path) { return ReadFile(path, 1 << 20).value(); }

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

TEST_CASE("domicile model export: the graph of a head holds the pretrained encoder below it") {
  using contracts::JobOf;
  const Folder folder;
  const contracts::Plan alone =
      contracts::MustPlan(JobOf(contracts::kShortText, contracts::kTwoClasses, contracts::kEncoder,
                                std::string(contracts::kSgd)));
  const models::ModelSpec spec = models::SpecOf(alone);
  const std::vector<models::NamedTensor> below =
      models::ToTensors(spec, models::InitialParameters(spec, 77));
  const Bytes file = models::PrintSafetensors(below);
  const std::string pretrained = folder.Write("below.safetensors", file);
  const std::string job = folder.Write(
      "job.toml", AsBytes(JobOf(contracts::kShortText, contracts::kTwoClasses,
                                std::string(contracts::kEncoder) + "pretrained = \"" +
                                    PrintHex(crypto::Sha256(file)) + "\"\n",
                                std::string(contracts::kSgd) +
                                    "frozen = [\"embeddings.*\", \"encoder.*\", \"pooler.*\"]\n")));
  std::vector<models::NamedTensor> head = {{.name = "classifier.weight", .shape = {1, 12}},
                                           {.name = "classifier.bias", .shape = {1}}};
  head[0].values.assign(12, 0.125F);
  head[1].values = {-7.25F};
  folder.Write("m.safetensors", models::PrintSafetensors(head));

  const Outcome without = folder.Export("m.onnx", {"--plan", job});
  const Outcome whole = folder.Export("m.onnx", {"--plan", job, "--pretrained", pretrained});

  CHECK(without.exit == 2);
  CHECK(without.Complains("give `--pretrained`"));
  CAPTURE(whole.err);
  REQUIRE(whole.exit == 0);
  const std::string graph = FileText(folder.In("m.onnx"));
  const models::NamedTensor* const words =
      models::FindTensor(below, "embeddings.word_embeddings.weight");
  REQUIRE(words != nullptr);
  CHECK(graph.find(RawBytes(words->values)) != std::string::npos);
  CHECK(graph.find(RawBytes(head[0].values)) != std::string::npos);
  CHECK(graph.find(RawBytes(head[1].values)) != std::string::npos);
  for (const char* const name : {"input_ids", "attention_mask", "token_type_ids"}) {
    CHECK(graph.find(name) != std::string::npos);
  }
}

TEST_CASE("domicile model export: norms by batches take statistics that somebody formed") {
  const Folder folder;
  const std::string text = contracts::JobOf(contracts::kGreyPicture, contracts::kThreeClasses,
                                            contracts::kConvNet, std::string(contracts::kSgd));
  const contracts::Plan plan = contracts::MustPlan(text);
  const std::string job = folder.Write("job.toml", AsBytes(text));
  const std::vector<float> first = models::FirstParameters(plan, {}).value();
  folder.Write("m.safetensors", models::PrintSafetensors(models::TravellingTensors(plan, first)));
  std::vector<models::NamedTensor> statistics = {{.name = "norm1.running_mean", .shape = {6}},
                                                 {.name = "norm1.running_var", .shape = {6}}};
  statistics[0].values = {1.5F, 2, 3, 4, 5, 6.5F};
  statistics[1].values = {0.5F, 2, 3, 4, 5, -1};
  const std::string odd = folder.Write("odd", models::PrintSafetensors(statistics));
  statistics[1].values.back() = 0.25F;
  const std::string formed = folder.Write("formed", models::PrintSafetensors(statistics));

  const Outcome without = folder.Export("m.onnx", {"--plan", job});
  const Outcome refused = folder.Export("m.onnx", {"--plan", job, "--statistics", odd});
  const Outcome given = folder.Export("m.onnx", {"--plan", job, "--statistics", formed});

  CHECK(without.exit == 2);
  CHECK(without.Complains("give `norm1.running_mean`"));
  CHECK(refused.exit == 2);
  CHECK(refused.Complains("must have `norm1.running_var`, 6"));
  CAPTURE(given.err);
  REQUIRE(given.exit == 0);
  CHECK(FileText(folder.In("m.onnx")).find(RawBytes(statistics[1].values)) != std::string::npos);
}

}  // namespace domicile::cli

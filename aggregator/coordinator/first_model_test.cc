#include "aggregator/coordinator/first_model.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "aggregator/coordinator/config.h"
#include "base/file.h"
#include "contracts/testing_jobs.h"
#include "crypto/sha256.h"
#include "models/initial.h"
#include "models/plans/plan_model.h"
#include "models/safetensors.h"

namespace domicile::aggregator {
namespace {

using contracts::JobOf;
using contracts::MustPlan;
using contracts::Plan;

Plan EncoderPlan(const Digest& pretrained, std::string_view frozen) {
  return MustPlan(JobOf(contracts::kShortText, contracts::kTwoClasses,
                        std::string(contracts::kEncoder) + "seed = 3\npretrained = \"" +
                            PrintHex(pretrained) + "\"\n",
                        std::string(contracts::kSgd) + std::string(frozen)));
}

TEST_CASE(
    "FirstModel: of a pretrained model only what travels, and its file only where that does") {
  Plan plan = EncoderPlan(Digest{}, "");
  plan.model.encoder.pretrained.reset();
  auto spec = std::get<models::EncoderSpec>(models::SpecOf(plan));
  spec.num_outputs = 0;
  const std::vector<float> weights = models::InitialParameters(spec, 9);
  const std::string path = DOMICILE_BINARY_DIR "/first_model_test.safetensors";
  const Bytes file = models::PrintSafetensors(models::ToTensors(spec, weights));
  REQUIRE(WriteFileDurably(path, file).ok());
  const Digest digest = crypto::Sha256(file);
  const auto read = models::PretrainedModels::Read(std::vector<std::string>{path}).value();

  const Plan whole = EncoderPlan(digest, "");
  const Plan head = EncoderPlan(digest, "frozen = [\"e*\", \"pooler.*\"]\n");
  CHECK(FirstModel(whole).status().code() == StatusCode::kNotFound);
  const auto model = models::ParseSafetensors(FirstModel(whole, read).value()).value();
  REQUIRE(model.size() == whole.Tensors().size());
  CHECK(model[0].values[5] == weights[5]);
  const auto of_head = models::ParseSafetensors(FirstModel(head).value()).value();
  CHECK(of_head.size() == 2);
  CHECK(of_head[0] == model[model.size() - 2]);
  CHECK(FirstModel(head).value() == FirstModel(head, read).value());
}

TEST_CASE("FirstModel: a network of pictures starts from the plan's seed") {
  const auto job = [](std::string_view seed) {
    return MustPlan(JobOf(contracts::kGreyPicture, contracts::kThreeClasses,
                          contracts::Replaced(std::string(contracts::kConvNet), "seed = 3",
                                              "seed = " + std::string(seed)),
                          contracts::kSgd));
  };
  CHECK(FirstModel(job("3")).value() == FirstModel(job("3")).value());
  CHECK(FirstModel(job("3")).value() != FirstModel(job("4")).value());
  CHECK(models::ParseSafetensors(FirstModel(job("3")).value())->size() ==
        job("3").Tensors().size());
}

TEST_CASE("aggregator.toml: pretrained models lie beside it") {
  const std::string toml =
      "[aggregator]\nidentity = \"i\"\nstate = \"s\"\nlisten = \"127.0.0.1:0\"\n"
      "federation_policy = \"f\"\naggregator_policy = \"a\"\nlegal_facts = \"l\"\n"
      "policy_signers = \"none\"\npretrained = [\"m.safetensors\", \"/models/n.safetensors\"]\n";
  const StatusOr<Config> config = ParseConfig(toml, "/etc/d/aggregator.toml");
  INFO(ToString(config.status()));
  REQUIRE(config.ok());
  CHECK(config->pretrained ==
        std::vector<std::string>{"/etc/d/m.safetensors", "/models/n.safetensors"});
}

}  // namespace
}  // namespace domicile::aggregator

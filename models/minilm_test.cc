// The real all-MiniLM-L6-v2, where scripts/fetch_minilm has brought it: from a text to its
// embedding.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "models/cpu/cpu_device.h"
#include "models/encoder.h"
#include "models/initial.h"
#include "models/model.h"
#include "models/text/wordpiece.h"

namespace domicile::models {
namespace {

using Golden = nlohmann::json;

std::filesystem::path CacheFolder() {
  if (const char* const folder = std::getenv("DOMICILE_CACHE")) {
    return std::filesystem::path(folder) / "minilm";
  }
  const char* const home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "/nonexistent" : home) / ".cache/domicile/minilm";
}

std::optional<std::string> Read(const char* name) {
  std::ifstream file(CacheFolder() / name, std::ios::binary);
  if (!file) {
    std::puts("skipped: all-MiniLM-L6-v2 is not in the cache; scripts/fetch_minilm brings it");
    return std::nullopt;
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Golden ReadGolden(const char* name) {
  std::ifstream file(std::string(DOMICILE_SOURCE_DIR "/tests/golden/") + name);
  return Golden::parse(file);
}

TEST_CASE("MiniLM: token ids agree with the reference tokenizer") {
  const auto file = Read("vocab.txt");
  if (!file) {
    return;
  }
  const auto vocabulary = Vocabulary::Parse(*file);
  REQUIRE(vocabulary.ok());
  const Golden golden = ReadGolden("wordpiece.json");
  const auto injections = golden.at("own_python_differs_on").get<std::vector<std::string>>();
  for (const Golden& c : golden.at("cases")) {
    const auto text = c.at("text").get<std::string>();
    CAPTURE(text);
    if (std::find(injections.begin(), injections.end(), text) == injections.end()) {
      CHECK(EncodeText(*vocabulary, text, 512).ids ==
            c.at("ids").get<std::vector<std::uint32_t>>());
    }
  }
  for (const Golden& c : golden.at("pairs")) {
    const EncodedText pair =
        EncodePair(*vocabulary, c.at("a").get<std::string>(), c.at("b").get<std::string>(), 512);
    CHECK(pair.ids == c.at("ids").get<std::vector<std::uint32_t>>());
    CHECK(pair.types == c.at("type_ids").get<std::vector<std::uint32_t>>());
  }
  for (const Golden& c : golden.at("truncation")) {
    CHECK(EncodeText(*vocabulary, c.at("text").get<std::string>(),
                     c.at("max_length").get<std::size_t>())
              .ids == c.at("ids").get<std::vector<std::uint32_t>>());
  }
}

// The rows, each divided by its Euclidean norm.
std::vector<std::vector<double>> Normalised(ConstMatrix rows) {
  std::vector<std::vector<double>> out;
  for (std::size_t row = 0; row < rows.rows; ++row) {
    const float* const values = rows.data + row * rows.columns;
    double squares = 0;
    for (std::size_t i = 0; i < rows.columns; ++i) {
      squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    std::vector<double>& normalised = out.emplace_back();
    for (std::size_t i = 0; i < rows.columns; ++i) {
      normalised.push_back(static_cast<double>(values[i]) / std::sqrt(squares));
    }
  }
  return out;
}

TEST_CASE("MiniLM: embeddings agree with the reference, alone and padded in a batch") {
  const auto weights = Read("model.safetensors");
  const auto vocabulary_file = Read("vocab.txt");
  if (!weights || !vocabulary_file) {
    return;
  }
  const auto tensors =
      ParseSafetensors({reinterpret_cast<const std::uint8_t*>(weights->data()), weights->size()});
  REQUIRE_MESSAGE(tensors.ok(), ToString(tensors.status()));
  const EncoderSpec spec = MiniLmSpec();
  std::vector<float> parameters(LayoutOf(spec).NumParameters());
  const Status loaded = LoadPretrained(spec, *tensors, parameters);
  REQUIRE_MESSAGE(loaded.ok(), ToString(loaded));
  const auto vocabulary = Vocabulary::Parse(*vocabulary_file);
  REQUIRE(vocabulary.ok());
  const Golden golden = ReadGolden("minilm_embeddings.json");
  const auto device = MakeCpuDevice(2);
  Model model(spec, *device);
  std::vector<EncodedText> texts;
  for (const Golden& sentence : golden.at("sentences")) {
    texts.push_back(EncodeText(*vocabulary, sentence.at("text").get<std::string>(), 128));
    CHECK(texts.back().ids == sentence.at("ids").get<std::vector<std::uint32_t>>());
  }

  const TokenBatch all(*vocabulary, texts);
  const auto together = Normalised(model.Forward(parameters, {.tokens = all.View()}));

  for (std::size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(i);
    const TokenBatch one(*vocabulary, {&texts[i], 1});
    const auto alone = Normalised(model.Forward(parameters, {.tokens = one.View()}));
    const auto want = golden.at("sentences").at(i).at("embedding").get<std::vector<double>>();
    double worst_alone = 0;
    double worst_together = 0;
    for (std::size_t j = 0; j < want.size(); ++j) {
      worst_alone = std::max(worst_alone, std::fabs(alone.at(0).at(j) - want[j]));
      worst_together = std::max(worst_together, std::fabs(together.at(i).at(j) - want[j]));
    }
    CHECK(worst_alone < 2e-6);
    CHECK(worst_together < 2e-6);
  }
}

TEST_CASE("LoadPretrained: what the encoder needs must be there, a head and adapters need not") {
  EncoderSpec spec = {.vocabulary = 7,
                      .positions = 5,
                      .types = 2,
                      .hidden = 4,
                      .layers = 1,
                      .heads = 2,
                      .intermediate = 6};
  const auto pretrained = InitialParameters(spec, 3);
  std::vector<NamedTensor> tensors = ToTensors(spec, pretrained);
  EncoderSpec tuned = spec;
  tuned.num_outputs = 2;
  tuned.lora = {.rank = 1, .alpha = 2};
  tuned.pooling = Pooling::kFirst;
  std::vector<float> parameters = InitialParameters(tuned, 8);
  const std::vector<float> before = parameters;

  REQUIRE(LoadPretrained(tuned, tensors, parameters).ok());

  const ParameterLayout layout = LayoutOf(tuned);
  for (const ParameterView& view : layout.Views()) {
    CAPTURE(view.name);
    const NamedTensor* const tensor = FindTensor(tensors, view.name);
    const float* const want =
        tensor == nullptr ? before.data() + view.offset : tensor->values.data();
    CHECK(std::equal(want, want + view.size,
                     parameters.begin() + static_cast<std::ptrdiff_t>(view.offset)));
  }
  NamedTensor& first = tensors.front();
  const auto named = [&] {
    return ToString(LoadPretrained(spec, tensors, parameters)).find(first.name) !=
           std::string::npos;
  };
  parameters.resize(pretrained.size());
  first.values[3] = NAN;
  CHECK(named());
  first.values[3] = 0;
  first.shape = {4, 7};
  CHECK(named());
  first.shape = {7, 4};
  CHECK(LoadPretrained(spec, tensors, parameters).ok());
  tensors.erase(tensors.begin());
  CHECK_FALSE(LoadPretrained(spec, tensors, parameters).ok());
}

}  // namespace
}  // namespace domicile::models

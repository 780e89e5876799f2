// What other programs read of an exported model: NumPy the archive, onnxruntime the graph, whose
// outputs are those of the model itself. DOMICILE_NUMPY_PYTHON and DOMICILE_ONNX_PYTHON name
// interpreters with these packages; without them /usr/bin/python3 is asked.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "models/cpu/cpu_device.h"
#include "models/export/internal/protobuf.h"
#include "models/export/npz.h"
#include "models/export/onnx.h"
#include "models/initial.h"
#include "models/layers/testing.h"
#include "models/model.h"

namespace domicile::models {
namespace {

constexpr std::size_t kExamples = 5;

// A folder for one test.
class Folder {
 public:
  Folder() {
    std::string name = "/tmp/domicile-export-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::system(("rm -rf '" + path_ + "'").c_str()); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string Write(std::string_view name, ByteSpan bytes) const {
    const std::string path = JoinPath(path_, name);
    REQUIRE(WriteFileDurably(path, bytes).ok());
    return path;
  }

 private:
  std::string path_;
};

// What a script prints; false if it fails. The script must hold no double quote.
bool RunPython(const char* variable, const std::string& script, std::string& output) {
  const char* const named = std::getenv(variable);
  const std::string python = named != nullptr ? named : "/usr/bin/python3";
  FILE* const pipe = popen(("'" + python + "' -c \"" + script + "\" 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  output.clear();
  for (int byte = std::fgetc(pipe); byte != EOF; byte = std::fgetc(pipe)) {
    output.push_back(static_cast<char>(byte));
  }
  return pclose(pipe) == 0;
}

bool PythonHas(const char* variable, const std::string& module) {
  std::string output;
  if (RunPython(variable, "import " + module, output)) {
    return true;
  }
  MESSAGE("skipped: " << module << " is not installed");
  return false;
}

// Parameters that no initial value hides a mistake in; variances are above 0.
std::vector<float> OddParameters(const ModelSpec& spec) {
  const ParameterLayout layout = LayoutOf(spec);
  std::vector<float> parameters = TestNumbers(7, layout.NumParameters(), 0.5);
  for (const ParameterView& view : layout.Views()) {
    for (std::size_t i = 0; view.name.ends_with("running_var") && i < view.size; ++i) {
      parameters[view.offset + i] = 0.5F + std::fabs(parameters[view.offset + i]);
    }
  }
  return parameters;
}

// What the model makes of a batch, as the graph's output is defined.
std::vector<float> Expected(const ModelSpec& spec, const std::vector<float>& parameters,
                            const BatchView& batch, const OnnxOptions& options) {
  const auto device = MakeCpuDevice(1);
  Model model(spec, *device);
  const ConstMatrix outputs = model.Forward(parameters, batch);
  const auto* const encoder = std::get_if<EncoderSpec>(&spec);
  if (encoder != nullptr && encoder->num_outputs == 0) {
    return {outputs.data, outputs.data + outputs.rows * outputs.columns};
  }
  std::vector<float> expected;
  for (std::size_t row = 0; row < outputs.rows; ++row) {
    const float* const at = outputs.data + row * outputs.columns;
    double sum = 0;
    for (std::size_t i = 0; i < outputs.columns; ++i) {
      sum += std::exp(static_cast<double>(at[i]));
    }
    for (std::size_t i = 0; i < outputs.columns; ++i) {
      const double value = at[i];
      expected.push_back(
          static_cast<float>(LossOf(spec) == LossKind::kSquaredError
                                 ? value * static_cast<double>(options.output_scale) +
                                       static_cast<double>(options.output_offset)
                             : outputs.columns == 1 ? 1 / (1 + std::exp(-value))
                                                    : std::exp(value) / sum));
    }
  }
  return expected;
}

struct OnnxCase {
  const char* name;
  ModelSpec spec;
  OnnxOptions options;
};

std::vector<OnnxCase> OnnxCases() {
  const std::vector<float> mean = {0.1F, -0.2F, 0.3F, 0.4F};
  const std::vector<float> deviation = {1.5F, 0.5F, 2, 1};
  return {
      {"logistic",
       NetworkSpec{.num_inputs = 4, .hidden = {}, .num_outputs = 1},
       {.mean = mean, .deviation = deviation}},
      {"softmax", NetworkSpec{.num_inputs = 4, .hidden = {}, .num_outputs = 3}, {}},
      {"linear",
       NetworkSpec{
           .num_inputs = 4, .hidden = {}, .num_outputs = 1, .loss = LossKind::kSquaredError},
       {.mean = mean, .deviation = deviation, .output_scale = 10, .output_offset = -3}},
      {"mlp",
       NetworkSpec{
           .num_inputs = 4, .hidden = {6, 5}, .activation = Activation::kSigmoid, .num_outputs = 2},
       {.mean = mean, .deviation = deviation}},
      {"convolution",
       ConvNetSpec{
           .channels = 2,
           .height = 9,
           .width = 8,
           .blocks = {{.filters = 4,
                       .kernel = 3,
                       .padding = 1,
                       .norm = ImageNorm::kGroup,
                       .groups = 2,
                       .pool_window = 2},
                      {.filters = 6, .kernel = 2, .stride = 2, .norm = ImageNorm::kFrozenBatch}},
           .hidden = {7},
           .activation = Activation::kTanh,
           .dropout = 0.5F,
           .num_outputs = 3},
       {.mean = {0.2F, 0.4F}, .deviation = {0.5F, 2}}},
      {"norm by batches",
       ConvNetSpec{.channels = 1,
                   .height = 6,
                   .width = 6,
                   .blocks = {{.filters = 3, .kernel = 3, .norm = ImageNorm::kBatch}},
                   .hidden = {},
                   .num_outputs = 2},
       {.has_statistics = true}},
      {"plain convolution",
       ConvNetSpec{.channels = 1,
                   .height = 6,
                   .width = 6,
                   .blocks = {{.filters = 3, .kernel = 3, .pool_window = 3}},
                   .hidden = {},
                   .num_outputs = 1},
       {}}};
}

// Inputs as a user has them; one of a table is missing.
std::vector<float> RawInputs(const OnnxCase& c) {
  std::vector<float> inputs = TestNumbers(11, kExamples * NumInputs(c.spec), 1);
  if (std::holds_alternative<NetworkSpec>(c.spec) && !c.options.mean.empty()) {
    inputs[2] = std::numeric_limits<float>::quiet_NaN();
  }
  return inputs;
}

std::vector<float> Normalised(const OnnxCase& c, std::vector<float> inputs) {
  const std::size_t constants = c.options.mean.size();
  const std::size_t row = NumInputs(c.spec);
  for (std::size_t i = 0; constants > 0 && i < inputs.size(); ++i) {
    const std::size_t at = i % row / (row / constants);
    inputs[i] =
        std::isnan(inputs[i]) ? 0 : (inputs[i] - c.options.mean[at]) / c.options.deviation[at];
  }
  return inputs;
}

template <typename T>
ByteSpan BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

EncoderSpec TinyEncoder() {
  return {.vocabulary = 19,
          .positions = 9,
          .types = 2,
          .hidden = 12,
          .layers = 2,
          .heads = 3,
          .intermediate = 20,
          .dropout = 0.1F,
          .num_outputs = 3};
}

// Sequences of one length, of which all but the first end in padding.
struct Sequences {
  Sequences(const EncoderSpec& spec, std::size_t number, std::size_t tokens) : length(tokens) {
    const std::vector<float> random = TestNumbers(5, 2 * number * length, 1);
    for (std::size_t i = 0; i < number * length; ++i) {
      const float draw = std::fabs(random[2 * i]);
      ids.push_back(std::min(static_cast<std::uint32_t>(draw * static_cast<float>(spec.vocabulary)),
                             static_cast<std::uint32_t>(spec.vocabulary - 1)));
      types.push_back(spec.types > 1 && random[2 * i + 1] > 0 ? 1 : 0);
      const std::size_t row = i / length;
      mask.push_back(i % length < std::max<std::size_t>(1, length - row * length / number) ? 1 : 0);
    }
  }
  TokenView View() const { return {.ids = ids, .types = types, .mask = mask, .length = length}; }
  // As the graph takes them: ids, mask and types, one after the other.
  Bytes Int64() const {
    std::vector<std::int64_t> all(ids.begin(), ids.end());
    all.insert(all.end(), mask.begin(), mask.end());
    all.insert(all.end(), types.begin(), types.end());
    const ByteSpan bytes = BytesOf(all);
    return {bytes.begin(), bytes.end()};
  }

  std::size_t length;
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> types;
  std::vector<std::uint8_t> mask;
};

// Runs one graph on batches of several lengths, and compares. True if all is within `tolerance`.
bool RunsAlike(const EncoderSpec& spec, const std::vector<float>& parameters,
               std::initializer_list<std::size_t> lengths, const char* tolerance,
               std::string& output) {
  const Folder folder;
  const OnnxOptions options = {.output_scale = 2, .output_offset = 1};
  const StatusOr<Bytes> onnx = PrintOnnx(spec, parameters, options);
  REQUIRE_MESSAGE(onnx.ok(), Message(onnx.status()));
  std::string script =
      "import numpy as np, onnxruntime as ort\n"
      "s = ort.InferenceSession('" +
      folder.Write("m.onnx", *onnx) +
      "', providers=['CPUExecutionProvider'])\n"
      "(o,) = s.get_outputs()\n"
      "def check(x, y, length):\n"
      "  x = np.fromfile(x, '<i8').reshape(3, -1, length)\n"
      "  names = ['input_ids', 'attention_mask', 'token_type_ids']\n"
      "  got = s.run(None, dict(zip(names, x)))[0]\n"
      "  y = np.fromfile(y, '<f4').reshape(x.shape[1], -1)\n"
      "  assert got.shape == y.shape == (len(y), o.shape[1]), (got.shape, y.shape, o.shape)\n"
      "  assert y.std() > 1e-3, y\n"
      "  np.testing.assert_allclose(got, y, rtol=0, atol=" +
      std::string(tolerance) + ")\n";
  for (const std::size_t length : lengths) {
    const Sequences sequences(spec, kExamples, length);
    const std::string number = std::to_string(length);
    const std::vector<float> expected =
        Expected(spec, parameters, {.tokens = sequences.View()}, options);
    script.append("check('")
        .append(folder.Write("x" + number, sequences.Int64()))
        .append("', '")
        .append(folder.Write("y" + number, BytesOf(expected)))
        .append("', ")
        .append(number)
        .append(")\n");
  }
  return RunPython("DOMICILE_ONNX_PYTHON", script + "print(o.name)", output);
}

std::filesystem::path MiniLmFile() {
  const char* const cache = std::getenv("DOMICILE_CACHE");
  const char* const home = std::getenv("HOME");
  const std::filesystem::path folder =
      cache != nullptr
          ? std::filesystem::path(cache)
          : std::filesystem::path(home == nullptr ? "/nonexistent" : home) / ".cache/domicile";
  return folder / "minilm/model.safetensors";
}

}  // namespace

TEST_CASE("ONNX: onnxruntime computes what the model computes, of every kind that is exported") {
  if (!PythonHas("DOMICILE_ONNX_PYTHON", "onnxruntime")) {
    return;
  }
  for (const OnnxCase& c : OnnxCases()) {
    CAPTURE(c.name);
    const Folder folder;
    const std::vector<float> parameters = OddParameters(c.spec);
    const std::vector<float> inputs = RawInputs(c);
    const StatusOr<Bytes> onnx = PrintOnnx(c.spec, parameters, c.options);
    REQUIRE_MESSAGE(onnx.ok(), Message(onnx.status()));
    const std::vector<float> normalised = Normalised(c, inputs);
    const std::vector<float> expected =
        Expected(c.spec, parameters, {.inputs = {normalised.data(), kExamples, NumInputs(c.spec)}},
                 c.options);

    std::string output;
    const bool ran = RunPython(
        "DOMICILE_ONNX_PYTHON",
        "import numpy as np, onnxruntime as ort\n"
        "s = ort.InferenceSession('" +
            folder.Write("m.onnx", *onnx) +
            "', providers=['CPUExecutionProvider'])\n"
            "i, (o,) = s.get_inputs()[0], s.get_outputs()\n"
            "x = np.fromfile('" +
            folder.Write("x", BytesOf(inputs)) +
            "', '<f4').reshape([-1] + i.shape[1:])\n"
            "y = np.fromfile('" +
            folder.Write("y", BytesOf(expected)) +
            "', '<f4').reshape(len(x), -1)\n"
            "got = s.run(None, {'input': x})[0]\n"
            "assert got.shape == y.shape == (5, o.shape[1]), (got.shape, y.shape, o.shape)\n"
            "assert y.std() > 1e-3, y\n"
            "np.testing.assert_allclose(got, y, rtol=2e-5, atol=2e-6)\n"
            "print(o.name)",
        output);

    CHECK_MESSAGE(ran, output);
    CHECK(output ==
          (LossOf(c.spec) == LossKind::kSquaredError ? "prediction\n" : "probabilities\n"));
  }
}

TEST_CASE("ONNX: onnxruntime computes what an encoder computes, at any length, padded or not") {
  if (!PythonHas("DOMICILE_ONNX_PYTHON", "onnxruntime")) {
    return;
  }
  EncoderSpec first = TinyEncoder();
  first.pooling = Pooling::kFirst;
  first.activation = Activation::kGeluTanh;
  first.num_outputs = 1;
  EncoderSpec adapted = TinyEncoder();
  adapted.lora = {.rank = 2, .alpha = 3};
  adapted.types = 1;
  EncoderSpec number = first;
  number.loss = LossKind::kSquaredError;
  EncoderSpec headless = TinyEncoder();
  headless.num_outputs = 0;
  struct Case {
    const char* name;
    EncoderSpec spec;
    const char* output;
  };
  for (const Case& c :
       {Case{"mean", TinyEncoder(), "probabilities\n"}, Case{"first", first, "probabilities\n"},
        Case{"adapters", adapted, "probabilities\n"}, Case{"number", number, "prediction\n"},
        Case{"no head", headless, "embedding\n"}}) {
    CAPTURE(c.name);
    std::string output;

    const bool alike = RunsAlike(c.spec, OddParameters(c.spec), {1, 4, 9}, "1e-5", output);

    CHECK_MESSAGE(alike, output);
    CHECK(output == c.output);
  }
}

TEST_CASE("ONNX: onnxruntime computes what all-MiniLM-L6-v2 computes") {
  if (!std::filesystem::exists(MiniLmFile())) {
    MESSAGE("skipped: all-MiniLM-L6-v2 is not in the cache; scripts/fetch_minilm brings it");
    return;
  }
  if (!PythonHas("DOMICILE_ONNX_PYTHON", "onnxruntime")) {
    return;
  }
  const EncoderSpec spec = MiniLmSpec();
  const std::string file = ReadFile(MiniLmFile().string(), std::uint64_t{1} << 30U).value();
  const auto tensors = ParseSafetensors(AsBytes(file));
  REQUIRE(tensors.ok());
  std::vector<float> parameters(LayoutOf(spec).NumParameters());
  REQUIRE(LoadPretrained(spec, *tensors, parameters).ok());
  std::string output;

  const bool alike = RunsAlike(spec, parameters, {1, 7, 40, 128}, "1e-4", output);

  CHECK_MESSAGE(alike, output);
}

TEST_CASE("ONNX: what cannot be used elsewhere is refused, with the reason") {
  const ConvNetSpec batch = {.channels = 1,
                             .height = 4,
                             .width = 4,
                             .blocks = {{.filters = 2, .kernel = 3, .norm = ImageNorm::kBatch}},
                             .hidden = {},
                             .num_outputs = 2};
  const NetworkSpec plain = {.num_inputs = 3, .hidden = {}, .num_outputs = 1};
  struct Case {
    const char* name;
    ModelSpec spec;
    OnnxOptions options;
    std::size_t missing;
    const char* said;
  };
  for (const Case& c : {Case{"batch", batch, {}, 0, "stay at the sites"},
                        Case{"tokens", TinyEncoder(), {.mean = {1}}, 0, "tokens"},
                        Case{"constants", plain, {.mean = {1}, .deviation = {1}}, 0, "3 inputs"},
                        Case{"parameters", plain, {}, 1, "4 parameters"}}) {
    CAPTURE(c.name);
    const std::vector<float> parameters(LayoutOf(c.spec).NumParameters() - c.missing);
    const StatusOr<Bytes> onnx = PrintOnnx(c.spec, parameters, c.options);
    REQUIRE_FALSE(onnx.ok());
    CHECK(std::string(Message(onnx.status())).find(c.said) != std::string::npos);
  }
}

TEST_CASE("npz: NumPy reads the tensors back to the same bits") {
  std::vector<NamedTensor> tensors(4);
  tensors[0] = {.name = "layer0.weight", .shape = {2, 3}, .values = {1, -2, 3e-40F, 4, 5, 6}};
  tensors[1] = {.name = "scalar", .shape = {}, .values = {7.5F}};
  tensors[2] = {.name = "one", .shape = {1}, .values = {-0.0F}};
  tensors[3] = {
      .name = "count", .shape = {2}, .type = DataType::kInt64, .integers = {-1, 1LL << 60}};
  const StatusOr<Bytes> npz = PrintNpz(tensors);
  REQUIRE(npz.ok());
  CHECK(*PrintNpz(tensors) == *npz);
  if (!PythonHas("DOMICILE_NUMPY_PYTHON", "numpy")) {
    return;
  }
  const Folder folder;

  std::string output;
  const bool ran =
      RunPython("DOMICILE_NUMPY_PYTHON",
                "import numpy as np, zipfile\n"
                "p = '" +
                    folder.Write("m.npz", *npz) +
                    "'\n"
                    "assert zipfile.ZipFile(p).testzip() is None\n"
                    "f = np.load(p)\n"
                    "print([(n, f[n].dtype.str, f[n].shape) for n in f.files])\n"
                    "print(f['layer0.weight'].tobytes().hex(), f['one'].tobytes().hex(),"
                    " f['count'].tolist(), float(f['scalar']))",
                output);

  CHECK_MESSAGE(ran, output);
  CHECK(output ==
        "[('layer0.weight', '<f4', (2, 3)), ('scalar', '<f4', ()), ('one', '<f4', (1,)), "
        "('count', '<i8', (2,))]\n"
        "0000803f000000c04744030000008040"
        "0000a0400000c040 00000080 [-1, 1152921504606846976] 7.5\n");
}

TEST_CASE("Protocol buffers: fields have the bytes of the specification") {
  internal::ProtobufMessage inner;
  inner.Integer(1, 150);
  internal::ProtobufMessage message;
  message.Text(2, "testing");
  message.Message(3, inner);
  message.Float(16, 1);
  message.Integer(1, -1);

  CHECK(message.Bytes() ==
        std::string("\x12\x07testing\x1a\x03\x08\x96\x01\x85\x01\x00\x00\x80\x3f\x08\xff\xff\xff"
                    "\xff\xff\xff\xff\xff\xff\x01",
                    31));
}

}  // namespace domicile::models

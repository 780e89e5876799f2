// The examples of python/ as trainers of a site: domicile-trainer runs them, round after round, and
// their model learns. DOMICILE_NUMPY_PYTHON, DOMICILE_TORCH_PYTHON and DOMICILE_TENSORFLOW_PYTHON
// name interpreters that have the framework; without them /usr/bin/python3 is asked.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "site_agent/trainer/testing_program.h"

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr const char* kMemory = "70368744177664";
#else
constexpr const char* kMemory = "68719476736";  // PyTorch maps far more than it uses
#endif

struct Interpreter {
  std::string path;
  std::vector<std::string> libraries;  // what it reads beside the system's
};

// The interpreter in `variable`, or the system's; empty if it cannot import the module.
std::optional<Interpreter> PythonWith(const std::string& module, const char* variable) {
  const char* const named = std::getenv(variable);
  Interpreter python{named != nullptr ? named : "/usr/bin/python3", {}};
  const std::string script =
      "import sys, sysconfig, " + module +
      "\nnames = ['stdlib', 'platstdlib', 'purelib', 'platlib']\n"
      "paths = {sysconfig.get_path(name) for name in names}\n"
      "if sys.base_prefix != '/usr': paths |= {sys.prefix, sys.base_prefix + '/lib'}\n"
      "if sys.base_prefix == '/usr': paths |= {'/usr/lib/python3'}\n"
      "import os\nprint('\\n'.join(sorted(p for p in paths if os.path.isdir(p))))";
  Process process({python.path, "-W", "ignore", "-c", script}, false);
  std::istringstream lines(process.Rest());
  for (std::string line; std::getline(lines, line);) {
    python.libraries.push_back(line);
  }
  return process.Wait() == 0 && !python.libraries.empty() ? std::optional(python) : std::nullopt;
}

std::string Quoted(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) {
    text += (text.empty() ? "\"" : ", \"") + item + "\"";
  }
  return "[" + text + "]";
}

std::string PythonFile(std::string_view name) {
  const StatusOr<std::string> text =
      ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/python/" + std::string(name), 1 << 20);
  REQUIRE(text.ok());
  return *text;
}

// A site whose trainer is an example, and the aggregator's part in a few lines.
class ExampleSite {
 public:
  ExampleSite(const Interpreter& python, const std::string& example, const std::string& tensors)
      : site_({}, "[program]\ncommand = [\"" + python.path + "\", \"" + example +
                      "\"]\nfiles = [\"" + example +
                      "\", \"heart_table.py\", \"domicile_trainer/__init__.py\", "
                      "\"domicile_trainer/model_file.py\", \"domicile_trainer/program.py\"]\n"
                      "libraries = " +
                      Quoted(python.libraries) + "\n[program.limits]\nmemory_bytes = " + kMemory +
                      "\n") {
    REQUIRE(CreateFolders(site_.In("domicile_trainer")).ok());
    for (const char* name : {"__init__.py", "model_file.py", "program.py"}) {
      const std::string file = std::string("domicile_trainer/") + name;
      site_.Write(file, PythonFile(file));
    }
    site_.Write("heart_table.py", PythonFile("examples/heart_table.py"));
    site_.Write(example, PythonFile("examples/" + example));
    const StatusOr<contracts::Plan> plan = contracts::PlanFromJobFile(
        "name = \"Example\"\npurpose = \"scientific_research\"\ndataset = \"heart\"\n"
        "recipients = [\"sites\"]\n[model]\nkind = \"raw\"\n" +
            tensors +
            "[training]\nlocal_steps = 20\nbatch = 64\n[rounds]\ncount = 40\nquorum = 2\n"
            "[update]\nview = \"plain\"\nclip_l2 = 40\nscale_bits = 20\nweight = \"examples\"\n",
        "example.toml");
    REQUIRE_MESSAGE(plan.ok(), Message(plan.status()));
    site_.job.Become(*plan);
    trainer_.emplace(site_.Start());
    REQUIRE(trainer_->Line() == "ready: unix:" + site_.In("t.sock"));
    site_.Approve();
    client_.emplace(site_.Connect());
  }

  // The mean loss of the model with which the round began; the model takes the delta.
  double Round(RoundNumber round) {
    TaskRequest request = site_.Request(round, PhaseKind::kTrain);
    if (round > 1) {
      request.model_file = models::PrintSafetensors(model_);
      request.model = crypto::TreeDigest(request.model_file);
    } else {
      model_ = models::ParseSafetensors(request.model_file).value();
    }
    const StatusOr<TaskOutcome> outcome = client_->RunTask(request, {}, {});
    REQUIRE_MESSAGE(outcome.ok(), Message(outcome.status()));
    const auto* result = std::get_if<TaskResult>(&*outcome);
    REQUIRE_MESSAGE(result != nullptr,
                    ReadFile(site_.In("state/program.log"), 1 << 20).value_or("no output"));
    CHECK(result->rows == 303);
    const auto& numbers = std::get<TrainNumbers>(result->numbers);
    REQUIRE(numbers.delta.size() == model_.size());
    for (std::size_t t = 0; t < model_.size(); ++t) {
      for (std::size_t i = 0; i < model_[t].values.size(); ++i) {
        model_[t].values[i] += numbers.delta[t].values[i];
      }
    }
    REQUIRE(numbers.loss_sum_micro.has_value());
    return static_cast<double>(*numbers.loss_sum_micro) / 1e6 /
           static_cast<double>(numbers.examples);
  }

 private:
  TestSite site_;
  std::optional<Process> trainer_;
  std::optional<TrainerClient> client_;
  std::vector<models::NamedTensor> model_;
};

std::string Tensor(const std::string& name, const std::string& shape) {
  return "[[model.tensor]]\nname = \"" + name + "\"\nshape = " + shape + "\n";
}

}  // namespace

TEST_CASE("Python trainer: the NumPy example learns behind the walls") {
  const auto python = PythonWith("numpy", "DOMICILE_NUMPY_PYTHON");
  if (!python) {
    MESSAGE("skipped: numpy is not installed");
    return;
  }
  ExampleSite site(*python, "numpy_logistic.py", Tensor("weight", "[10]") + Tensor("bias", "[1]"));

  const double first = site.Round(1);
  site.Round(2);
  const double last = site.Round(3);

  CHECK(first == doctest::Approx(std::log(2)).epsilon(1e-6));  // of a model of zeros
  CHECK(last < 0.45);
}

TEST_CASE("Python trainer: the PyTorch example learns behind the walls") {
  const auto python = PythonWith("torch", "DOMICILE_TORCH_PYTHON");
  if (!python) {
    MESSAGE("skipped: torch is not installed");
    return;
  }
  ExampleSite site(*python, "pytorch_mlp.py",
                   Tensor("0.weight", "[8, 10]") + Tensor("0.bias", "[8]") +
                       Tensor("2.weight", "[1, 8]") + Tensor("2.bias", "[1]"));

  const double first = site.Round(1);
  site.Round(2);
  const double last = site.Round(3);

  CHECK(first > 0.5);
  CHECK(last < 0.45);
}

TEST_CASE("Python trainer: the TensorFlow example learns on two devices behind the walls") {
  const auto python = PythonWith("tensorflow", "DOMICILE_TENSORFLOW_PYTHON");
  if (!python) {
    MESSAGE("skipped: tensorflow is not installed");
    return;
  }
  ExampleSite site(*python, "tensorflow_mirrored.py",
                   Tensor("hidden.kernel", "[10, 8]") + Tensor("hidden.bias", "[8]") +
                       Tensor("output.kernel", "[8, 1]") + Tensor("output.bias", "[1]"));

  const double first = site.Round(1);
  site.Round(2);
  const double last = site.Round(3);

  CHECK(first > 0.5);
  CHECK(last < 0.45);
}

}  // namespace domicile::site_agent

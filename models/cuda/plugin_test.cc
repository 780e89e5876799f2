// Loading a plug-in, and what happens where one cannot be used. These tests need no GPU.
#include "models/cuda/plugin.h"

#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "models/cpu/cpu_device.h"
#include "models/cuda/testing.h"
#include "models/cuda_plugin.h"
#include "models/layers/testing.h"
#include "models/strategy/testing.h"

namespace domicile::models {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string WhyNot(const std::string& library) {
  const auto loaded = LoadCudaPlugin(library);
  REQUIRE(!loaded.ok());
  CHECK(loaded.status().code() == StatusCode::kFailedPrecondition);
  return loaded.status().ToString();
}

TEST_CASE("CudaPlugin: a library that is not there is named, with every place looked at") {
  const std::string why = WhyNot("/nowhere/libdomicile_cuda.so");
  CHECK(Contains(why, "`/nowhere/libdomicile_cuda.so`"));
  CHECK(Contains(why, "preset `cuda`"));
  const std::vector<std::string> places = CudaPluginPlaces();
  REQUIRE(places.size() == 2);
  CHECK(places[0] == DOMICILE_BINARY_DIR "/bin/libdomicile_cuda.so");
  CHECK(places[1] == DOMICILE_BINARY_DIR "/lib/domicile/libdomicile_cuda.so");
}

TEST_CASE("CudaPlugin: what cannot be loaded, or is no plug-in, is said") {
  const std::string text =
      (std::filesystem::temp_directory_path() / ("no_plugin." + std::to_string(getpid()))).string();
  std::ofstream(text) << "not a library";
  CHECK(Contains(WhyNot(text), "cannot be loaded"));
  std::filesystem::remove(text);

  Dl_info info{};  // a library, but another one
  REQUIRE(dladdr(reinterpret_cast<const void*>(&std::signal), &info) != 0);
  CHECK(Contains(WhyNot(std::filesystem::canonical(info.dli_fname).string()), "is no GPU plug-in"));
}

TEST_CASE("CudaPlugin: a plug-in of another version is refused") {
  const std::string why = WhyNot(DOMICILE_BINARY_DIR "/lib/rehearsal/libother_version.so");
  CHECK(Contains(why, "of version " + std::to_string(cuda::kPluginAbi + 1)));
  CHECK(Contains(why, "needs " + std::to_string(cuda::kPluginAbi)));
}

TEST_CASE("CudaPlugin: the table has every function") {
  const auto plugin = LoadCudaPlugin(TestPlugin());
  REQUIRE_MESSAGE(plugin.ok(), plugin.status().ToString());
  CHECK(*LoadCudaPlugin(TestPlugin()) == *plugin);  // loaded once
  constexpr std::size_t kFirst = offsetof(cuda::Plugin, num_devices);
  for (std::size_t at = kFirst; at < sizeof(cuda::Plugin); at += sizeof(void*)) {
    CAPTURE(at);
    const void* function = nullptr;
    std::memcpy(&function, reinterpret_cast<const char*>(*plugin) + at, sizeof(function));
    CHECK(function != nullptr);
  }
}

TEST_CASE("CudaPlugin: a GPU that is not there is refused") {
  for (const int ordinal : {-1, 100}) {
    const auto device = MakeCudaDevice({.library = TestPlugin(), .ordinal = ordinal});
    REQUIRE(!device.ok());
    CHECK(device.status().code() == StatusCode::kFailedPrecondition);
    CHECK(Contains(device.status().ToString(), "no GPU " + std::to_string(ordinal)));
  }
}

TEST_CASE("CudaPlugin: the real plug-in says why there is no GPU") {
  const std::string real = DOMICILE_BINARY_DIR "/lib/domicile/libdomicile_cuda.so";
  if (!std::filesystem::exists(real)) {
    MESSAGE("skipped: built without a CUDA compiler");
    return;
  }
  const auto devices = NumCudaDevices(real);
  if (devices.ok() && *devices > 0) {
    MESSAGE("skipped: this host has a GPU");
    return;
  }
  REQUIRE(!devices.ok());
  CHECK(devices.status().code() == StatusCode::kFailedPrecondition);
  const std::string why = devices.status().ToString();
  CAPTURE(why);
  // No driver, or no library that the plug-in needs: either way the remedy is named.
  CHECK((Contains(why, "driver") || Contains(why, "libcublas")));
}

TEST_CASE("CudaDevice: one without memory left says so, does nothing more, and aborts nothing") {
  const auto device = MakeTestDevice();
  CHECK(device->Check().ok());
  Tensor small({4, 4}, device->memory());
  Tensor large({std::size_t{1} << 30U}, device->memory());
  CHECK(large.Values().data() == nullptr);
  CHECK(device->Check().code() == StatusCode::kUnavailable);
  CHECK(Contains(device->Check().ToString(), "out of memory"));

  Tensor host({4, 4});
  host.Values()[0] = 7;
  device->Add(small.Values(), small.Values(), small.Values());
  device->AddScaled(2, host.Values(), host.Values());
  device->Dense(host.AsMatrix(), {small.Values().data(), 4, 4, WeightLayout::kInOut}, {},
                Activation::kNone, small.AsMatrix());
  CHECK(host.Values()[0] == 7.0F);
  CHECK(std::isnan(device->SquaredNorm(small.Values())));
  CHECK(device->Check().code() == StatusCode::kUnavailable);
}

TEST_CASE("CudaDevice: a strategy whose device has no memory left ends with an error") {
  StrategySpec spec;
  spec.make_device = [](std::size_t /*replica*/) -> StatusOr<std::unique_ptr<Device>> {
    ASSIGN_OR_RETURN(std::unique_ptr<Device> device, MakeCudaDevice({.library = TestPlugin()}));
    const Tensor large({std::size_t{1} << 30U}, device->memory());
    return device;
  };
  TrainingSpec training;
  training.model = NetworkSpec{.num_inputs = 6, .hidden = {}, .num_outputs = 3};
  training.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1};
  const TestData data = MakeTestData(5, 6, 3);
  for (const StrategyKind kind : {StrategyKind::kOneDevice, StrategyKind::kMirrored,
                                  StrategyKind::kCentralStorage, StrategyKind::kParameterServer}) {
    CAPTURE(static_cast<int>(kind));
    spec.kind = kind;
    const auto strategy = MakeTestStrategy(spec, training);
    Status status = strategy->Step(data.View(0, 5)).status();
    status = status.ok() ? strategy->Finish().status() : status;  // asynchronous ones say it later
    CHECK(status.code() == StatusCode::kUnavailable);
    CHECK(Contains(status.ToString(), "out of memory"));
  }
}

TEST_CASE("CudaDevice: GPUs are connected with their own kind alone") {
  const auto device = MakeTestDevice();
  const auto cpu = MakeCpuDevice(1);
  Device* const devices[] = {device.get(), cpu.get()};
  const auto sum = device->Connect(devices);
  REQUIRE(!sum.ok());
  CHECK(sum.status().code() == StatusCode::kInvalidArgument);
  CHECK(cpu->Connect(devices).value() == nullptr);
}

TEST_CASE("CudaDevice: the program cannot touch the memory of the rehearsal") {
  const auto device = MakeTestDevice();
  const Tensor tensor({4}, device->memory());
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    volatile const float* const value = tensor.Values().data();
    _exit(*value == 0.0F ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
}

}  // namespace
}  // namespace domicile::models

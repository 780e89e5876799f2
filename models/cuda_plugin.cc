#include "models/cuda_plugin.h"

#include <filesystem>
#include <map>
#include <utility>

#include <dlfcn.h>
#include <unistd.h>

#include "base/mutex.h"
#include "models/cuda/cuda_device.h"

namespace domicile::models {
namespace {

using cuda::Plugin;
using cuda::Why;

Status Failed(const std::string& what) { return Error(StatusCode::kFailedPrecondition, what); }

std::string NotFound(const std::vector<std::string>& places) {
  std::string text = "no GPU plug-in: none of";
  for (const std::string& place : places) {
    text += " `" + place + "`";
  }
  return text +
         " exists; install the package with GPU support, build it with the preset `cuda`, or "
         "name its path";
}

// The library is never unloaded: its threads and the driver's outlive any device.
StatusOr<const Plugin*> Open(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps it by thread
    const char* const why = dlerror();  // names the library that is missing
    return Failed(std::string("the GPU plug-in cannot be loaded: ") +
                  (why == nullptr ? "no reason given" : why) +
                  "; install CUDA 13's cuBLAS where the loader finds it (ldconfig or "
                  "LD_LIBRARY_PATH)");
  }
  void* const symbol = dlsym(library, cuda::kPluginSymbol);
  if (symbol == nullptr) {
    return Failed("`" + path + "` is no GPU plug-in: it lacks `" + cuda::kPluginSymbol + "`");
  }
  const Plugin* const plugin = reinterpret_cast<cuda::PluginFunction>(symbol)();
  if (plugin == nullptr || plugin->abi != cuda::kPluginAbi || plugin->size != sizeof(Plugin)) {
    return Failed("the GPU plug-in `" + path + "` is of version " +
                  (plugin == nullptr ? "0" : std::to_string(plugin->abi)) +
                  ", this program needs " + std::to_string(cuda::kPluginAbi) +
                  "; install both from one release");
  }
  return plugin;
}

StatusOr<std::string> Find(const std::string& library) {
  const std::vector<std::string> places =
      library.empty() ? CudaPluginPlaces() : std::vector<std::string>{library};
  for (const std::string& place : places) {
    std::error_code error;
    if (std::filesystem::exists(place, error)) {
      return place;
    }
  }
  return Failed(NotFound(places));
}

}  // namespace

std::vector<std::string> CudaPluginPlaces() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return {};
  }
  const std::filesystem::path folder = program.parent_path();
  return {folder / cuda::kPluginFile,
          folder.parent_path() / "lib" / "domicile" / cuda::kPluginFile};
}

StatusOr<const Plugin*> LoadCudaPlugin(const std::string& library) {
  static Mutex mutex;
  static std::map<std::string, const Plugin*> loaded;
  ASSIGN_OR_RETURN(const std::string path, Find(library));
  const MutexLock lock(mutex);
  const auto found = loaded.find(path);
  if (found != loaded.end()) {
    return found->second;
  }
  ASSIGN_OR_RETURN(const Plugin* const plugin, Open(path));
  loaded[path] = plugin;
  return plugin;
}

StatusOr<std::size_t> NumCudaDevices(const std::string& library) {
  ASSIGN_OR_RETURN(const Plugin* const plugin, LoadCudaPlugin(library));
  Why why{};
  const int devices = plugin->num_devices(why);
  if (devices < 0) {
    return Failed(std::string("no GPU can be used: ") + why.text);
  }
  return static_cast<std::size_t>(devices);
}

StatusOr<std::unique_ptr<Device>> MakeCudaDevice(const CudaSpec& spec) {
  ASSIGN_OR_RETURN(const std::size_t devices, NumCudaDevices(spec.library));
  if (spec.ordinal < 0 || static_cast<std::size_t>(spec.ordinal) >= devices) {
    return Failed("there is no GPU " + std::to_string(spec.ordinal) + ": this host has " +
                  std::to_string(devices));
  }
  ASSIGN_OR_RETURN(const Plugin* const plugin, LoadCudaPlugin(spec.library));
  Why why{};
  void* const handle = plugin->open(spec.ordinal, spec.products, why);
  if (handle == nullptr) {
    return Failed("GPU " + std::to_string(spec.ordinal) + " cannot be used: " + why.text);
  }
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(*plugin, handle));
}

std::function<StatusOr<std::unique_ptr<Device>>(std::size_t replica)> CudaDevices(CudaSpec spec) {
  return [spec = std::move(spec)](std::size_t replica) {
    CudaSpec own = spec;
    own.ordinal += static_cast<int>(replica);
    return MakeCudaDevice(own);
  };
}

}  // namespace domicile::models

// The table of a plug-in over a kind of machine.
#pragma once

#include "models/cuda/plugin.h"

namespace domicile::models::cuda {

// All but the operations, which vector_operations.h and layer_operations.h fill in: they are slow
// to compile for a GPU and go into files of their own.
template <typename Machine>
Plugin TableWithoutOperations() {
  const auto of = [](void* device) -> Machine& { return *static_cast<Machine*>(device); };
  static constexpr auto kOf = of;
  using Group = typename Machine::Group;
  Plugin plugin{};
  plugin.abi = kPluginAbi;
  plugin.size = sizeof(Plugin);
  plugin.num_devices = &Machine::NumDevices;
  plugin.open = [](int ordinal, Products products, Why& why) -> void* {
    return Machine::Open(ordinal, products, why);
  };
  plugin.close = [](void* device) { delete static_cast<Machine*>(device); };
  plugin.failure = [](void* device) { return kOf(device).Failure(); };
  plugin.allocate = [](void* device, std::size_t bytes) { return kOf(device).Allocate(bytes); };
  plugin.release = [](void* device, void* memory) { kOf(device).Release(memory); };
  plugin.upload = [](void* device, void* to, const void* host_from, std::size_t bytes) {
    kOf(device).Upload(to, host_from, bytes);
  };
  plugin.download = [](void* device, void* host_to, const void* from, std::size_t bytes) {
    kOf(device).Download(host_to, from, bytes);
  };
  plugin.copy = [](void* device, void* to, const void* from, std::size_t bytes) {
    kOf(device).Copy(to, from, bytes);
  };
  plugin.zero = [](void* device, void* memory, std::size_t bytes) {
    kOf(device).Zero(memory, bytes);
  };
  plugin.connect = [](void* const* devices, std::size_t count, Why& why) -> void* {
    return Group::Connect(devices, count, why);
  };
  plugin.disconnect = [](void* group) { delete static_cast<Group*>(group); };
  plugin.begin_sum = [](void* group, std::size_t rank, float* values, std::size_t size) {
    static_cast<Group*>(group)->BeginSum(rank, values, size);
  };
  plugin.finish_sums = [](void* group, std::size_t rank) {
    static_cast<Group*>(group)->FinishSums(rank);
  };
  return plugin;
}

}  // namespace domicile::models::cuda

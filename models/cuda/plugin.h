// What libdomicile_cuda.so gives the program: one exported function that returns this table. Plain
// structs and function pointers, no CUDA headers. Operations are queued; those with a `host` result
// wait for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/cuda/calls.h"

namespace domicile::models::cuda {

// Of this file, calls.h and shapes.h. Raised with every change of either.
constexpr std::uint32_t kPluginAbi = 2;
constexpr const char* kPluginFile = "libdomicile_cuda.so";
constexpr const char* kPluginSymbol = "domicile_cuda_plugin";

// What matrix products compute with; everything else is float32.
enum class Products : std::uint8_t {
  kFloat32 = 0,
  kTensorFloat32 = 1,
  kBfloat16 = 2,
  kFloat16 = 3
};

// Why something did not work, for a person. Ends in 0.
struct Why {
  char text[256];
};

template <typename Call>
using Operation = void (*)(void* device, const Call& call);

// A function that can fail gives null, -1 or false then, and says why.
struct Plugin {
  std::uint32_t abi;
  std::uint32_t size;  // of this struct

  // --- Devices. One thread at a time for each.
  int (*num_devices)(Why& why);
  void* (*open)(int ordinal, Products products, Why& why);
  void (*close)(void* device);
  // Null while all is well. From the first failure on nothing is done any more.
  const char* (*failure)(void* device);

  // --- Memory; null and a failed device where none is left.
  void* (*allocate)(void* device, std::size_t bytes);
  void (*release)(void* device, void* memory);
  void (*upload)(void* device, void* to, const void* host_from, std::size_t bytes);
  void (*download)(void* device, void* host_to, const void* from, std::size_t bytes);
  void (*copy)(void* device, void* to, const void* from, std::size_t bytes);
  void (*zero)(void* device, void* memory, std::size_t bytes);

  // --- Replicas: devices[rank] for each rank. Every rank calls the sums from its own thread, as
  // DeviceSum (layers/device.h).
  void* (*connect)(void* const* devices, std::size_t count, Why& why);
  void (*disconnect)(void* group);
  void (*begin_sum)(void* group, std::size_t rank, float* values, std::size_t size);
  void (*finish_sums)(void* group, std::size_t rank);

  // --- Operations
  Operation<DenseCall> dense;
  Operation<DenseWeightGradientCall> dense_weight_gradient;
  Operation<DenseBiasGradientCall> dense_bias_gradient;
  Operation<DenseInputGradientCall> dense_input_gradient;
  Operation<ActivateCall> activate;
  Operation<ActivationGradientCall> activation_gradient;
  Operation<DropoutCall> dropout;
  Operation<Conv2dCall> conv2d;
  Operation<Conv2dWeightGradientCall> conv2d_weight_gradient;
  Operation<Conv2dInputGradientCall> conv2d_input_gradient;
  Operation<PoolCall> pool;
  Operation<PoolGradientCall> pool_gradient;
  Operation<GroupNormCall> group_norm;
  Operation<GroupNormGradientCall> group_norm_gradient;
  Operation<ChannelSumsCall> channel_sums;
  Operation<ChannelAffineCall> channel_affine;
  Operation<GatherCall> gather;
  Operation<ScatterAddCall> scatter_add;
  Operation<AttentionCall> attention;
  Operation<AttentionGradientCall> attention_gradient;
  Operation<MeanOfTokensCall> mean_of_tokens;
  Operation<MeanOfTokensGradientCall> mean_of_tokens_gradient;
  Operation<CrossEntropyCall> cross_entropy;
  Operation<SquaredErrorCall> squared_error;
  Operation<AddScaledCall> add_scaled;
  Operation<AddCall> add;
  Operation<ScaleCall> scale;
  Operation<SquaredNormCall> squared_norm;
  Operation<SgdCall> sgd;
  Operation<AdamCall> adam;
};

using PluginFunction = const Plugin* (*)();

}  // namespace domicile::models::cuda

// A GPU behind a plug-in as a Device. Made by MakeCudaDevice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "models/cuda/plugin.h"
#include "models/layers/device.h"
#include "models/memory.h"

namespace domicile::models {

// What was allocated here is known by its addresses: an operand that lies elsewhere is in host
// memory. One thread at a time.
class CudaMemory final : public Memory {
 public:
  CudaMemory(const cuda::Plugin& plugin, void* handle) : plugin_(&plugin), handle_(handle) {}

  bool IsHost() const override { return false; }
  void* Allocate(std::size_t bytes) override;
  void Free(void* memory) override;
  void Copy(void* to, const void* from, std::size_t bytes) override;
  void Zero(void* memory, std::size_t bytes) override;

  bool Holds(const void* memory) const;

 private:
  const cuda::Plugin* plugin_;
  void* handle_;
  std::map<std::uintptr_t, std::size_t> allocated_;  // address to size
};

// The rows of a batch by the id each has, in the order of the batch within an id: group g is
// rows[starts[g], starts[g + 1]), all of id targets[g].
struct ScatterPlan {
  std::vector<std::uint32_t> targets;
  std::vector<std::uint32_t> starts;
  std::vector<std::uint32_t> rows;
};
ScatterPlan PlanScatter(std::span<const std::uint32_t> ids);

class CudaDevice final : public Device {
 public:
  // Takes the handle, which `plugin` opened and which is closed with it.
  CudaDevice(const cuda::Plugin& plugin, void* handle)
      : plugin_(&plugin), handle_(handle), memory_(plugin, handle) {}
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const cuda::Plugin& plugin() const { return *plugin_; }
  void* handle() const { return handle_; }

  Memory& memory() override { return memory_; }
  Status Check() override;
  // By NCCL. The sum is in an order that depends on the number of GPUs and their links alone.
  StatusOr<std::unique_ptr<DeviceSum>> Connect(std::span<Device* const> devices) override;

  void Dense(ConstMatrix x, const Weight& w, std::span<const float> bias, Activation activation,
             Matrix y) override;
  void DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) override;
  void DenseBiasGradient(ConstMatrix dy, std::span<float> db) override;
  void DenseInputGradient(ConstMatrix dy, const Weight& w, bool accumulate, Matrix dx) override;

  void Activate(Activation activation, ConstMatrix x, Matrix y) override;
  void ActivationGradient(Activation activation, ConstMatrix saved, Matrix dy) override;
  void Dropout(const DropoutMask& mask, ConstMatrix x, Matrix y) override;

  void Conv2d(const ConvShape& shape, ConstMatrix x, std::span<const float> filters,
              std::span<const float> bias, Activation activation, Matrix y) override;
  void Conv2dWeightGradient(const ConvShape& shape, ConstMatrix x, ConstMatrix dy,
                            std::span<float> dfilters, std::span<float> dbias) override;
  void Conv2dInputGradient(const ConvShape& shape, ConstMatrix dy, std::span<const float> filters,
                           Matrix dx) override;
  void MaxPool(const PoolShape& shape, ConstMatrix x, Matrix y,
               std::span<std::uint32_t> chosen) override;
  void MaxPoolGradient(const PoolShape& shape, std::span<const std::uint32_t> chosen,
                       ConstMatrix dy, Matrix dx) override;
  void AveragePool(const PoolShape& shape, ConstMatrix x, Matrix y) override;
  void AveragePoolGradient(const PoolShape& shape, ConstMatrix dy, Matrix dx) override;

  void GroupNorm(const NormShape& shape, ConstMatrix x, std::span<const float> scale,
                 std::span<const float> shift, Matrix y, std::span<float> statistics) override;
  void GroupNormGradient(const NormShape& shape, ConstMatrix x, std::span<const float> scale,
                         std::span<const float> statistics, ConstMatrix dy, Matrix dx,
                         std::span<float> dscale, std::span<float> dshift) override;
  void ChannelSums(ConstMatrix x, std::span<const float> origin, ConstMatrix z,
                   std::span<const float> centre, std::span<double> first,
                   std::span<double> second) override;
  void ChannelAffine(ConstMatrix x, std::span<const float> a, ConstMatrix z,
                     std::span<const float> b, std::span<const float> d, Matrix y) override;

  void Gather(ConstMatrix table, std::span<const std::uint32_t> ids, bool accumulate,
              Matrix y) override;
  void ScatterAdd(std::span<const std::uint32_t> ids, ConstMatrix dy, Matrix dtable) override;
  void Attention(const AttentionShape& shape, ConstMatrix q, ConstMatrix k, ConstMatrix v,
                 std::span<const std::uint8_t> mask, const DropoutMask& dropout,
                 std::span<float> probabilities, Matrix y) override;
  void AttentionGradient(const AttentionShape& shape, ConstMatrix q, ConstMatrix k, ConstMatrix v,
                         std::span<const float> probabilities, const DropoutMask& dropout,
                         ConstMatrix dy, Matrix dq, Matrix dk, Matrix dv) override;
  void MeanOfTokens(ConstMatrix x, std::size_t length, std::span<const std::uint8_t> mask,
                    Matrix y) override;
  void MeanOfTokensGradient(ConstMatrix dy, std::size_t length, std::span<const std::uint8_t> mask,
                            Matrix dx) override;

  double BinaryCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels, float scale,
                            Matrix dz) override;
  double SoftmaxCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels, float scale,
                             Matrix dz) override;
  double SquaredError(ConstMatrix z, ConstMatrix targets, float scale, Matrix dz) override;

  void AddScaled(float a, std::span<const float> x, std::span<float> y) override;
  void Add(std::span<const float> a, std::span<const float> b, std::span<float> y) override;
  void Scale(float a, std::span<float> x) override;
  double SquaredNorm(std::span<const float> x) override;
  void Sgd(const SgdStep& step, std::span<const float> gradient, std::span<float> momentum,
           std::span<float> parameters) override;
  void Adam(const AdamStep& step, std::span<const float> gradient, std::span<float> first,
            std::span<float> second, std::span<float> parameters) override;

 private:
  friend class CudaCall;

  void Pool(const PoolShape& shape, ConstMatrix x, Matrix y, std::uint32_t* chosen);
  void PoolGradient(const PoolShape& shape, const std::uint32_t* chosen, ConstMatrix dy, Matrix dx);
  double CrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels, float scale, Matrix dz);

  const cuda::Plugin* plugin_;
  void* handle_;
  CudaMemory memory_;
  // Room for operands of one call that lie in host memory.
  std::vector<Buffer<std::uint8_t>> stages_;
};

}  // namespace domicile::models

#include "models/cuda/cuda_device.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "models/cuda/internal/cuda_call.h"

namespace domicile::models {
namespace {

std::size_t Inputs(const ConvShape& s) { return s.channels * s.height * s.width; }
std::size_t Inputs(const PoolShape& s) { return s.channels * s.height * s.width; }

bool SameShape(ConstMatrix a, ConstMatrix b) { return a.rows == b.rows && a.columns == b.columns; }

}  // namespace

void* CudaMemory::Allocate(std::size_t bytes) {
  void* const memory = plugin_->allocate(handle_, std::max<std::size_t>(bytes, 1));
  if (memory != nullptr) {
    allocated_[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
  }
  return memory;
}

void CudaMemory::Free(void* memory) {
  allocated_.erase(reinterpret_cast<std::uintptr_t>(memory));
  plugin_->release(handle_, memory);
}

bool CudaMemory::Holds(const void* memory) const {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto after = allocated_.upper_bound(address);
  return after != allocated_.begin() &&
         address - std::prev(after)->first < std::prev(after)->second;
}

void CudaMemory::Copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0 || plugin_->failure(handle_) != nullptr) {
    return;
  }
  if (!Holds(to)) {
    if (Holds(from)) {
      plugin_->download(handle_, to, from, bytes);
    } else {
      HostMemory().Copy(to, from, bytes);
    }
  } else if (Holds(from)) {
    plugin_->copy(handle_, to, from, bytes);
  } else {
    plugin_->upload(handle_, to, from, bytes);
  }
}

void CudaMemory::Zero(void* memory, std::size_t bytes) {
  if (Holds(memory)) {
    plugin_->zero(handle_, memory, bytes);
  } else if (memory != nullptr) {
    HostMemory().Zero(memory, bytes);
  }
}

CudaDevice::~CudaDevice() {
  stages_.clear();
  plugin_->close(handle_);
}

Status CudaDevice::Check() {
  const char* const failure = plugin_->failure(handle_);
  if (failure == nullptr) {
    return OkStatus();
  }
  return Error(StatusCode::kUnavailable, std::string("the GPU has failed: ") + failure);
}

namespace {

class CudaSum final : public DeviceSum {
 public:
  CudaSum(const cuda::Plugin& plugin, void* group) : plugin_(&plugin), group_(group) {}
  ~CudaSum() override { plugin_->disconnect(group_); }
  CudaSum(const CudaSum&) = delete;
  CudaSum& operator=(const CudaSum&) = delete;

  void Begin(std::size_t rank, std::span<float> values) override {
    plugin_->begin_sum(group_, rank, values.data(), values.size());
  }
  void Finish(std::size_t rank) override { plugin_->finish_sums(group_, rank); }

 private:
  const cuda::Plugin* plugin_;
  void* group_;
};

}  // namespace

StatusOr<std::unique_ptr<DeviceSum>> CudaDevice::Connect(std::span<Device* const> devices) {
  std::vector<void*> handles;
  for (Device* const device : devices) {
    const auto* const other = dynamic_cast<const CudaDevice*>(device);
    if (other == nullptr || other->plugin_ != plugin_) {
      return Error(StatusCode::kInvalidArgument,
                   "a GPU can be connected with GPUs of the same plug-in alone");
    }
    handles.push_back(other->handle_);
  }
  cuda::Why why{};
  void* const group = plugin_->connect(handles.data(), handles.size(), why);
  if (group == nullptr) {
    return Error(StatusCode::kFailedPrecondition,
                 std::string("the GPUs cannot be connected: ") + why.text);
  }
  return std::unique_ptr<DeviceSum>(std::make_unique<CudaSum>(*plugin_, group));
}

void CudaDevice::Dense(ConstMatrix x, const Weight& w, std::span<const float> bias,
                       Activation activation, Matrix y) {
  DOMICILE_CHECK(x.columns == w.inputs && y.rows == x.rows && y.columns == w.outputs &&
                 (bias.empty() || bias.size() == w.outputs));
  CudaCall call(*this);
  plugin_->dense(handle_, {.x = call.In(x),
                           .rows = x.rows,
                           .weight = call.In(w),
                           .bias = bias.empty() ? nullptr : call.In(bias),
                           .activation = activation,
                           .y = call.Out(y)});
}

void CudaDevice::DenseWeightGradient(ConstMatrix x, ConstMatrix dy, Matrix dw) {
  DOMICILE_CHECK(x.rows == dy.rows && dw.rows == x.columns && dw.columns == dy.columns);
  CudaCall call(*this);
  plugin_->dense_weight_gradient(handle_, {.x = call.In(x),
                                           .dy = call.In(dy),
                                           .rows = x.rows,
                                           .inputs = x.columns,
                                           .outputs = dy.columns,
                                           .dw = call.Out(dw)});
}

void CudaDevice::DenseBiasGradient(ConstMatrix dy, std::span<float> db) {
  DOMICILE_CHECK(db.size() == dy.columns);
  CudaCall call(*this);
  plugin_->dense_bias_gradient(
      handle_, {.dy = call.In(dy), .rows = dy.rows, .columns = dy.columns, .db = call.Out(db)});
}

void CudaDevice::DenseInputGradient(ConstMatrix dy, const Weight& w, bool accumulate, Matrix dx) {
  DOMICILE_CHECK(dy.columns == w.outputs && dx.columns == w.inputs && dx.rows == dy.rows);
  CudaCall call(*this);
  plugin_->dense_input_gradient(handle_, {.dy = call.In(dy),
                                          .rows = dy.rows,
                                          .weight = call.In(w),
                                          .accumulate = accumulate,
                                          .dx = accumulate ? call.InOut(dx) : call.Out(dx)});
}

void CudaDevice::Activate(Activation activation, ConstMatrix x, Matrix y) {
  DOMICILE_CHECK(SameShape(x, y));
  CudaCall call(*this);
  plugin_->activate(
      handle_,
      {.activation = activation, .x = call.In(x), .size = x.rows * x.columns, .y = call.Out(y)});
}

void CudaDevice::ActivationGradient(Activation activation, ConstMatrix saved, Matrix dy) {
  DOMICILE_CHECK(SameShape(saved, dy));
  if (activation == Activation::kNone) {
    return;
  }
  CudaCall call(*this);
  plugin_->activation_gradient(handle_, {.activation = activation,
                                         .saved = call.In(saved),
                                         .size = dy.rows * dy.columns,
                                         .dy = call.InOut(dy)});
}

void CudaDevice::Dropout(const DropoutMask& mask, ConstMatrix x, Matrix y) {
  DOMICILE_CHECK(SameShape(x, y) && mask.rate >= 0 && mask.rate < 1);
  CudaCall call(*this);
  plugin_->dropout(handle_,
                   {.mask = mask, .x = call.In(x), .size = x.rows * x.columns, .y = call.Out(y)});
}

void CudaDevice::Conv2d(const ConvShape& shape, ConstMatrix x, std::span<const float> filters,
                        std::span<const float> bias, Activation activation, Matrix y) {
  DOMICILE_CHECK(x.columns == Inputs(shape) && y.columns == shape.outputs && x.rows == y.rows &&
                 filters.size() == shape.filters * shape.patch && bias.size() == shape.filters);
  CudaCall call(*this);
  plugin_->conv2d(handle_, {.shape = shape,
                            .x = call.In(x),
                            .rows = x.rows,
                            .filters = call.In(filters),
                            .bias = call.In(bias),
                            .activation = activation,
                            .y = call.Out(y)});
}

void CudaDevice::Conv2dWeightGradient(const ConvShape& shape, ConstMatrix x, ConstMatrix dy,
                                      std::span<float> dfilters, std::span<float> dbias) {
  DOMICILE_CHECK(x.columns == Inputs(shape) && dy.columns == shape.outputs && x.rows == dy.rows &&
                 dfilters.size() == shape.filters * shape.patch && dbias.size() == shape.filters);
  CudaCall call(*this);
  plugin_->conv2d_weight_gradient(handle_, {.shape = shape,
                                            .x = call.In(x),
                                            .dy = call.In(dy),
                                            .rows = x.rows,
                                            .dfilters = call.Out(dfilters),
                                            .dbias = call.Out(dbias)});
}

void CudaDevice::Conv2dInputGradient(const ConvShape& shape, ConstMatrix dy,
                                     std::span<const float> filters, Matrix dx) {
  DOMICILE_CHECK(dx.columns == Inputs(shape) && dy.columns == shape.outputs && dx.rows == dy.rows &&
                 filters.size() == shape.filters * shape.patch);
  CudaCall call(*this);
  plugin_->conv2d_input_gradient(handle_, {.shape = shape,
                                           .dy = call.In(dy),
                                           .rows = dy.rows,
                                           .filters = call.In(filters),
                                           .dx = call.Out(dx)});
}

void CudaDevice::Pool(const PoolShape& shape, ConstMatrix x, Matrix y, std::uint32_t* chosen) {
  DOMICILE_CHECK(x.columns == Inputs(shape) && y.columns == shape.outputs && x.rows == y.rows);
  CudaCall call(*this);
  plugin_->pool(handle_, {.shape = shape,
                          .x = call.In(x),
                          .rows = x.rows,
                          .y = call.Out(y),
                          .chosen = call.Out(chosen, y.rows * y.columns)});
}

void CudaDevice::PoolGradient(const PoolShape& shape, const std::uint32_t* chosen, ConstMatrix dy,
                              Matrix dx) {
  DOMICILE_CHECK(dx.columns == Inputs(shape) && dy.columns == shape.outputs && dx.rows == dy.rows);
  CudaCall call(*this);
  plugin_->pool_gradient(handle_, {.shape = shape,
                                   .chosen = call.In(chosen, dy.rows * dy.columns),
                                   .dy = call.In(dy),
                                   .rows = dy.rows,
                                   .dx = call.Out(dx)});
}

void CudaDevice::MaxPool(const PoolShape& shape, ConstMatrix x, Matrix y,
                         std::span<std::uint32_t> chosen) {
  DOMICILE_CHECK(chosen.size() == y.rows * y.columns);
  Pool(shape, x, y, chosen.data());
}

void CudaDevice::MaxPoolGradient(const PoolShape& shape, std::span<const std::uint32_t> chosen,
                                 ConstMatrix dy, Matrix dx) {
  DOMICILE_CHECK(chosen.size() == dy.rows * dy.columns);
  PoolGradient(shape, chosen.data(), dy, dx);
}

void CudaDevice::AveragePool(const PoolShape& shape, ConstMatrix x, Matrix y) {
  Pool(shape, x, y, nullptr);
}

void CudaDevice::AveragePoolGradient(const PoolShape& shape, ConstMatrix dy, Matrix dx) {
  PoolGradient(shape, nullptr, dy, dx);
}

void CudaDevice::GroupNorm(const NormShape& shape, ConstMatrix x, std::span<const float> scale,
                           std::span<const float> shift, Matrix y, std::span<float> statistics) {
  DOMICILE_CHECK(x.columns == shape.channels * shape.positions && SameShape(x, y) &&
                 scale.size() == shape.channels && shift.size() == shape.channels &&
                 shape.channels % shape.groups == 0 &&
                 statistics.size() == 2 * x.rows * shape.groups);
  CudaCall call(*this);
  plugin_->group_norm(handle_, {.shape = shape,
                                .x = call.In(x),
                                .rows = x.rows,
                                .scale = call.In(scale),
                                .shift = call.In(shift),
                                .y = call.Out(y),
                                .statistics = call.Out(statistics)});
}

void CudaDevice::GroupNormGradient(const NormShape& shape, ConstMatrix x,
                                   std::span<const float> scale, std::span<const float> statistics,
                                   ConstMatrix dy, Matrix dx, std::span<float> dscale,
                                   std::span<float> dshift) {
  DOMICILE_CHECK(x.columns == shape.channels * shape.positions && SameShape(x, dy) &&
                 statistics.size() == 2 * x.rows * shape.groups &&
                 (dx.data == nullptr || SameShape(x, dx)) && dscale.size() == dshift.size() &&
                 (dscale.empty() || dscale.size() == shape.channels));
  CudaCall call(*this);
  plugin_->group_norm_gradient(handle_, {.shape = shape,
                                         .x = call.In(x),
                                         .rows = x.rows,
                                         .scale = call.In(scale),
                                         .statistics = call.In(statistics),
                                         .dy = call.In(dy),
                                         .dx = call.Out(dx),
                                         .dscale = dscale.empty() ? nullptr : call.Out(dscale),
                                         .dshift = dshift.empty() ? nullptr : call.Out(dshift)});
}

void CudaDevice::ChannelSums(ConstMatrix x, std::span<const float> origin, ConstMatrix z,
                             std::span<const float> centre, std::span<double> first,
                             std::span<double> second) {
  const std::size_t channels = origin.size();
  DOMICILE_CHECK(channels > 0 && x.columns % channels == 0 && SameShape(x, z) &&
                 centre.size() == channels && first.size() == channels &&
                 second.size() == channels);
  CudaCall call(*this);
  plugin_->channel_sums(handle_, {.rows = x.rows,
                                  .channels = channels,
                                  .positions = x.columns / channels,
                                  .x = call.In(x),
                                  .origin = call.In(origin),
                                  .z = call.In(z),
                                  .centre = call.In(centre),
                                  .host_first = first.data(),
                                  .host_second = second.data()});
}

void CudaDevice::ChannelAffine(ConstMatrix x, std::span<const float> a, ConstMatrix z,
                               std::span<const float> b, std::span<const float> d, Matrix y) {
  const std::size_t channels = a.size();
  DOMICILE_CHECK(channels > 0 && x.columns % channels == 0 && SameShape(x, y) &&
                 b.size() == channels && d.size() == channels &&
                 (z.data == nullptr || SameShape(x, z)));
  CudaCall call(*this);
  plugin_->channel_affine(handle_, {.rows = x.rows,
                                    .channels = channels,
                                    .positions = x.columns / channels,
                                    .x = call.In(x),
                                    .a = call.In(a),
                                    .z = call.In(z),
                                    .b = call.In(b),
                                    .d = call.In(d),
                                    .y = call.Out(y)});
}

}  // namespace domicile::models

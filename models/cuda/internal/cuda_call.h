// The operands of one operation of a CudaDevice.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/cuda/cuda_device.h"

namespace domicile::models {

// Brings those that lie in host memory to the device before the operation, and back after it: when
// this goes, the results are where they were wanted.
class CudaCall {
 public:
  explicit CudaCall(CudaDevice& device) : device_(&device) {}
  ~CudaCall() {
    for (const Result& result : results_) {
      device_->memory_.Copy(result.host, result.staged, result.bytes);
    }
  }
  CudaCall(const CudaCall&) = delete;
  CudaCall& operator=(const CudaCall&) = delete;

  template <typename T>
  const T* In(const T* values, std::size_t size) {
    if (size == 0 || values == nullptr || device_->memory_.Holds(values)) {
      return values;
    }
    T* const staged = Stage<T>(size);
    device_->memory_.Copy(staged, values, size * sizeof(T));
    return staged;
  }
  template <typename T>
  const T* In(std::span<const T> values) {
    return In(values.data(), values.size());
  }
  const float* In(ConstMatrix m) { return In(m.data, m.rows * m.columns); }
  // What the operation writes without reading it.
  template <typename T>
  T* Out(T* values, std::size_t size) {
    if (size == 0 || values == nullptr || device_->memory_.Holds(values)) {
      return values;
    }
    T* const staged = Stage<T>(size);
    results_.push_back({values, staged, size * sizeof(T)});
    return staged;
  }
  float* Out(std::span<float> values) { return Out(values.data(), values.size()); }
  float* Out(Matrix m) { return Out(m.data, m.rows * m.columns); }
  float* InOut(float* values, std::size_t size) {
    float* const place = Out(values, size);
    if (place != values) {
      device_->memory_.Copy(place, values, size * sizeof(float));
    }
    return place;
  }
  float* InOut(std::span<float> values) { return InOut(values.data(), values.size()); }
  float* InOut(Matrix m) { return InOut(m.data, m.rows * m.columns); }

  Weight In(Weight w) {
    w.data = In(w.data, w.inputs * w.outputs);
    return w;
  }

 private:
  struct Result {
    void* host;
    const void* staged;
    std::size_t bytes;
  };

  template <typename T>
  T* Stage(std::size_t size) {
    if (next_ == device_->stages_.size()) {
      device_->stages_.emplace_back();
    }
    Buffer<std::uint8_t>& stage = device_->stages_[next_++];
    stage.Resize(size * sizeof(T), device_->memory_);
    return reinterpret_cast<T*>(stage.data());
  }

  CudaDevice* device_;
  std::size_t next_ = 0;
  std::vector<Result> results_;
};

}  // namespace domicile::models

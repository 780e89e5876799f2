// For the tests of layers: golden cases from PyTorch, and gradients by finite differences.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/layers/layer.h"
#include "models/tensor.h"

namespace domicile::models {

using Golden = nlohmann::json;

// A case of tests/golden/nn_gradients.json; fails the test if there is none of that name.
const Golden& GoldenCase(const std::string& name);

// An array of the vectors: as float32 numbers, and as a tensor of that shape.
std::vector<float> GoldenValues(const Golden& array);
Tensor GoldenTensor(const Golden& array, std::vector<std::size_t> shape);

// Within 2e-5 of the largest magnitude, as the vectors ask of float32.
void CheckGolden(std::span<const float> got, const Golden& array);

// Uniform numbers in [-scale, scale] with four digits.
std::vector<float> TestNumbers(std::uint64_t seed, std::size_t size, double scale);

// The device of the test program: each that tests layers defines it.
std::unique_ptr<Device> MakeTestDevice();

// A layer with a vector of parameters in host memory, on MakeTestDevice().
class LayerUnderTest {
  std::unique_ptr<Device> device_;  // first: it must outlive what lies in its memory

 public:
  explicit LayerUnderTest(std::unique_ptr<Layer> layer);

  Device& device() { return *device_; }

  // The tensor of that name inside the parameters or the gradient of the last Backward.
  std::span<float> Values(const std::string& name);
  std::span<const float> GradientOf(const std::string& name) const;

  // Parameters: random, scales about 1.
  void Randomise(std::uint64_t seed);

  Tensor Forward(const Tensor& x);
  // Also runs Forward. Returns dx, empty unless wanted.
  Tensor Backward(const Tensor& x, const Tensor& dy, bool wants_dx = true);

  // Compares every gradient of a random linear function of the output with central differences.
  void CheckGradients(const Tensor& x, std::uint64_t seed, bool differentiable_in_x = true);

  ParameterLayout layout;
  Pass pass;  // the test's to fill in; parameters are set by each call
  std::unique_ptr<Layer> layer;
  std::vector<float> parameters;
  std::vector<float> gradient;

 private:
  double Project(const Tensor& x, std::span<const float> cotangent);
};

}  // namespace domicile::models

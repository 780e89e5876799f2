#include "models/initial.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

namespace domicile::models {
namespace {

TEST_CASE("InitialParameters: logistic models start at zero whatever the seed") {
  const auto parameters =
      InitialParameters(NetworkSpec{.num_inputs = 5, .hidden = {}, .num_outputs = 3}, 7);

  CHECK(parameters == std::vector<float>(18, 0.0F));
}

TEST_CASE("InitialParameters: MLP weights are normal with deviation 1/sqrt(inputs), biases zero") {
  const NetworkSpec spec = {
      .num_inputs = 100, .hidden = {50}, .activation = Activation::kTanh, .num_outputs = 10};

  const auto parameters = InitialParameters(spec, 42);

  CHECK(parameters == InitialParameters(spec, 42));
  CHECK(parameters != InitialParameters(spec, 43));
  const ParameterLayout layout = LayoutOf(spec);
  for (const ParameterView& view : layout.Views()) {
    CAPTURE(view.name);
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < view.size; ++i) {
      const double value = static_cast<double>(parameters[view.offset + i]);
      sum += value;
      squares += value * value;
    }
    const double n = static_cast<double>(view.size);
    const double deviation =
        view.role == ParameterRole::kBias ? 0 : 1 / std::sqrt(static_cast<double>(view.shape[0]));
    // Four standard errors of a mean and of a deviation.
    CHECK(std::fabs(sum / n) <= 4 * deviation / std::sqrt(n));
    CHECK(std::fabs(std::sqrt(squares / n) - deviation) <= 4 * deviation / std::sqrt(2 * n));
  }
}

TEST_CASE("ToTensors and FromTensors: are inverses, and a missing or misshapen tensor is named") {
  const NetworkSpec spec = {
      .num_inputs = 3, .hidden = {2}, .activation = Activation::kRelu, .num_outputs = 1};
  const auto parameters = InitialParameters(spec, 1);
  auto tensors = ToTensors(spec, parameters);
  CHECK(FromTensors(spec, tensors).value() == parameters);

  tensors[2].shape = {1, 2};
  const auto misshapen = FromTensors(spec, tensors);
  CHECK(misshapen.status().code() == StatusCode::kInvalidArgument);
  CHECK(Message(misshapen.status()).find("layer1.weight") != std::string_view::npos);

  tensors.erase(tensors.begin());
  const auto missing = FromTensors(spec, tensors);
  CHECK(Message(missing.status()).find("layer0.weight") != std::string_view::npos);
}

}  // namespace
}  // namespace domicile::models

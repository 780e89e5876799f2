// The named tensors of a model inside one flat vector of parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace domicile::models {

// What a tensor is for: L2 and weight decay touch weights alone, and statistics are data about the
// records, never trained (layers/batch_norm.h says how they are pooled).
enum class ParameterRole : std::uint8_t { kWeight = 0, kBias = 1, kScale = 2, kStatistic = 3 };

struct ParameterView {
  std::string name;                  // as model files name it
  std::vector<std::uint64_t> shape;  // row-major
  std::size_t offset = 0;            // in elements
  std::size_t size = 0;
  ParameterRole role = ParameterRole::kWeight;
  bool trainable = true;
  // The first values: all `initial_value`, plus normal numbers of that deviation if it is not 0.
  float initial_value = 0;
  double initial_deviation = 0;
};

// A run of the flat vector that one rule of the optimizer covers.
struct ParameterRange {
  std::size_t offset = 0;
  std::size_t size = 0;
  bool decays = true;  // by weight decay

  friend bool operator==(const ParameterRange&, const ParameterRange&) = default;
};

// The layout of a model, in the order its layers declare their tensors.
class ParameterLayout {
 public:
  // Appends a tensor and returns its index. The offset and the size are filled in.
  std::size_t Add(ParameterView view);

  std::span<const ParameterView> Views() const { return views_; }
  const ParameterView& View(std::size_t index) const { return views_.at(index); }
  std::size_t NumParameters() const { return num_parameters_; }

  // Tensors whose name matches one of the patterns are no longer trained. In a pattern `*` stands
  // for any characters. Returns the number of tensors frozen by this call.
  std::size_t Freeze(std::span<const std::string> patterns);

  // The trained runs, neighbours of one kind joined. Only weights decay.
  std::vector<ParameterRange> TrainedRanges() const;

 private:
  std::vector<ParameterView> views_;
  std::size_t num_parameters_ = 0;
};

}  // namespace domicile::models

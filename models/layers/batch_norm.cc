#include "models/layers/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace domicile::models {
namespace {

class BatchNormLayer final : public Layer {
 public:
  explicit BatchNormLayer(BatchNormSpec spec) : spec_(std::move(spec)) {}

  void Declare(ParameterLayout& layout) override {
    const auto declare = [&](Parameter& parameter, const char* suffix, ParameterRole role,
                             float first) {
      parameter.Declare(layout, {.name = spec_.name + suffix,
                                 .shape = {spec_.channels},
                                 .role = role,
                                 .initial_value = first});
    };
    declare(scale_, ".weight", ParameterRole::kScale, 1);
    declare(shift_, ".bias", ParameterRole::kBias, 0);
    declare(mean_, ".running_mean", ParameterRole::kStatistic, 0);
    declare(variance_, ".running_var", ParameterRole::kStatistic, 1);
  }

  void Bind(const ParameterLayout& layout) override {
    for (Parameter* parameter : {&scale_, &shift_, &mean_, &variance_}) {
      parameter->Bind(layout);
    }
  }

  bool IsTrained() const override {
    // In kBatch mode a backward pass must reach it: that is where the statistics are handed over.
    return scale_.IsTrained() || shift_.IsTrained() || spec_.mode == BatchNormMode::kBatch;
  }

  ConstMatrix Forward(Device& device, const Pass& pass, ConstMatrix x) override {
    x_ = x;
    y_.ResizeMatrix(x.rows, x.columns, device.memory());
    const std::vector<float> mean = OnHost(device, mean_.In(pass.parameters));
    const std::vector<float> variance = OnHost(device, variance_.In(pass.parameters));
    centre_ = mean;
    inverse_.resize(spec_.channels);
    if (UsesBatch(pass)) {
      first_.resize(spec_.channels);
      second_.resize(spec_.channels);
      device.ChannelSums(x, mean, x, mean, first_, second_);
      const double count = Count(x.rows);
      for (std::size_t c = 0; c < spec_.channels; ++c) {
        const double offset = first_[c] / count;
        const double spread = std::max(0.0, second_[c] / count - offset * offset);
        centre_[c] = static_cast<float>(static_cast<double>(mean[c]) + offset);
        inverse_[c] = Inverse(spread);
      }
    } else {
      std::transform(variance.begin(), variance.end(), inverse_.begin(),
                     [this](float v) { return Inverse(static_cast<double>(v)); });
    }
    const std::vector<float> scale = OnHost(device, scale_.In(pass.parameters));
    const std::vector<float> shift = OnHost(device, shift_.In(pass.parameters));
    std::vector<float> factor(spec_.channels);
    std::vector<float> offset(spec_.channels);
    for (std::size_t c = 0; c < spec_.channels; ++c) {
      factor[c] = scale[c] * inverse_[c];
      offset[c] = shift[c] - centre_[c] * factor[c];
    }
    device.ChannelAffine(x, factor, {}, factor, offset, y_.AsMatrix());
    return y_.AsMatrix();
  }

  Matrix Backward(Device& device, const Pass& pass, Matrix dy, bool wants_dx,
                  std::span<float> gradient) override {
    const std::size_t channels = spec_.channels;
    const std::vector<float> zero(channels, 0.0F);
    std::vector<double> sum(channels);
    std::vector<double> product(channels);
    device.ChannelSums(dy, zero, x_, centre_, sum, product);
    if (scale_.IsTrained()) {
      Put(device, scale_.In(gradient),
          [&](std::size_t c) { return product[c] * static_cast<double>(inverse_[c]); });
    }
    if (shift_.IsTrained()) {
      Put(device, shift_.In(gradient), [&](std::size_t c) { return sum[c]; });
    }
    if (UsesBatch(pass)) {
      const double whole = pass.divisor * static_cast<double>(spec_.positions);
      Put(device, mean_.In(gradient), [&](std::size_t c) { return first_[c] / whole; });
      Put(device, variance_.In(gradient), [&](std::size_t c) { return second_[c] / whole; });
    }
    if (!wants_dx) {
      return {};
    }
    // dx = dy * a + x * b + d; without batch statistics b and d are 0.
    std::vector<float> a(channels);
    std::vector<float> b(channels, 0.0F);
    std::vector<float> d(channels, 0.0F);
    const double count = Count(dy.rows);
    const std::vector<float> scale = OnHost(device, scale_.In(pass.parameters));
    for (std::size_t c = 0; c < channels; ++c) {
      const double inverse = static_cast<double>(inverse_[c]);
      const double factor = static_cast<double>(scale[c]) * inverse;
      a[c] = static_cast<float>(factor);
      if (UsesBatch(pass)) {
        const double slope = factor * inverse * inverse * product[c] / count;
        b[c] = static_cast<float>(-slope);
        d[c] =
            static_cast<float>(slope * static_cast<double>(centre_[c]) - factor * sum[c] / count);
      }
    }
    device.ChannelAffine(dy, a, x_, b, d, dy);
    return dy;
  }

  void UpdateStatistics(Device& device, double divisor, std::span<const float> gradient,
                        std::span<float> parameters) override {
    if (spec_.mode != BatchNormMode::kBatch) {
      return;
    }
    const double count = divisor * static_cast<double>(spec_.positions);
    const double unbiased = count > 1 ? count / (count - 1) : 1;
    const double share = static_cast<double>(spec_.momentum);
    const std::vector<float> first = OnHost(device, mean_.In(gradient));
    const std::vector<float> second = OnHost(device, variance_.In(gradient));
    const std::vector<float> mean = OnHost(device, mean_.In(parameters));
    const std::vector<float> variance = OnHost(device, variance_.In(parameters));
    Put(device, mean_.In(parameters), [&](std::size_t c) {
      return static_cast<double>(mean[c]) + share * static_cast<double>(first[c]);
    });
    Put(device, variance_.In(parameters), [&](std::size_t c) {
      const double offset = static_cast<double>(first[c]);
      const double spread = std::max(0.0, static_cast<double>(second[c]) - offset * offset);
      return (1 - share) * static_cast<double>(variance[c]) + share * spread * unbiased;
    });
  }

 private:
  // The arithmetic between the device's sums is done here: a few numbers a channel.
  static std::vector<float> OnHost(Device& device, std::span<const float> values) {
    std::vector<float> copy(values.size());
    Copy(device.memory(), values, std::span(copy));
    return copy;
  }
  // place[c] = value(c)
  template <typename Value>
  static void Put(Device& device, std::span<float> place, const Value& value) {
    std::vector<float> values(place.size());
    for (std::size_t c = 0; c < values.size(); ++c) {
      values[c] = static_cast<float>(value(c));
    }
    Copy(device.memory(), std::span<const float>(values), place);
  }

  bool UsesBatch(const Pass& pass) const {
    return pass.training && spec_.mode == BatchNormMode::kBatch;
  }
  double Count(std::size_t rows) const {
    return static_cast<double>(rows) * static_cast<double>(spec_.positions);
  }
  float Inverse(double variance) const {
    return static_cast<float>(1 / std::sqrt(variance + static_cast<double>(spec_.epsilon)));
  }

  BatchNormSpec spec_;
  Parameter scale_;
  Parameter shift_;
  Parameter mean_;
  Parameter variance_;
  ConstMatrix x_;
  std::vector<float> centre_;
  std::vector<float> inverse_;
  std::vector<double> first_;  // about the running mean
  std::vector<double> second_;
  Tensor y_;
};

}  // namespace

std::unique_ptr<Layer> MakeBatchNorm(BatchNormSpec spec) {
  return std::make_unique<BatchNormLayer>(std::move(spec));
}

MomentSums SumsOf(double count, double mean, double variance, double origin) {
  const double offset = mean - origin;
  return {.count = count, .first = count * offset, .second = count * (variance + offset * offset)};
}

StatusOr<Moments> MomentsOf(const MomentSums& sums, double origin) {
  if (!(sums.count > 0) || !std::isfinite(sums.count) || !std::isfinite(sums.first) ||
      !std::isfinite(sums.second)) {
    return Error(StatusCode::kInvalidArgument,
                 "the sums of a channel must be finite and over at least one example");
  }
  const double offset = sums.first / sums.count;
  return Moments{.mean = origin + offset,
                 .variance = std::max(0.0, sums.second / sums.count - offset * offset)};
}

}  // namespace domicile::models

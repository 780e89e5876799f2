#include "models/conv_net.h"

#include <cmath>
#include <string>
#include <utility>

#include "models/layers/activation.h"
#include "models/layers/batch_norm.h"
#include "models/layers/conv2d.h"
#include "models/layers/dense.h"
#include "models/layers/dropout.h"
#include "models/layers/group_norm.h"
#include "models/layers/pool2d.h"
#include "models/layers/sequence.h"

namespace domicile::models {
namespace {

constexpr std::size_t kMaxSize = std::size_t{1} << 31U;

struct Image {
  std::size_t channels;
  std::size_t height;
  std::size_t width;
};

// False if a * b is above the limit.
bool Fits(std::size_t a, std::size_t b) { return b == 0 || a <= kMaxSize / b; }

Status Refuse(std::size_t block, const char* what) {
  return Error(StatusCode::kInvalidArgument, "block " + std::to_string(block) + ": " + what);
}

ConvShape ShapeOf(const ConvBlock& block, const Image& image) {
  return MakeConvShape({.channels = image.channels,
                        .height = image.height,
                        .width = image.width,
                        .filters = block.filters,
                        .kernel = block.kernel,
                        .stride = block.stride,
                        .padding = block.padding});
}

PoolShape PoolOf(const ConvBlock& block, const Image& image) {
  return MakePoolShape({.channels = image.channels,
                        .height = image.height,
                        .width = image.width,
                        .window = block.pool_window,
                        .stride = block.pool_window});
}

// Checks block number `i` on `image`, which becomes the block's output.
Status CheckBlock(const ConvBlock& block, std::size_t i, Image& image, std::size_t& parameters) {
  if (block.filters == 0 || block.kernel == 0 || block.stride == 0) {
    return Refuse(i, "filters, kernel and stride must be above 0");
  }
  if (block.padding >= block.kernel || block.kernel > kMaxSize ||
      block.kernel > image.height + 2 * block.padding ||
      block.kernel > image.width + 2 * block.padding) {
    return Refuse(i, "the padding must be below the kernel, which must fit into the padded image");
  }
  if (block.norm == ImageNorm::kGroup && (block.groups == 0 || block.filters % block.groups != 0)) {
    return Refuse(i, "the groups must divide the filters");
  }
  if (!Fits(block.kernel, block.kernel) || !Fits(block.kernel * block.kernel, image.channels) ||
      !Fits(block.kernel * block.kernel * image.channels + 5, block.filters)) {
    return Refuse(i, "a model may have at most 2^31 parameters");
  }
  const ConvShape shape = ShapeOf(block, image);
  if (!Fits(shape.out_height, shape.out_width) ||
      !Fits(shape.out_height * shape.out_width, block.filters)) {
    return Refuse(i, "an example may have at most 2^31 values");
  }
  parameters += (shape.patch + 5) * block.filters;
  image = {.channels = block.filters, .height = shape.out_height, .width = shape.out_width};
  if (block.pool_window > 0) {
    if (block.pool_window > image.height || block.pool_window > image.width) {
      return Refuse(i, "the pool's window must fit into the image");
    }
    const PoolShape pool = PoolOf(block, image);
    image.height = pool.out_height;
    image.width = pool.out_width;
  }
  return parameters <= kMaxSize ? OkStatus()
                                : Refuse(i, "a model may have at most 2^31 parameters");
}

void AddNorm(const ConvBlock& block, const std::string& name, const ConvShape& shape,
             Layers& layers) {
  const std::size_t positions = shape.out_height * shape.out_width;
  if (block.norm == ImageNorm::kGroup) {
    layers.push_back(MakeGroupNorm(
        name, {.groups = block.groups, .channels = block.filters, .positions = positions}));
  } else {
    layers.push_back(
        MakeBatchNorm({.name = name,
                       .channels = block.filters,
                       .positions = positions,
                       .mode = block.norm == ImageNorm::kBatch ? BatchNormMode::kBatch
                                                               : BatchNormMode::kFrozen}));
  }
}

}  // namespace

Status CheckSpec(const ConvNetSpec& spec) {
  if (spec.channels == 0 || spec.height == 0 || spec.width == 0 || spec.num_outputs == 0 ||
      !Fits(spec.channels, spec.height) || !Fits(spec.channels * spec.height, spec.width)) {
    return Error(StatusCode::kInvalidArgument,
                 "an image needs 1 to 2^31 values, and a network at least one output");
  }
  if (spec.activation == Activation::kNone || !(spec.dropout >= 0) || !(spec.dropout < 1)) {
    return Error(StatusCode::kInvalidArgument,
                 "a convolutional network needs an activation, and dropout from 0 to below 1");
  }
  Image image = {.channels = spec.channels, .height = spec.height, .width = spec.width};
  std::size_t parameters = 0;
  for (std::size_t i = 0; i < spec.blocks.size(); ++i) {
    RETURN_IF_ERROR(CheckBlock(spec.blocks[i], i, image, parameters));
  }
  NetworkSpec head = {.num_inputs = image.channels * image.height * image.width,
                      .hidden = spec.hidden,
                      .activation = spec.activation,
                      .num_outputs = spec.num_outputs};
  return CheckSpec(head);
}

std::unique_ptr<Layer> MakeLayers(const ConvNetSpec& spec) {
  Layers layers;
  Image image = {.channels = spec.channels, .height = spec.height, .width = spec.width};
  const bool fuses =
      spec.activation != Activation::kGelu && spec.activation != Activation::kGeluTanh;
  for (std::size_t i = 0; i < spec.blocks.size(); ++i) {
    const ConvBlock& block = spec.blocks[i];
    const ConvShape shape = ShapeOf(block, image);
    const bool fused = fuses && block.norm == ImageNorm::kNone;
    layers.push_back(
        MakeConv2d({.name = "conv" + std::to_string(i),
                    .shape = shape,
                    .activation = fused ? spec.activation : Activation::kNone,
                    .initial_deviation = std::sqrt(2 / static_cast<double>(shape.patch))}));
    if (block.norm != ImageNorm::kNone) {
      AddNorm(block, "norm" + std::to_string(i), shape, layers);
    }
    if (!fused) {
      layers.push_back(MakeActivation(spec.activation));
    }
    image = {.channels = block.filters, .height = shape.out_height, .width = shape.out_width};
    if (block.pool_window > 0) {
      const PoolShape pool = PoolOf(block, image);
      layers.push_back(MakePool2d(PoolKind::kMax, pool));
      image.height = pool.out_height;
      image.width = pool.out_width;
    }
  }
  std::vector<std::size_t> widths = {image.channels * image.height * image.width};
  widths.insert(widths.end(), spec.hidden.begin(), spec.hidden.end());
  widths.push_back(spec.num_outputs);
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const bool last = i + 2 == widths.size();
    if (spec.dropout > 0) {
      layers.push_back(MakeDropout(i, spec.dropout));
    }
    layers.push_back(
        MakeDense({.name = "dense" + std::to_string(i),
                   .inputs = widths[i],
                   .outputs = widths[i + 1],
                   .activation = last || !fuses ? Activation::kNone : spec.activation,
                   .initial_deviation = std::sqrt(2 / static_cast<double>(widths[i]))}));
    if (!last && !fuses) {
      layers.push_back(MakeActivation(spec.activation));
    }
  }
  return MakeSequence(std::move(layers));
}

}  // namespace domicile::models

// Small convolutional networks: blocks of convolution, norm, activation and pool, then dense
// layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "models/layers/layer.h"
#include "models/network.h"

namespace domicile::models {

// What federated training asks of a norm is in layers/group_norm.h and layers/batch_norm.h.
enum class ImageNorm : std::uint8_t {
  kNone = 0,
  kGroup = 1,
  kBatch = 2,
  kFrozenBatch = 3,  // by the stored statistics
};

struct ConvBlock {
  std::size_t filters = 0;
  std::size_t kernel = 3;
  std::size_t stride = 1;
  std::size_t padding = 0;
  ImageNorm norm = ImageNorm::kNone;
  std::size_t groups = 1;       // of kGroup
  std::size_t pool_window = 0;  // maximum over windows side by side; 0: no pool
};

struct ConvNetSpec {
  std::size_t channels = 0;  // an example is one row: [channels, height, width]
  std::size_t height = 0;
  std::size_t width = 0;
  std::vector<ConvBlock> blocks;
  std::vector<std::size_t> hidden;  // dense layers after the blocks
  Activation activation = Activation::kRelu;
  float dropout = 0;  // before each dense layer
  std::size_t num_outputs = 0;
  LossKind loss = LossKind::kCrossEntropy;
};

// Errors: kInvalidArgument, naming the block: a size of 0, a kernel or window larger than its
// image, groups that do not divide the filters, padding not below the kernel, more than 2^31
// parameters or values of one example; no activation, dropout outside [0, 1).
Status CheckSpec(const ConvNetSpec& spec);

// conv0.weight, conv0.bias, norm0.weight, ..., dense0.weight [out, in], dense0.bias, ... in
// PyTorch's layouts; a flattened image is in the order [channels, height, width]. Deviation of
// first weights: sqrt(2 / inputs of a unit).
std::unique_ptr<Layer> MakeLayers(const ConvNetSpec& spec);

}  // namespace domicile::models

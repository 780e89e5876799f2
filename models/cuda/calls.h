// The operands of each operation of the plug-in. Pointers lie in the device's memory unless named
// `host`; sizes are in elements. Shapes have been checked by the caller
// (models/cuda/cuda_device.cc).
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/layers/shapes.h"

namespace domicile::models::cuda {

struct DenseCall {
  const float* x;
  std::size_t rows;
  Weight weight;
  const float* bias;  // or null
  Activation activation;
  float* y;
};
struct DenseWeightGradientCall {
  const float* x;
  const float* dy;
  std::size_t rows;
  std::size_t inputs;
  std::size_t outputs;
  float* dw;
};
struct DenseBiasGradientCall {
  const float* dy;
  std::size_t rows;
  std::size_t columns;
  float* db;
};
struct DenseInputGradientCall {
  const float* dy;
  std::size_t rows;
  Weight weight;
  bool accumulate;
  float* dx;
};
struct ActivateCall {
  Activation activation;
  const float* x;
  std::size_t size;
  float* y;
};
struct ActivationGradientCall {
  Activation activation;
  const float* saved;
  std::size_t size;
  float* dy;
};
struct DropoutCall {
  DropoutMask mask;
  const float* x;
  std::size_t size;
  float* y;
};
struct Conv2dCall {
  ConvShape shape;
  const float* x;
  std::size_t rows;
  const float* filters;
  const float* bias;
  Activation activation;
  float* y;
};
struct Conv2dWeightGradientCall {
  ConvShape shape;
  const float* x;
  const float* dy;
  std::size_t rows;
  float* dfilters;
  float* dbias;
};
struct Conv2dInputGradientCall {
  ConvShape shape;
  const float* dy;
  std::size_t rows;
  const float* filters;
  float* dx;
};
struct PoolCall {
  PoolShape shape;
  const float* x;
  std::size_t rows;
  float* y;
  std::uint32_t* chosen;  // null: an average pool
};
struct PoolGradientCall {
  PoolShape shape;
  const std::uint32_t* chosen;  // null: an average pool
  const float* dy;
  std::size_t rows;
  float* dx;
};
struct GroupNormCall {
  NormShape shape;
  const float* x;
  std::size_t rows;
  const float* scale;
  const float* shift;
  float* y;
  float* statistics;
};
struct GroupNormGradientCall {
  NormShape shape;
  const float* x;
  std::size_t rows;
  const float* scale;
  const float* statistics;
  const float* dy;
  float* dx;      // or null
  float* dscale;  // both or none null
  float* dshift;
};
struct ChannelSumsCall {
  std::size_t rows;
  std::size_t channels;
  std::size_t positions;
  const float* x;
  const float* origin;
  const float* z;
  const float* centre;
  double* host_first;
  double* host_second;
};
struct ChannelAffineCall {
  std::size_t rows;
  std::size_t channels;
  std::size_t positions;
  const float* x;
  const float* a;
  const float* z;  // or null
  const float* b;
  const float* d;
  float* y;
};
struct GatherCall {
  const float* table;
  const std::uint32_t* ids;
  std::size_t rows;
  std::size_t columns;
  bool accumulate;
  float* y;
};
// As element_bodies.h, Scatter: `groups` targets, groups + 1 starts.
struct ScatterAddCall {
  const std::uint32_t* targets;
  const std::uint32_t* starts;
  const std::uint32_t* rows;
  std::size_t groups;
  std::size_t columns;
  const float* dy;
  float* dtable;
};
struct AttentionCall {
  AttentionShape shape;
  std::size_t sequences;
  const float* q;
  const float* k;
  const float* v;
  const std::uint8_t* mask;  // or null
  DropoutMask dropout;
  float* probabilities;
  float* y;
};
struct AttentionGradientCall {
  AttentionShape shape;
  std::size_t sequences;
  const float* q;
  const float* k;
  const float* v;
  const float* probabilities;
  DropoutMask dropout;
  const float* dy;
  float* dq;
  float* dk;
  float* dv;
};
struct MeanOfTokensCall {
  const float* x;
  std::size_t length;
  const std::uint8_t* mask;  // or null
  std::size_t sequences;
  std::size_t columns;
  float* y;
};
struct MeanOfTokensGradientCall {
  const float* dy;
  std::size_t length;
  const std::uint8_t* mask;  // or null
  std::size_t sequences;
  std::size_t columns;
  float* dx;
};
// Binary for one class, else softmax.
struct CrossEntropyCall {
  const float* z;
  const std::uint32_t* labels;
  std::size_t rows;
  std::size_t classes;
  float scale;
  float* dz;  // or null
  double* host_loss;
};
struct SquaredErrorCall {
  const float* z;
  const float* targets;
  std::size_t rows;
  std::size_t outputs;
  float scale;
  float* dz;  // or null
  double* host_loss;
};
struct AddScaledCall {
  float a;
  const float* x;
  std::size_t size;
  float* y;
};
struct AddCall {
  const float* a;
  const float* b;
  std::size_t size;
  float* y;
};
struct ScaleCall {
  float a;
  std::size_t size;
  float* x;
};
struct SquaredNormCall {
  const float* x;
  std::size_t size;
  double* host_norm;
};
struct SgdCall {
  SgdStep step;
  const float* gradient;
  std::size_t size;
  float* momentum;
  float* parameters;
};
struct AdamCall {
  AdamStep step;
  const float* gradient;
  std::size_t size;
  float* first;
  float* second;
  float* parameters;
};

}  // namespace domicile::models::cuda

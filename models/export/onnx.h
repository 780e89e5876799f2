// ONNX: a trained network as a graph that other programs run (operator set 13).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "models/model.h"

namespace domicile::models {

// What stands around the network in the graph.
struct OnnxOptions {
  std::string name = "model";
  // Inputs become (x - mean) / deviation, a table's NaN then 0: one value an input of a table, or a
  // channel of pictures, whose values are 0 to 1. Empty: inputs are taken as they are.
  std::vector<float> mean{};
  std::vector<float> deviation{};
  // Whether the parameters hold running statistics of norms by batches that somebody formed: those
  // of a model that travelled are only where they begin.
  bool has_statistics = false;
  // Of a number: output * scale + offset.
  float output_scale = 1;
  float output_offset = 0;
};

// `parameters` has the layout of LayoutOf(spec). The input is `input`: [N, inputs] of a table, or
// [N, channels, height, width]. Those of an encoder are `input_ids`, `attention_mask` (0: padding)
// and `token_type_ids`, int64 [N, length], the length up to the positions; adapters are folded into
// the weights. The output is `probabilities` [N, classes] (two classes: [N, 1], that of class 1),
// `prediction` [N, outputs] where the loss is squared error, or `embedding` [N, hidden] of an
// encoder without a head. Errors: kInvalidArgument: a norm by batches without statistics, which
// stay at the sites; constants of another number; 2 GiB or more, which protocol buffers cannot
// hold.
StatusOr<Bytes> PrintOnnx(const ModelSpec& spec, std::span<const float> parameters,
                          const OnnxOptions& options);

}  // namespace domicile::models

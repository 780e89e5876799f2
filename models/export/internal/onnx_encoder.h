// The nodes of an encoder.
#pragma once

#include "base/status.h"
#include "models/encoder.h"
#include "models/export/internal/onnx_graph.h"

namespace domicile::models::internal {

// From its three inputs, `input_ids`, `attention_mask` (0: padding) and `token_type_ids`, int64
// [N, length], to the outputs of the head, or the pooled row where there is none. Adapters are
// folded into the weights that they adapt.
void AddEncoder(const EncoderSpec& spec, OnnxGraph& graph);

}  // namespace domicile::models::internal

// Images, norms and sequences over a machine (machine.h).
#pragma once

#include <cmath>

#include "models/cuda/image_bodies.h"
#include "models/cuda/vector_operations.h"

namespace domicile::models::cuda {

// --- Images: as many at a time as there is room for their columns
template <typename Machine>
void Run(Machine& machine, const Conv2dCall& c) {
  const ConvShape& s = c.shape;
  const std::size_t positions = s.out_height * s.out_width;
  const std::size_t inputs = s.channels * s.height * s.width;
  const std::size_t at_once = ImagesAtOnce(s, c.rows, machine.ColumnRoom());
  auto* const columns = ScratchOf<float>(machine, Place::kColumns, at_once * positions * s.patch);
  auto* const by_filter = ScratchOf<float>(machine, Place::kByFilter, at_once * s.outputs);
  for (std::size_t first = 0; first < c.rows; first += at_once) {
    const std::size_t images = Least(at_once, c.rows - first);
    const std::size_t all = images * positions;
    machine.Elements(s.patch * all, ImagesToColumns{s, images, c.x + first * inputs, columns});
    machine.Multiply({.m = s.filters,
                      .n = all,
                      .k = s.patch,
                      .a = c.filters,
                      .lda = s.patch,
                      .b = columns,
                      .ldb = all,
                      .c = by_filter,
                      .ldc = all});
    machine.Elements(images * s.outputs,
                     FiltersToImages{s.filters, images, positions, by_filter, c.bias, c.activation,
                                     c.y + first * s.outputs});
  }
}

template <typename Machine>
void Run(Machine& machine, const Conv2dWeightGradientCall& c) {
  const ConvShape& s = c.shape;
  const std::size_t positions = s.out_height * s.out_width;
  const std::size_t inputs = s.channels * s.height * s.width;
  const std::size_t at_once = ImagesAtOnce(s, c.rows, machine.ColumnRoom());
  const std::size_t stretches = Pieces(c.rows, at_once);
  auto* const columns = ScratchOf<float>(machine, Place::kColumns, at_once * positions * s.patch);
  auto* const by_filter = ScratchOf<float>(machine, Place::kByFilter, at_once * s.outputs);
  auto* const partials = ScratchOf<double>(machine, Place::kPartials, stretches * s.filters);
  if (stretches == 0) {
    machine.Zero(c.dfilters, s.filters * s.patch * sizeof(float));
  }
  for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
    const std::size_t first = stretch * at_once;
    const std::size_t images = Least(at_once, c.rows - first);
    const std::size_t all = images * positions;
    machine.Elements(s.patch * all, ImagesToColumns{s, images, c.x + first * inputs, columns});
    machine.Elements(images * s.outputs, ImagesToFilters{s.filters, images, positions,
                                                         c.dy + first * s.outputs, by_filter});
    machine.Multiply({.m = s.filters,
                      .n = s.patch,
                      .k = all,
                      .a = by_filter,
                      .lda = all,
                      .b = columns,
                      .ldb = all,
                      .transpose_b = true,
                      .c = c.dfilters,
                      .ldc = s.patch,
                      .beta = stretch == 0 ? 0.0F : 1.0F});
    machine.Teams(s.filters, all, SumFilters{all, by_filter, partials + stretch * s.filters});
  }
  machine.Elements(s.filters, SumOfStretches<float>{partials, stretches, s.filters, 0, c.dbias});
}

template <typename Machine>
void Run(Machine& machine, const Conv2dInputGradientCall& c) {
  const ConvShape& s = c.shape;
  const std::size_t positions = s.out_height * s.out_width;
  const std::size_t inputs = s.channels * s.height * s.width;
  const std::size_t at_once = ImagesAtOnce(s, c.rows, machine.ColumnRoom());
  auto* const columns = ScratchOf<float>(machine, Place::kColumns, at_once * positions * s.patch);
  auto* const by_filter = ScratchOf<float>(machine, Place::kByFilter, at_once * s.outputs);
  for (std::size_t first = 0; first < c.rows; first += at_once) {
    const std::size_t images = Least(at_once, c.rows - first);
    const std::size_t all = images * positions;
    machine.Elements(images * s.outputs, ImagesToFilters{s.filters, images, positions,
                                                         c.dy + first * s.outputs, by_filter});
    machine.Multiply({.m = s.patch,
                      .n = all,
                      .k = s.filters,
                      .a = c.filters,
                      .lda = s.patch,
                      .transpose_a = true,
                      .b = by_filter,
                      .ldb = all,
                      .c = columns,
                      .ldc = all});
    machine.Elements(images * inputs, ColumnsToImages{s, images, columns, c.dx + first * inputs});
  }
}

template <typename Machine>
void Run(Machine& machine, const PoolCall& c) {
  if (c.chosen == nullptr) {
    machine.Elements(c.rows * c.shape.outputs, AveragePool{c.shape, c.x, c.y});
  } else {
    machine.Elements(c.rows * c.shape.outputs, MaxPool{c.shape, c.x, c.y, c.chosen});
  }
}

template <typename Machine>
void Run(Machine& machine, const PoolGradientCall& c) {
  machine.Elements(c.rows * c.shape.channels * c.shape.height * c.shape.width,
                   PoolGradient{c.shape, c.chosen, c.dy, c.dx});
}

// --- Norms
template <typename Machine>
void Run(Machine& machine, const GroupNormCall& c) {
  const std::size_t work = c.shape.channels / c.shape.groups * c.shape.positions;
  machine.Teams(c.rows * c.shape.groups, work,
                GroupNorm{c.shape, c.x, c.scale, c.shift, c.y, c.statistics});
}

template <typename Machine>
void Run(Machine& machine, const GroupNormGradientCall& c) {
  const NormShape& s = c.shape;
  if (c.dscale != nullptr) {  // first: dx may be dy
    const std::size_t per_stretch = s.positions == 1 ? kRowsPerStretch : 16;
    const std::size_t stretches = Pieces(c.rows, per_stretch);
    auto* const partials = ScratchOf<double>(machine, Place::kPartials, 2 * stretches * s.channels);
    if (s.positions == 1) {
      machine.Elements(stretches * s.channels,
                       NormSumsFlat{s, c.rows, per_stretch, c.x, c.statistics, c.dy, partials});
    } else {
      machine.Teams(stretches * s.channels, s.positions,
                    NormSums{s, c.rows, per_stretch, c.x, c.statistics, c.dy, partials});
    }
    machine.Elements(s.channels,
                     SumOfStretches<float>{partials, stretches, 2 * s.channels, 0, c.dscale});
    machine.Elements(s.channels, SumOfStretches<float>{partials, stretches, 2 * s.channels,
                                                       s.channels, c.dshift});
  }
  if (c.dx != nullptr) {
    const std::size_t work = s.channels / s.groups * s.positions;
    machine.Teams(c.rows * s.groups, work,
                  GroupNormInputGradient{s, c.x, c.scale, c.statistics, c.dy, c.dx});
  }
}

template <typename Machine>
void Run(Machine& machine, const ChannelSumsCall& c) {
  constexpr std::size_t kPerTeam = 16;
  const std::size_t stretches = Pieces(c.rows, kPerTeam);
  auto* const partials = ScratchOf<double>(machine, Place::kPartials, 2 * stretches * c.channels);
  auto* const totals = ScratchOf<double>(machine, Place::kTotals, 2 * c.channels);
  machine.Teams(stretches * c.channels, c.positions,
                ChannelSums{c.rows, c.channels, c.positions, kPerTeam, c.x, c.origin, c.z, c.centre,
                            partials});
  machine.Elements(2 * c.channels,
                   SumOfStretches<double>{partials, stretches, 2 * c.channels, 0, totals});
  machine.Download(c.host_first, totals, c.channels * sizeof(double));
  machine.Download(c.host_second, totals + c.channels, c.channels * sizeof(double));
}

template <typename Machine>
void Run(Machine& machine, const ChannelAffineCall& c) {
  machine.Elements(c.rows * c.channels * c.positions,
                   ChannelAffine{c.channels, c.positions, c.x, c.a, c.z, c.b, c.d, c.y});
}

// --- Sequences
template <typename Machine>
void Run(Machine& machine, const GatherCall& c) {
  machine.Elements(c.rows * c.columns, Gather{c.table, c.ids, c.columns, c.accumulate, c.y});
}

template <typename Machine>
void Run(Machine& machine, const ScatterAddCall& c) {
  machine.Elements(c.groups * c.columns,
                   Scatter{c.targets, c.starts, c.rows, c.columns, c.dy, c.dtable});
}

// An operand of attention: tokens by columns of all heads, or queries by keys of one head.
struct Between {
  const float* data;
  bool by_head;  // [sequence, head, token, token]
};

// For every sequence and head: c = alpha * op(a) b, or a b^T. Heads lie side by side within a
// token, so one call covers all heads of a sequence, or a head of all sequences: whichever is fewer
// calls.
template <typename Machine>
void MultiplyHeads(Machine& machine, const AttentionShape& s, std::size_t sequences, Product each,
                   Between a, Between b, float* c, bool c_by_head) {
  const std::size_t columns = s.heads * s.width;
  const std::size_t square = s.length * s.length;
  const bool over_heads = sequences <= s.heads;
  const auto place = [&](bool by_head, std::size_t sequence, std::size_t head) {
    return by_head ? (sequence * s.heads + head) * square
                   : sequence * s.length * columns + head * s.width;
  };
  const auto stride = [&](bool by_head) {
    return over_heads ? place(by_head, 0, 1) : place(by_head, 1, 0);
  };
  each.lda = a.by_head ? s.length : columns;
  each.ldb = b.by_head ? s.length : columns;
  each.ldc = c_by_head ? s.length : columns;
  each.batch = over_heads ? s.heads : sequences;
  each.stride_a = stride(a.by_head);
  each.stride_b = stride(b.by_head);
  each.stride_c = stride(c_by_head);
  for (std::size_t i = 0; i < (over_heads ? sequences : s.heads); ++i) {
    const std::size_t sequence = over_heads ? i : 0;
    const std::size_t head = over_heads ? 0 : i;
    each.a = a.data + place(a.by_head, sequence, head);
    each.b = b.data + place(b.by_head, sequence, head);
    each.c = c + place(c_by_head, sequence, head);
    machine.Multiply(each);
  }
}

template <typename Machine>
void Run(Machine& machine, const AttentionCall& c) {
  const AttentionShape& s = c.shape;
  const std::size_t queries = c.sequences * s.heads * s.length;
  const float scale = 1.0F / std::sqrt(static_cast<float>(s.width));
  const bool drops = c.dropout.rate > 0;
  float* const weights =
      drops ? ScratchOf<float>(machine, Place::kWeights, queries * s.length) : nullptr;
  MultiplyHeads(machine, s, c.sequences,
                {.m = s.length, .n = s.length, .k = s.width, .transpose_b = true, .alpha = scale},
                {c.q, false}, {c.k, false}, c.probabilities, true);
  machine.Teams(queries, s.length,
                AttentionSoftmax{s.length, s.heads, s.causal, c.mask, MaskFor(c.dropout),
                                 c.probabilities, weights});
  MultiplyHeads(machine, s, c.sequences, {.m = s.length, .n = s.width, .k = s.length},
                {drops ? weights : c.probabilities, true}, {c.v, false}, c.y, false);
}

template <typename Machine>
void Run(Machine& machine, const AttentionGradientCall& c) {
  const AttentionShape& s = c.shape;
  const std::size_t queries = c.sequences * s.heads * s.length;
  const std::size_t squares = queries * s.length;
  const float scale = 1.0F / std::sqrt(static_cast<float>(s.width));
  const bool drops = c.dropout.rate > 0;
  const float* weights = c.probabilities;
  if (drops) {
    auto* const dropped = ScratchOf<float>(machine, Place::kWeights, squares);
    machine.Elements(squares, Dropout{MaskFor(c.dropout), c.probabilities, dropped});
    weights = dropped;
  }
  auto* const scores = ScratchOf<float>(machine, Place::kScores, squares);
  const Product by_key = {.m = s.length, .n = s.width, .k = s.length, .transpose_a = true};
  MultiplyHeads(machine, s, c.sequences, by_key, {weights, true}, {c.dy, false}, c.dv, false);
  MultiplyHeads(machine, s, c.sequences,
                {.m = s.length, .n = s.length, .k = s.width, .transpose_b = true}, {c.dy, false},
                {c.v, false}, scores, true);
  machine.Teams(
      queries, s.length,
      AttentionSoftmaxGradient{s.length, drops, MaskFor(c.dropout), c.probabilities, scores});
  Product scaled = {.m = s.length, .n = s.width, .k = s.length, .alpha = scale};
  MultiplyHeads(machine, s, c.sequences, scaled, {scores, true}, {c.k, false}, c.dq, false);
  scaled.transpose_a = true;
  MultiplyHeads(machine, s, c.sequences, scaled, {scores, true}, {c.q, false}, c.dk, false);
}

template <typename Machine>
void Run(Machine& machine, const MeanOfTokensCall& c) {
  machine.Elements(c.sequences * c.columns, MeanOfTokens{c.x, c.length, c.columns, c.mask, c.y});
}

template <typename Machine>
void Run(Machine& machine, const MeanOfTokensGradientCall& c) {
  machine.Elements(c.sequences * c.columns,
                   MeanOfTokensGradient{c.dy, c.length, c.columns, c.mask, c.dx});
}

template <typename Machine>
void FillLayerEntries(Plugin& plugin) {
  plugin.conv2d = &Entry<Machine>;
  plugin.conv2d_weight_gradient = &Entry<Machine>;
  plugin.conv2d_input_gradient = &Entry<Machine>;
  plugin.pool = &Entry<Machine>;
  plugin.pool_gradient = &Entry<Machine>;
  plugin.group_norm = &Entry<Machine>;
  plugin.group_norm_gradient = &Entry<Machine>;
  plugin.channel_sums = &Entry<Machine>;
  plugin.channel_affine = &Entry<Machine>;
  plugin.gather = &Entry<Machine>;
  plugin.scatter_add = &Entry<Machine>;
  plugin.attention = &Entry<Machine>;
  plugin.attention_gradient = &Entry<Machine>;
  plugin.mean_of_tokens = &Entry<Machine>;
  plugin.mean_of_tokens_gradient = &Entry<Machine>;
}

}  // namespace domicile::models::cuda

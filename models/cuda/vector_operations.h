// Dense layers, element-wise operations, optimizers and losses over a machine.
#pragma once

#include <cmath>

#include "models/cuda/element_bodies.h"
#include "models/cuda/launch.h"
#include "models/cuda/machine.h"
#include "models/cuda/plugin.h"
#include "models/cuda/product.h"
#include "models/cuda/row_bodies.h"
#include "models/cuda/sum_bodies.h"

namespace domicile::models::cuda {

// The sum of term(i) over [0, size), on the host: waits for it.
template <typename Machine, typename Term>
double SumOnHost(Machine& machine, std::size_t size, Term term) {
  const std::size_t stretches = Pieces(size, kPerStretch);
  if (stretches == 0) {
    return 0;
  }
  auto* const partials = ScratchOf<double>(machine, Place::kPartials, stretches);
  auto* const total = ScratchOf<double>(machine, Place::kTotals, 1);
  machine.Teams(stretches, kPerStretch, SumStretch<Term>{term, size, kPerStretch, partials});
  machine.Teams(1, stretches, SumStretch<ValueOf>{{partials}, stretches, stretches, total});
  double sum = NAN;  // of a device that has failed
  machine.Download(&sum, total, sizeof(sum));
  return sum;
}

template <typename Machine>
void Run(Machine& machine, const DenseCall& c) {
  const Weight& w = c.weight;
  const bool out_in = w.layout == WeightLayout::kOutIn;
  // The product can add the bias and cut at 0 on its way out, where the bias suits it.
  const bool fused = c.bias != nullptr && machine.CanFuseBias(c.bias);
  const bool relu = fused && c.activation == Activation::kRelu;
  machine.Multiply({.m = c.rows,
                    .n = w.outputs,
                    .k = w.inputs,
                    .a = c.x,
                    .lda = w.inputs,
                    .b = w.data,
                    .ldb = out_in ? w.inputs : w.outputs,
                    .transpose_b = out_in,
                    .c = c.y,
                    .ldc = w.outputs,
                    .bias = fused ? c.bias : nullptr,
                    .relu = relu});
  const bool adds = c.bias != nullptr && !fused;
  const bool activates = c.activation != Activation::kNone && !relu;
  if (adds || activates) {
    machine.Elements(c.rows * w.outputs,
                     BiasActivate{c.activation, adds ? c.bias : nullptr, w.outputs, c.y});
  }
}

template <typename Machine>
void Run(Machine& machine, const DenseWeightGradientCall& c) {
  machine.Multiply({.m = c.inputs,
                    .n = c.outputs,
                    .k = c.rows,
                    .a = c.x,
                    .lda = c.inputs,
                    .transpose_a = true,
                    .b = c.dy,
                    .ldb = c.outputs,
                    .c = c.dw,
                    .ldc = c.outputs});
}

template <typename Machine>
void Run(Machine& machine, const DenseBiasGradientCall& c) {
  const std::size_t stretches = Pieces(c.rows, kRowsPerStretch);
  auto* const partials = ScratchOf<double>(machine, Place::kPartials, stretches * c.columns);
  machine.Elements(stretches * c.columns,
                   SumRowsStretch{c.dy, c.rows, c.columns, kRowsPerStretch, partials});
  machine.Elements(c.columns, SumOfStretches<float>{partials, stretches, c.columns, 0, c.db});
}

template <typename Machine>
void Run(Machine& machine, const DenseInputGradientCall& c) {
  const Weight& w = c.weight;
  const bool out_in = w.layout == WeightLayout::kOutIn;
  machine.Multiply({.m = c.rows,
                    .n = w.inputs,
                    .k = w.outputs,
                    .a = c.dy,
                    .lda = w.outputs,
                    .b = w.data,
                    .ldb = out_in ? w.inputs : w.outputs,
                    .transpose_b = !out_in,
                    .c = c.dx,
                    .ldc = w.inputs,
                    .beta = c.accumulate ? 1.0F : 0.0F});
}

template <typename Machine>
void Run(Machine& machine, const ActivateCall& c) {
  machine.Elements(c.size, Activate{c.activation, c.x, c.y});
}

template <typename Machine>
void Run(Machine& machine, const ActivationGradientCall& c) {
  machine.Elements(c.size, ActivationGradient{c.activation, c.saved, c.dy});
}

template <typename Machine>
void Run(Machine& machine, const DropoutCall& c) {
  machine.Elements(c.size, Dropout{MaskFor(c.mask), c.x, c.y});
}

template <typename Machine>
void Run(Machine& machine, const CrossEntropyCall& c) {
  auto* const losses = ScratchOf<double>(machine, Place::kLosses, c.rows);
  if (c.classes == 1) {
    machine.Elements(c.rows, BinaryCrossEntropy{c.z, c.labels, c.scale, losses, c.dz});
  } else {
    machine.Teams(c.rows, c.classes,
                  SoftmaxCrossEntropy{c.z, c.labels, c.classes, c.scale, losses, c.dz});
  }
  *c.host_loss = SumOnHost(machine, c.rows, ValueOf{losses});
}

template <typename Machine>
void Run(Machine& machine, const SquaredErrorCall& c) {
  const std::size_t size = c.rows * c.outputs;
  auto* const losses = ScratchOf<double>(machine, Place::kLosses, size);
  machine.Elements(size, SquaredError{c.z, c.targets, c.outputs, c.scale, losses, c.dz});
  *c.host_loss = SumOnHost(machine, size, ValueOf{losses});
}

template <typename Machine>
void Run(Machine& machine, const AddScaledCall& c) {
  machine.Elements(c.size, AddScaled{c.a, c.x, c.y});
}

template <typename Machine>
void Run(Machine& machine, const AddCall& c) {
  machine.Elements(c.size, Add{c.a, c.b, c.y});
}

template <typename Machine>
void Run(Machine& machine, const ScaleCall& c) {
  machine.Elements(c.size, Scale{c.a, c.x});
}

template <typename Machine>
void Run(Machine& machine, const SquaredNormCall& c) {
  *c.host_norm = SumOnHost(machine, c.size, SquareOf{c.x});
}

template <typename Machine>
void Run(Machine& machine, const SgdCall& c) {
  machine.Elements(c.size, Sgd{c.step, c.gradient, c.momentum, c.parameters});
}

template <typename Machine>
void Run(Machine& machine, const AdamCall& c) {
  machine.Elements(c.size, Adam{.step = c.step,
                                .rate = c.step.learning_rate / c.step.correction1,
                                .root = std::sqrt(c.step.correction2),
                                .keep = 1.0F - c.step.learning_rate * c.step.decoupled_decay,
                                .gradient = c.gradient,
                                .first = c.first,
                                .second = c.second,
                                .parameters = c.parameters});
}

// An operation of the table.
template <typename Machine, typename Call>
void Entry(void* device, const Call& call) {
  Run(*static_cast<Machine*>(device), call);
}

template <typename Machine>
void FillVectorEntries(Plugin& plugin) {
  plugin.dense = &Entry<Machine>;
  plugin.dense_weight_gradient = &Entry<Machine>;
  plugin.dense_bias_gradient = &Entry<Machine>;
  plugin.dense_input_gradient = &Entry<Machine>;
  plugin.activate = &Entry<Machine>;
  plugin.activation_gradient = &Entry<Machine>;
  plugin.dropout = &Entry<Machine>;
  plugin.cross_entropy = &Entry<Machine>;
  plugin.squared_error = &Entry<Machine>;
  plugin.add_scaled = &Entry<Machine>;
  plugin.add = &Entry<Machine>;
  plugin.scale = &Entry<Machine>;
  plugin.squared_norm = &Entry<Machine>;
  plugin.sgd = &Entry<Machine>;
  plugin.adam = &Entry<Machine>;
}

}  // namespace domicile::models::cuda

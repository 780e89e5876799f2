// Sequences, losses and vectors of a CudaDevice.
#include <algorithm>
#include <numeric>
#include <vector>

#include "models/cuda/cuda_device.h"
#include "models/cuda/internal/cuda_call.h"

namespace domicile::models {
namespace {

bool AllBelow(std::span<const std::uint32_t> ids, std::size_t bound) {
  return std::all_of(ids.begin(), ids.end(), [bound](std::uint32_t id) { return id < bound; });
}

bool Fits(const AttentionShape& shape, ConstMatrix x) {
  return shape.length > 0 && x.columns == shape.heads * shape.width && x.rows % shape.length == 0;
}

bool SameShape(ConstMatrix a, ConstMatrix b) { return a.rows == b.rows && a.columns == b.columns; }

}  // namespace

void CudaDevice::Gather(ConstMatrix table, std::span<const std::uint32_t> ids, bool accumulate,
                        Matrix y) {
  DOMICILE_CHECK(y.rows == ids.size() && y.columns == table.columns && AllBelow(ids, table.rows));
  CudaCall call(*this);
  plugin_->gather(handle_, {.table = call.In(table),
                            .ids = call.In(ids),
                            .rows = y.rows,
                            .columns = y.columns,
                            .accumulate = accumulate,
                            .y = accumulate ? call.InOut(y) : call.Out(y)});
}

void CudaDevice::ScatterAdd(std::span<const std::uint32_t> ids, ConstMatrix dy, Matrix dtable) {
  DOMICILE_CHECK(dy.rows == ids.size() && dy.columns == dtable.columns &&
                 AllBelow(ids, dtable.rows));
  if (ids.empty()) {
    return;
  }
  const ScatterPlan plan = PlanScatter(ids);
  CudaCall call(*this);
  plugin_->scatter_add(handle_, {.targets = call.In(std::span(plan.targets)),
                                 .starts = call.In(std::span(plan.starts)),
                                 .rows = call.In(std::span(plan.rows)),
                                 .groups = plan.targets.size(),
                                 .columns = dy.columns,
                                 .dy = call.In(dy),
                                 .dtable = call.InOut(dtable)});
}

void CudaDevice::Attention(const AttentionShape& shape, ConstMatrix q, ConstMatrix k, ConstMatrix v,
                           std::span<const std::uint8_t> mask, const DropoutMask& dropout,
                           std::span<float> probabilities, Matrix y) {
  DOMICILE_CHECK(Fits(shape, q) && SameShape(q, k) && SameShape(q, v) && SameShape(q, y) &&
                 (mask.empty() || mask.size() == q.rows) &&
                 probabilities.size() == q.rows * shape.heads * shape.length);
  CudaCall call(*this);
  plugin_->attention(handle_, {.shape = shape,
                               .sequences = q.rows / shape.length,
                               .q = call.In(q),
                               .k = call.In(k),
                               .v = call.In(v),
                               .mask = mask.empty() ? nullptr : call.In(mask),
                               .dropout = dropout,
                               .probabilities = call.Out(probabilities),
                               .y = call.Out(y)});
}

void CudaDevice::AttentionGradient(const AttentionShape& shape, ConstMatrix q, ConstMatrix k,
                                   ConstMatrix v, std::span<const float> probabilities,
                                   const DropoutMask& dropout, ConstMatrix dy, Matrix dq, Matrix dk,
                                   Matrix dv) {
  DOMICILE_CHECK(Fits(shape, q) && SameShape(q, k) && SameShape(q, v) && SameShape(q, dy) &&
                 SameShape(q, dq) && SameShape(q, dk) && SameShape(q, dv) &&
                 probabilities.size() == q.rows * shape.heads * shape.length);
  CudaCall call(*this);
  plugin_->attention_gradient(handle_, {.shape = shape,
                                        .sequences = q.rows / shape.length,
                                        .q = call.In(q),
                                        .k = call.In(k),
                                        .v = call.In(v),
                                        .probabilities = call.In(probabilities),
                                        .dropout = dropout,
                                        .dy = call.In(dy),
                                        .dq = call.Out(dq),
                                        .dk = call.Out(dk),
                                        .dv = call.Out(dv)});
}

void CudaDevice::MeanOfTokens(ConstMatrix x, std::size_t length, std::span<const std::uint8_t> mask,
                              Matrix y) {
  DOMICILE_CHECK(length > 0 && x.rows == y.rows * length && x.columns == y.columns &&
                 (mask.empty() || mask.size() == x.rows));
  CudaCall call(*this);
  plugin_->mean_of_tokens(handle_, {.x = call.In(x),
                                    .length = length,
                                    .mask = mask.empty() ? nullptr : call.In(mask),
                                    .sequences = y.rows,
                                    .columns = y.columns,
                                    .y = call.Out(y)});
}

void CudaDevice::MeanOfTokensGradient(ConstMatrix dy, std::size_t length,
                                      std::span<const std::uint8_t> mask, Matrix dx) {
  DOMICILE_CHECK(length > 0 && dx.rows == dy.rows * length && dx.columns == dy.columns &&
                 (mask.empty() || mask.size() == dx.rows));
  CudaCall call(*this);
  plugin_->mean_of_tokens_gradient(handle_, {.dy = call.In(dy),
                                             .length = length,
                                             .mask = mask.empty() ? nullptr : call.In(mask),
                                             .sequences = dy.rows,
                                             .columns = dy.columns,
                                             .dx = call.Out(dx)});
}

double CudaDevice::CrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels, float scale,
                                Matrix dz) {
  double loss = 0;
  CudaCall call(*this);
  plugin_->cross_entropy(handle_, {.z = call.In(z),
                                   .labels = call.In(labels),
                                   .rows = z.rows,
                                   .classes = z.columns,
                                   .scale = scale,
                                   .dz = call.Out(dz),
                                   .host_loss = &loss});
  return loss;
}

double CudaDevice::BinaryCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels,
                                      float scale, Matrix dz) {
  DOMICILE_CHECK(z.columns == 1 && labels.size() == z.rows);
  return CrossEntropy(z, labels, scale, dz);
}

double CudaDevice::SoftmaxCrossEntropy(ConstMatrix z, std::span<const std::uint32_t> labels,
                                       float scale, Matrix dz) {
  DOMICILE_CHECK(z.columns > 1 && labels.size() == z.rows && AllBelow(labels, z.columns));
  return CrossEntropy(z, labels, scale, dz);
}

double CudaDevice::SquaredError(ConstMatrix z, ConstMatrix targets, float scale, Matrix dz) {
  DOMICILE_CHECK(SameShape(z, targets));
  double loss = 0;
  CudaCall call(*this);
  plugin_->squared_error(handle_, {.z = call.In(z),
                                   .targets = call.In(targets),
                                   .rows = z.rows,
                                   .outputs = z.columns,
                                   .scale = scale,
                                   .dz = call.Out(dz),
                                   .host_loss = &loss});
  return loss;
}

void CudaDevice::AddScaled(float a, std::span<const float> x, std::span<float> y) {
  DOMICILE_CHECK(x.size() == y.size());
  CudaCall call(*this);
  plugin_->add_scaled(handle_, {.a = a, .x = call.In(x), .size = x.size(), .y = call.InOut(y)});
}

void CudaDevice::Add(std::span<const float> a, std::span<const float> b, std::span<float> y) {
  DOMICILE_CHECK(a.size() == y.size() && b.size() == y.size());
  CudaCall call(*this);
  plugin_->add(handle_, {.a = call.In(a), .b = call.In(b), .size = y.size(), .y = call.Out(y)});
}

void CudaDevice::Scale(float a, std::span<float> x) {
  CudaCall call(*this);
  plugin_->scale(handle_, {.a = a, .size = x.size(), .x = call.InOut(x)});
}

double CudaDevice::SquaredNorm(std::span<const float> x) {
  double norm = 0;
  CudaCall call(*this);
  plugin_->squared_norm(handle_, {.x = call.In(x), .size = x.size(), .host_norm = &norm});
  return norm;
}

void CudaDevice::Sgd(const SgdStep& step, std::span<const float> gradient,
                     std::span<float> momentum, std::span<float> parameters) {
  DOMICILE_CHECK(gradient.size() == parameters.size() && momentum.size() == parameters.size());
  CudaCall call(*this);
  plugin_->sgd(handle_, {.step = step,
                         .gradient = call.In(gradient),
                         .size = gradient.size(),
                         .momentum = call.InOut(momentum),
                         .parameters = call.InOut(parameters)});
}

void CudaDevice::Adam(const AdamStep& step, std::span<const float> gradient, std::span<float> first,
                      std::span<float> second, std::span<float> parameters) {
  DOMICILE_CHECK(gradient.size() == parameters.size() && first.size() == parameters.size() &&
                 second.size() == parameters.size());
  CudaCall call(*this);
  plugin_->adam(handle_, {.step = step,
                          .gradient = call.In(gradient),
                          .size = gradient.size(),
                          .first = call.InOut(first),
                          .second = call.InOut(second),
                          .parameters = call.InOut(parameters)});
}

ScatterPlan PlanScatter(std::span<const std::uint32_t> ids) {
  ScatterPlan plan;
  plan.rows.resize(ids.size());
  std::iota(plan.rows.begin(), plan.rows.end(), 0U);
  std::stable_sort(plan.rows.begin(), plan.rows.end(),
                   [ids](std::uint32_t a, std::uint32_t b) { return ids[a] < ids[b]; });
  for (std::uint32_t i = 0; i < plan.rows.size(); ++i) {
    const std::uint32_t id = ids[plan.rows[i]];
    if (plan.targets.empty() || plan.targets.back() != id) {
      plan.targets.push_back(id);
      plan.starts.push_back(i);
    }
  }
  plan.starts.push_back(static_cast<std::uint32_t>(plan.rows.size()));
  return plan;
}

}  // namespace domicile::models

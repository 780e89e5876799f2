#include "models/strategy/owned_batch.h"

#include <algorithm>
#include <utility>

namespace domicile::models {
namespace {

ConstMatrix CopyOf(ConstMatrix from, Tensor& to) {
  if (from.data == nullptr) {
    return from;
  }
  to.ResizeMatrix(from.rows, from.columns);
  std::copy_n(from.data, from.rows * from.columns, to.Values().begin());
  return std::as_const(to).AsMatrix();
}

template <typename T>
std::span<const T> CopyOf(std::span<const T> from, std::vector<T>& to) {
  to.assign(from.begin(), from.end());
  return to;
}

}  // namespace

void OwnedBatch::Assign(const BatchView& batch) {
  view_ = {.inputs = CopyOf(batch.inputs, inputs_),
           .labels = CopyOf(batch.labels, labels_),
           .tokens = {.ids = CopyOf(batch.tokens.ids, ids_),
                      .types = CopyOf(batch.tokens.types, types_),
                      .mask = CopyOf(batch.tokens.mask, mask_),
                      .length = batch.tokens.length},
           .targets = CopyOf(batch.targets, targets_)};
}

}  // namespace domicile::models

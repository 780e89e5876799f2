// The input pipeline: small stages that each pull from the one below.
//
//   auto batches = Feed<Indices, RowBatch>(
//       Batch(Shuffle(Cache(Shard(Range(n), workers, me)), seed, n), 32, LastBatch::kKeep), make,
//       bytes_of, clock);
//
// A stage gives its elements in the same order on every machine and for every number of threads.
// Each stage owns the one below. One thread at a time, unless a stage says otherwise.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "models/data/internal/shuffle_stage.h"
#include "models/data/internal/stages.h"
#include "models/data/stage.h"

namespace domicile::models {

enum class LastBatch : std::uint8_t { kDrop = 0, kKeep = 1 };

// 0, 1, ..., size - 1.
inline StagePtr<std::size_t> Range(std::size_t size) {
  return std::make_unique<internal::RangeStage>(size);
}

// The elements whose position modulo `num` is `index`; index < num.
template <typename T>
StagePtr<T> Shard(StagePtr<T> below, std::size_t num, std::size_t index) {
  DOMICILE_CHECK(index < num);
  return std::make_unique<internal::ShardStage<T>>(std::move(below), num, index);
}

// Reads the stage below once; later epochs come from memory. Copies elements.
template <typename T>
StagePtr<T> Cache(StagePtr<T> below) {
  return std::make_unique<internal::CacheStage<T>>(std::move(below));
}

// function(element), on a pool of `threads` >= 1, in order. `function` must not throw and must be
// callable from several threads.
template <typename In, typename Out>
StagePtr<Out> Map(StagePtr<In> below, std::function<Out(const In&)> function, std::size_t threads) {
  return std::make_unique<internal::MapStage<In, Out>>(std::move(below), std::move(function),
                                                       threads);
}

// A random order from (seed, epoch), uniform where `window` >= the number of elements: that many
// are held at a time.
template <typename T>
StagePtr<T> Shuffle(StagePtr<T> below, std::uint64_t seed, std::size_t window) {
  return std::make_unique<internal::ShuffleStage<T>>(std::move(below), seed,
                                                     std::max<std::size_t>(window, 1));
}

// Groups of `size` >= 1 elements. A shorter last one is given too, or dropped.
template <typename T>
StagePtr<std::vector<T>> Batch(StagePtr<T> below, std::size_t size, LastBatch last) {
  DOMICILE_CHECK(size >= 1);
  return std::make_unique<internal::BatchStage<T>>(std::move(below), size,
                                                   last == LastBatch::kKeep);
}

// Epoch after epoch without end; ends only if an epoch is empty.
template <typename T>
StagePtr<T> Repeat(StagePtr<T> below) {
  return std::make_unique<internal::RepeatStage<T>>(std::move(below));
}

}  // namespace domicile::models

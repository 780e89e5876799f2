// What every stage of an input pipeline offers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace domicile::models {

template <typename T>
class Stage {
 public:
  virtual ~Stage() = default;
  // The next element of this epoch; empty at its end, and then again until Restart.
  virtual std::optional<T> Next() = 0;
  // Begins an epoch. A new stage stands at the beginning of epoch 0.
  virtual void Restart(std::uint64_t epoch) = 0;
  // Passes over `count` elements as if Next had given them; returns how many there were. Costs no
  // more than counting where a stage can tell what it would have given without making it.
  virtual std::size_t Skip(std::size_t count) {
    std::size_t skipped = 0;
    while (skipped < count && Next()) {
      ++skipped;
    }
    return skipped;
  }
};

template <typename T>
using StagePtr = std::unique_ptr<Stage<T>>;

// Where a pipeline stands: what it has given in this epoch.
struct PipelinePosition {
  std::uint64_t epoch = 0;
  std::uint64_t elements = 0;

  friend bool operator==(const PipelinePosition&, const PipelinePosition&) = default;
};

// Puts a pipeline where it stood: it goes on with the same elements in the same order. False if the
// epoch has fewer elements.
template <typename T>
bool Seek(Stage<T>& stage, const PipelinePosition& position) {
  stage.Restart(position.epoch);
  return stage.Skip(position.elements) == position.elements;
}

}  // namespace domicile::models

// What the operations of the plug-in run on. A machine has
//   Elements(n, body) and Teams(n, work, body), which run bodies; `work` is the number of elements
//     that a team shares
//   Multiply(product), and CanFuseBias(bias): whether it can add that bias on the way out
//   Scratch(place, bytes): room that keeps its values until that place is asked for again
//   ColumnRoom(): floats that the columns of a convolution may take
//   Zero(memory, bytes), and Download(to, from, bytes), which waits
// It does all in the order of the calls, and nothing after its first failure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace domicile::models::cuda {

// An operation uses each place for one thing.
enum class Place : std::uint8_t {
  kPartials = 0,
  kTotals = 1,
  kLosses = 2,
  kColumns = 3,
  kByFilter = 4,
  kWeights = 5,
  kScores = 6,
  kNumPlaces = 7,
};

template <typename T, typename Machine>
T* ScratchOf(Machine& machine, Place place, std::size_t size) {
  return static_cast<T*>(machine.Scratch(place, size * sizeof(T)));
}

}  // namespace domicile::models::cuda

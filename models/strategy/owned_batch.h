// A batch with memory of its own, for threads that outlive the call that brought it.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"

namespace domicile::models {

// Keeps the memory of the largest batch seen. One thread at a time.
class OwnedBatch {
 public:
  void Assign(const BatchView& batch);
  const BatchView& View() const { return view_; }

 private:
  Tensor inputs_;
  Tensor targets_;
  std::vector<std::uint32_t> labels_;
  std::vector<std::uint32_t> ids_;
  std::vector<std::uint32_t> types_;
  std::vector<std::uint8_t> mask_;
  BatchView view_;
};

}  // namespace domicile::models

// When a round's training has been long enough, by its losses on rows held out
// (docs/formats/job-and-plan.md). No numbers of a model.
#pragma once

#include <cstdint>
#include <limits>

#include "contracts/plan.h"
#include "models/checkpoint.h"

namespace domicile::site_agent {

// One thread at a time.
class EarlyStopping {
 public:
  explicit EarlyStopping(const contracts::EarlyStoppingPlan& plan) : plan_(plan) {}

  // After an epoch that ended with this step (from 1), whose validation loss is finite. Whether it
  // is the best so far.
  bool Note(double loss, std::uint64_t step) {
    if (loss < state_.reference - plan_.min_improvement) {
      state_.reference = loss;
      state_.waited = 0;
    } else {
      ++state_.waited;
    }
    // A loss may be the smallest and yet no improvement to wait on for.
    if (!(loss < best_loss_)) {
      return false;
    }
    best_loss_ = loss;
    state_.best = step;
    return true;
  }
  bool Ended() const { return state_.waited >= plan_.patience; }

  const models::StoppingState& State() const { return state_; }
  double BestLoss() const { return best_loss_; }
  void Restore(const models::StoppingState& state, double best_loss) {
    state_ = state;
    best_loss_ = best_loss;
  }

 private:
  contracts::EarlyStoppingPlan plan_;
  models::StoppingState state_;
  double best_loss_ = std::numeric_limits<double>::infinity();
};

}  // namespace domicile::site_agent

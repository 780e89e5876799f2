// Why the aggregator refuses, with what the other side needs to get it right: codes, numbers and
// names it already knows, never text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "aggregator/rounds/state.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "policy/reason.h"

namespace domicile::aggregator {

struct Refusal {
  policy::Reason reason = policy::Reason::kNone;
  std::optional<JobId> job;
  std::optional<PhaseKey> open_phase;  // what is open now, where that is the question
  Digest open_model;                   // and the model to start from
  std::uint64_t limit = 0;
  std::uint64_t found = 0;
  std::string tensor;  // of the plan
  std::uint64_t index = 0;
  std::string witnessed_head = {};  // note: the last head of the site's log, where that is behind
};

}  // namespace domicile::aggregator

// From what a trainer returned to the bytes of an update: numbers are checked, clipped and rounded
// onto the round's grid here, and every byte of the message is made here. Nothing a trainer wrote
// is forwarded. Pure.
#pragma once

#include <cstdint>
#include <variant>

#include "base/bytes.h"
#include "base/ids.h"
#include "contracts/plan.h"
#include "policy/engine/decide.h"
#include "policy/reason.h"
#include "site_agent/trainer/client.h"

namespace domicile::site_agent {

struct UpdateContext {
  JobId job;
  Digest plan;
  RoundNumber round = 0;
  contracts::PhaseKind phase = contracts::PhaseKind::kNone;
  Digest base_model;
  Digest policy;  // effective policy
};

struct BuiltUpdate {
  Bytes bytes;
  Digest digest;
  std::uint64_t numbers = 0;
  std::uint64_t capacity_bits = 0;
  std::uint64_t records = 0;  // behind the numbers
};

// kNoExamples (no rows), kShape (tensors that are not the plan's), kNotFinite, kOutOfRange
// (integers beyond the grid), kTrainerFailed (a result of another phase). The obligations of the
// decision at `data_open` hold: the smaller clip, weights rounded or equal where policy says so.
std::variant<BuiltUpdate, policy::Reason> BuildUpdate(const contracts::Plan& plan,
                                                      const UpdateContext& context,
                                                      const TaskResult& result,
                                                      const policy::Obligations& obligations);

}  // namespace domicile::site_agent

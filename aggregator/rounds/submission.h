// Whether an update may be sent now, from its header alone: asked before the first byte, and again
// when the last has arrived.
#pragma once

#include <cstdint>
#include <optional>

#include "aggregator/rounds/state.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "policy/reason.h"

namespace domicile::aggregator {

struct SubmissionHeader {
  PhaseKey key = {};  // round 0 or phase kNone: the field was missing
  Epoch epoch = {};
  Digest digest = {};      // of the whole update
  Digest base_model = {};  // that it starts from
};

enum class Verdict : std::uint8_t {
  kRefuse = 0,
  kAccept = 1,         // take it; report UpdateReceived once every other check has passed
  kRepeatReceipt = 2,  // received in this epoch already, the same bytes: give that receipt again
};

struct SubmissionAnswer {
  Verdict verdict = Verdict::kRefuse;
  policy::Reason reason = policy::Reason::kNone;  // set if and only if refused
  // What is open now and the model to start from; empty if nothing is open, or if the site is not
  // in this job (who is not gets no facts about it).
  std::optional<PhaseKey> open_key = std::nullopt;
  std::optional<Epoch> open_epoch = std::nullopt;
  std::optional<Digest> open_model = std::nullopt;
};

// `site` is the name in the verified certificate, never one from the message. Reasons, first that
// applies: kNotAParticipant (not in the job), kCancelled, kRoundMissing, kStaleRound,
// kRoundNotOpen, kNotAParticipant (of this phase), kWrongBaseModel, kWrongEpoch, kAlreadyReceived
// (other bytes), kDeadline (closing). Changes nothing: a refused message does not count as an
// answer of the site.
SubmissionAnswer CheckSubmission(const JobState& state, const SiteId& site,
                                 const SubmissionHeader& header);

}  // namespace domicile::aggregator

// Events: what a log says. One leaf is one event: canonical JSON of a frame (who, when, the
// how-manieth) and a body whose fields are a closed list per type. Page: docs/formats/events.md,
// which lists them all.
//
// Values are names of base/ids.h, digests, codes, numbers, times; never text that somebody typed,
// so that no cell value, path or exception text can come into a log. That is a check
// (EventBuilder::Build), not a habit. Unknown types, fields and codes are refused when written and
// when read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/status.h"

namespace domicile::audit {

// Stored in logs by name: append, never renumber, never rename.
enum class EventType : std::uint16_t {
  kNone = 0,  // never written

  // A program's life and the documents in force.
  kAgentStarted = 1,
  kAgentStopped = 2,
  kAggregatorStarted = 3,
  kAggregatorStopped = 4,
  kPolicyLoaded = 5,
  kPolicyRefused = 6,
  kFactsLoaded = 7,
  kRosterLoaded = 8,
  kSandboxActive = 9,

  // Approval.
  kGrantRequested = 10,
  kGrantLoaded = 11,
  kGrantRefused = 12,

  kPolicyWaiting = 13,
  kLedgerRestored = 14,

  // Jobs and phases.
  kJobSubmitted = 20,
  kJobOffered = 21,
  kOfferAccepted = 22,
  kOfferDeclined = 23,
  kOfferHeld = 24,
  kJobStarted = 25,
  kJobEnded = 26,
  kPhaseOpened = 27,
  kPhaseCommitted = 28,
  kPhaseAbandoned = 29,

  // At a site, from the model to the outbox.
  kModelIntake = 40,
  kModelRefused = 41,
  kDataOpened = 42,
  kTrainStarted = 43,
  kTrainEnded = 44,

  // What leaves a site, and what became of it.
  kEgressDecided = 50,
  kEgressDenied = 51,
  kEgressIntent = 52,
  kEgressDone = 53,
  kEgressAborted = 54,
  kUpdateCounted = 55,
  kUpdateNotCounted = 56,

  // What reaches and leaves the aggregator.
  kIngressReceived = 60,
  kIngressRefused = 61,
  kIngressPartial = 62,
  kModelSent = 63,
  kModelReleased = 64,
  kModelReleaseDenied = 65,
  kViewAllowed = 66,
  kViewDenied = 67,

  // Peers and logs.
  kPeerConnected = 80,
  kPeerDisconnected = 81,
  kPeerRefused = 82,
  kHeadWitnessed = 83,
  kHeadConflict = 84,
  kInstanceConflict = 85,
  kLogRecovered = 86,
  kControlSummary = 87,
  kHeadRecovered = 88,
};

std::string_view TypeName(EventType type);  // `egress.decided`; `none` for kNone
std::optional<EventType> TypeFromName(std::string_view name);
std::span<const EventType> AllEventTypes();  // in order of numbers, without kNone

// The longest leaf, in bytes (C2SP tlog-tiles).
inline constexpr std::size_t kLongestLeaf = 65535;

// Which attempt at which phase an event is about: the four fields `job`, `round`, `phase`, `epoch`.
struct PhaseKey {
  JobId job;
  RoundNumber round = 0;
  std::string phase;  // `statistics`, `train`, `evaluate`
  Epoch epoch;
  friend bool operator==(const PhaseKey&, const PhaseKey&) = default;
  friend auto operator<=>(const PhaseKey&, const PhaseKey&) = default;
};

// A type and a body that is known to be what the type says. Immutable.
class Event {
 public:
  EventType type() const { return type_; }
  const Json& body() const { return body_; }

  // Fields of the body; empty or 0 where absent. The kinds are as in docs/formats/events.md.
  std::string Text(std::string_view field) const;
  std::int64_t Int(std::string_view field) const;
  PhaseKey Phase() const;  // the parts that are there

  friend bool operator==(const Event&, const Event&) = default;

 private:
  friend class EventBuilder;
  Event(EventType type, Json body) : type_(type), body_(std::move(body)) {}
  EventType type_;
  Json body_;
};

// Makes an event field by field.
//
//   ASSIGN_OR_RETURN(const Event event, EventBuilder(EventType::kTrainStarted)
//                                           .Phase(key).Set("grant", grant).Set("trainer", program)
//                                           .Build());
//
// For the events others read back (openings, commits, egress, ingress) use the structs of
// audit/records.h. One thread at a time.
class EventBuilder {
 public:
  explicit EventBuilder(EventType type) : type_(type) {}

  EventBuilder& Set(std::string_view field, Json value);
  EventBuilder& Set(std::string_view field, const Digest& digest);
  EventBuilder& Set(std::string_view field, const Epoch& epoch);
  EventBuilder& Set(std::string_view field, WallTime time);
  EventBuilder& Set(std::string_view field, std::span<const std::string> texts);
  template <typename Tag>
  EventBuilder& Set(std::string_view field, const Name<Tag>& name) {
    return Set(field, Json(name.text()));
  }
  // All four fields of a PhaseKey.
  EventBuilder& Phase(const PhaseKey& key);

  // Errors: kInvalidArgument naming type and field: a required field is missing, a field is unknown
  // (with the nearest spelling), or a value is not of the field's kind. The message never shows a
  // value.
  StatusOr<Event> Build() const;

 private:
  friend StatusOr<struct Leaf> ParseLeaf(std::string_view bytes);
  EventType type_;
  Json body_;
};

// What is common to all leaves.
struct Frame {
  std::string origin;         // the log: the name of its key
  std::uint64_t seq = 0;      // index of the leaf, from 0
  WallTime time;              // UTC to the millisecond; never before the leaf before it
  std::uint64_t mono_us = 0;  // microseconds of the monotonic clock, comparable within one `boot`
  std::string boot;           // 32 hexadecimal digits, drawn anew by each start of the program
  friend bool operator==(const Frame&, const Frame&) = default;
};

struct Leaf {
  Frame frame;
  Event event;
  friend bool operator==(const Leaf&, const Leaf&) = default;
};

// The exact bytes of a leaf, without a line end. Errors: kInvalidArgument (longer than
// kLongestLeaf).
StatusOr<std::string> PrintLeaf(const Frame& frame, const Event& event);

// Reads bytes from another party. Accepts only what PrintLeaf prints: canonical, of a known type,
// every field as the type says. Errors: kInvalidArgument, naming the field, never a value.
StatusOr<Leaf> ParseLeaf(std::string_view bytes);

}  // namespace domicile::audit

// The workers of a cluster, connected: frames, and the all-reduce of training
// (docs/formats/cluster.md).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "crypto/psk_channel.h"
#include "models/strategy/worker_group.h"
#include "policy/reason.h"
#include "site_agent/cluster/description.h"
#include "site_agent/cluster/sockets.h"

namespace domicile::site_agent {

// The head of a frame: its kind, and its length as u64 little-endian.
using FrameHead = std::array<std::uint8_t, 9>;

// Sent: append, never renumber.
enum class ClusterFrame : std::uint8_t {
  kNone = 0,
  kHello = 1,
  kTask = 2,
  kReady = 3,
  kRefused = 4,
  kBegin = 5,
  kValues = 6,
  kDone = 7,
};

// What every worker must have in common with this one.
struct ClusterIdentity {
  std::string federation;
  SiteId site;
  Digest trainer;  // SHA-256 of the program file
  Digest data;     // of the commitments of its datasets
};

// Every error but kCancelled means that the group is broken: it must be joined anew. kUnavailable
// names the worker. One thread at a time.
class ClusterGroup final : public models::WorkerGroup {
 public:
  // Uses up `sockets.lower` and accepts the higher ranks. Returns when all are there. The
  // description, sockets and clock must outlive the group. Errors: kUnavailable (who is missing
  // when the rendezvous is over), kUnauthenticated (a lower rank without the key),
  // kFailedPrecondition (a worker of another federation, site, size or program), kCancelled.
  static StatusOr<std::unique_ptr<ClusterGroup>> Join(const ClusterDescription& description,
                                                      ClusterSockets& sockets, ByteSpan key,
                                                      const ClusterIdentity& identity,
                                                      const Clock& clock,
                                                      const std::stop_token& stop);

  std::size_t NumRanks() const override { return description_.workers.size(); }
  std::size_t Rank() const override { return description_.rank; }
  Status AllReduceSum(std::span<float> values) override;
  StatusOr<double> AllReduceSum(double value) override;

  Status Send(std::size_t rank, ClusterFrame kind, ByteSpan payload);
  struct Received {
    ClusterFrame kind = ClusterFrame::kNone;
    Bytes payload;
  };
  // The next frame of a worker. `patience`: how long it may say nothing; empty: for ever, until
  // `stop`.
  StatusOr<Received> Receive(std::size_t rank, std::uint64_t max_bytes,
                             std::optional<std::chrono::seconds> patience,
                             const std::stop_token& stop);

 private:
  // Bytes to and from one worker. Done when both are empty.
  struct Move {
    std::size_t rank = 0;
    std::vector<ByteSpan> out;
    std::vector<std::span<std::uint8_t>> in;
    // Where the first of `in` is the head of a frame of values: it is looked at as soon as it is
    // whole, so that a worker that gave up is not waited for.
    const FrameHead* head = nullptr;
    std::uint64_t value_bytes = 0;
    MonotonicTime heard{};  // when bytes last moved
  };

  ClusterGroup(const ClusterDescription& description, const Clock& clock);
  crypto::PskChannel& To(std::size_t rank) { return *channels_[rank]; }
  // "worker 2 (10.1.0.3:7100)"
  std::string Name(std::size_t rank) const;
  Status Lost(std::size_t rank, const Status& why) const;
  // As much as goes without waiting; the events to wait for.
  StatusOr<short> AdvanceOut(Move& move);
  StatusOr<short> AdvanceIn(Move& move);
  StatusOr<short> Advance(Move& move);
  // Called when bytes have come in.
  Status CheckHead(Move& move) const;
  Status Run(std::vector<Move>& moves, std::optional<std::chrono::seconds> patience,
             const std::stop_token& stop);
  // Exchanges one buffer of known size with every other rank: out[r] to r, in[r] from r.
  Status ExchangeValues(const std::vector<ByteSpan>& out,
                        const std::vector<std::span<std::uint8_t>>& in);

  const ClusterDescription& description_;
  const Clock& clock_;
  std::vector<std::optional<crypto::PskChannel>> channels_;  // by rank; empty at the own
  std::vector<std::vector<float>> parts_;                    // others' values of the own slice
};

}  // namespace domicile::site_agent

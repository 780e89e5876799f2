// What a FederationServer asks of the program behind it.
//
// Every call names the caller by certificate; the role has been checked (sites for
// FederationHandler, operators for AdminHandler), and messages have passed RequireClosed.
//
// Threads. The control calls of *all* streams come on one thread, the server's control thread, one
// after the other: no locks are needed among them, and none may block for long, since everybody
// waits. A stream's next message is read when its last has been handled. Data and admin calls come
// on threads of gRPC, many at once; they may block (on the disk, on a lock, until an event).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>

#include "base/bytes.h"
#include "base/status.h"
#include "crypto/certificate.h"
#include "wire/control_tally.h"
#include "wire/proto/admin.pb.h"
#include "wire/proto/federation.pb.h"
#include "wire/shared_bytes.h"

namespace domicile::wire {

// The control stream of one connected site. Thread-safe.
class SiteStream {
 public:
  virtual ~SiteStream() = default;
  virtual const crypto::PeerIdentity& Peer() const = 0;

  // Queues a directive and returns; directives arrive in order. shared_ptr: one directive is often
  // queued on many streams, each an owner until it has been sent. Errors: kUnavailable (ended),
  // kResourceExhausted (the queue of this stream is full: the site does not read; the stream is
  // ended), kInvalidArgument (the site would refuse it: our bug).
  virtual Status Push(std::shared_ptr<const v1::Directive> directive) = 0;

  // Sends what is queued, then ends the stream with this status (OK: in order). Idempotent.
  virtual void End(const Status& status) = 0;

  // What has gone over it until now; still there after it has ended.
  virtual ControlTally Tally() const = 0;
};

// Where one upload goes. One thread at a time. Destroyed without Finish if the connection ends
// first; what `Received` has counted may then be kept for the next try.
class UpdateUpload {
 public:
  virtual ~UpdateUpload() = default;
  // Memory for the whole update: exactly header.update.size_bytes. Bytes are copied straight to it.
  virtual std::span<std::uint8_t> Destination() = 0;
  // How much of the destination is already there from an earlier try; the site goes on from there.
  virtual std::uint64_t StartBytes() const = 0;
  // The bytes below `end_bytes` are there now. Errors end the upload with that status.
  virtual Status Received(std::uint64_t end_bytes) = 0;
  // Everything is there; `digest` is what was computed over it while it arrived. The handler
  // compares it with the header's.
  virtual StatusOr<std::variant<v1::Receipt, v1::Refusal>> Finish(const Digest& digest) = 0;
};

using BeginAnswer = std::variant<std::unique_ptr<UpdateUpload>, v1::Receipt, v1::Refusal>;

class FederationHandler {
 public:
  virtual ~FederationHandler() = default;

  // ---- control thread ----
  // A site has opened its stream; it has said nothing yet. An error ends the stream with it, and
  // OnDisconnect does not follow. shared_ptr: the handler pushes to the stream, gRPC ends it;
  // whichever lets go last.
  virtual Status OnConnect(std::shared_ptr<SiteStream> stream) = 0;
  virtual void OnMessage(SiteStream& stream, const v1::SiteMessage& message) = 0;
  // The stream has ended, by either side; the last call about it. `why` is for the log.
  virtual void OnDisconnect(SiteStream& stream, const Status& why) = 0;

  // ---- threads of gRPC ----
  // The bytes of a blob this site may have. Errors: kNotFound, kPermissionDenied.
  virtual StatusOr<SharedBytes> OpenBlob(const crypto::PeerIdentity& peer,
                                         const Digest& digest) = 0;
  // Asked before any chunk is sent: still wanted? Called once the server has a slot for it.
  virtual StatusOr<BeginAnswer> BeginUpdate(const crypto::PeerIdentity& peer,
                                            const v1::UpdateHeader& header) = 0;
  virtual StatusOr<v1::ProveConsistencyResponse> ProveConsistency(const crypto::PeerIdentity& peer,
                                                                  std::uint64_t first_size) = 0;
};

// Where the events of a watched job go. One thread at a time.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // False if the watcher has gone: return.
  virtual bool Send(const v1::WatchJobResponse& event) = 0;
  // Look at it at least each second while waiting: the server may be stopping.
  virtual bool IsGone() const = 0;
};

struct ModelRelease {
  v1::BlobRef model;
  SharedBytes bytes;
};

// All on threads of gRPC.
class AdminHandler {
 public:
  virtual ~AdminHandler() = default;
  virtual StatusOr<v1::SubmitJobResponse> SubmitJob(const crypto::PeerIdentity& caller,
                                                    const v1::SubmitJobRequest& request) = 0;
  virtual StatusOr<v1::ListJobsResponse> ListJobs(const crypto::PeerIdentity& caller) = 0;
  virtual StatusOr<v1::ShowJobResponse> ShowJob(const crypto::PeerIdentity& caller,
                                                const v1::ShowJobRequest& request) = 0;
  virtual Status CancelJob(const crypto::PeerIdentity& caller,
                           const v1::CancelJobRequest& request) = 0;
  // Returns when the job has ended or the watcher has gone.
  virtual Status WatchJob(const crypto::PeerIdentity& caller, const v1::WatchJobRequest& request,
                          WatchSink& sink) = 0;
  // A release: decided and logged by the handler before it returns the bytes.
  virtual StatusOr<std::variant<ModelRelease, v1::Refusal>> FetchModel(
      const crypto::PeerIdentity& caller, const v1::FetchModelRequest& request) = 0;
};

}  // namespace domicile::wire

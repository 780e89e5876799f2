// A site's side of the protocol: one connection to the aggregator.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <variant>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "crypto/certificate.h"
#include "wire/control_tally.h"
#include "wire/credentials.h"
#include "wire/proto/federation.pb.h"
#include "wire/settings.h"
#include "wire/shared_bytes.h"

namespace domicile::wire {

struct ClientOptions {
  std::string address;  // HOST:PORT; the certificate must be valid for HOST
  TlsIdentity identity;
  PeerPolicy peer;  // whom to accept as the server; usually role kAggregator
  TransportSettings transport;
  const Clock* clock = nullptr;  // required; outlives the client
};

// Ends a call early: when `stop` is requested, or after `timeout`. A stopped call is kCancelled, a
// late one kDeadlineExceeded.
struct CallLimits {
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  std::stop_token stop;
};

// What the control stream tells its user. All calls come on one thread, the stream's own, one after
// the other; while one runs, no other directive is read. Do not destroy the stream in one of them.
class ControlListener {
 public:
  virtual ~ControlListener() = default;
  // Only messages that RequireClosed accepts.
  virtual void OnDirective(const v1::Directive& directive) = 0;
  // The last call. OK if the aggregator ended the stream in order; kInvalidArgument if it sent what
  // is not in the protocol; kCancelled after Close().
  virtual void OnClosed(const Status& why) = 0;
};

// The control stream. Thread-safe, save the destructor, which closes and waits for the thread.
class ControlStream {
 public:
  virtual ~ControlStream() = default;
  // Queues the message and returns. Errors: kUnavailable (the stream has ended),
  // kResourceExhausted (1024 messages are waiting: the aggregator does not read),
  // kInvalidArgument (the message itself would be refused: our bug, caught before it leaves).
  virtual Status Send(const v1::SiteMessage& message) = 0;
  // Sends what is queued, then ends the stream; OnClosed follows. The destructor does the same, and
  // breaks the stream off after two seconds.
  virtual void Close() = 0;
  // What has gone over it until now; nothing, of a stream that does not count.
  virtual ControlTally Tally() const { return {}; }
};

using SubmitAnswer = std::variant<v1::Receipt, v1::Refusal>;

// Thread-safe. Calls may run beside each other.
class FederationClient {
 public:
  // Connects and waits until the aggregator's certificate is accepted and ours by it. Errors:
  //   kInvalidArgument    the address or the PEM texts
  //   kUnauthenticated    its certificate is not accepted here, with the reason; or ours is not
  //                       accepted there (it closes the connection during the handshake)
  //   kPermissionDenied and others that the peer rule returned
  //   kUnavailable        nothing answers
  //   kDeadlineExceeded   not in time
  static StatusOr<std::unique_ptr<FederationClient>> Connect(const ClientOptions& options,
                                                             const CallLimits& limits);
  virtual ~FederationClient() = default;

  // Who the aggregator is, by its certificate.
  virtual crypto::PeerIdentity Server() const = 0;

  // Opens the stream. The listener and this client outlive it. Nothing is sent yet: Send a Hello.
  virtual std::unique_ptr<ControlStream> OpenControl(ControlListener& listener) = 0;

  // Fetches a blob into memory: destination.size() == blob.size_bytes(). `have_bytes` says how much
  // of it is there already, from an earlier try, and grows as chunks arrive: after kUnavailable,
  // call again with it to go on. At the end the digest of the whole is compared.
  // Errors: kInvalidArgument (a chunk out of order, too long, malformed), kDataLoss (digest;
  // have_bytes is 0 again), kNotFound, kPermissionDenied, kUnavailable, kCancelled,
  // kDeadlineExceeded.
  virtual Status FetchBlob(const v1::BlobRef& blob, std::span<std::uint8_t> destination,
                           std::uint64_t& have_bytes, const CallLimits& limits) = 0;

  // Submits one update: header, then the bytes from where the aggregator wants to go on.
  // `on_progress`, which may be absent, is called before each chunk with the end of that chunk:
  // bytes at and above it have certainly not left. A refusal is an answer,
  // not an error. Errors: kInvalidArgument (the header does not fit the bytes, or the answer is not
  // in the protocol), kUnavailable and others of the connection: submit again, it resumes.
  virtual StatusOr<SubmitAnswer> SubmitUpdate(
      const v1::UpdateHeader& header, const SharedBytes& update,
      const std::function<void(std::uint64_t sent_bytes)>& on_progress,
      const CallLimits& limits) = 0;

  virtual StatusOr<v1::ProveConsistencyResponse> ProveConsistency(std::uint64_t first_size,
                                                                  const CallLimits& limits) = 0;
};

}  // namespace domicile::wire

// A FederationHandler that remembers what it was told and answers what it was given.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "wire/client.h"
#include "wire/handlers.h"

namespace domicile::test {

// Waits up to ten seconds for what other threads do. Thread-safe.
class Signal {
 public:
  // Runs `change` under the lock and wakes all who wait.
  void Update(const std::function<void()>& change);
  // Whether `condition`, looked at under the lock, comes true in time.
  bool Await(const std::function<bool()>& condition);

 private:
  Mutex mutex_;
  ConditionVariable changed_;
};

// Thread-safe. Members that are not functions: through `signal` only, once the server runs.
class FakeFederation final : public wire::FederationHandler {
 public:
  Status OnConnect(std::shared_ptr<wire::SiteStream> stream) override;
  void OnMessage(wire::SiteStream& stream, const v1::SiteMessage& message) override;
  void OnDisconnect(wire::SiteStream& stream, const Status& why) override;
  StatusOr<wire::SharedBytes> OpenBlob(const crypto::PeerIdentity& peer,
                                       const Digest& digest) override;
  StatusOr<wire::BeginAnswer> BeginUpdate(const crypto::PeerIdentity& peer,
                                          const v1::UpdateHeader& header) override;
  StatusOr<v1::ProveConsistencyResponse> ProveConsistency(const crypto::PeerIdentity& peer,
                                                          std::uint64_t first_size) override;

  Signal signal;
  // What happened.
  std::vector<std::shared_ptr<wire::SiteStream>> streams;
  std::vector<std::string> messages;  // "site: serialised message"
  std::vector<Status> disconnects;
  std::map<std::string, Bytes> uploads;       // by hex digest of the header; kept for resuming
  std::map<std::string, std::uint64_t> have;  // how much of each has come
  std::vector<std::uint64_t> starts;          // where each upload began
  // What to answer.
  Status connect_status;
  std::map<Digest, wire::SharedBytes> blobs;
  std::uint64_t fail_upload_at = 0;  // the first upload breaks off when so much has come
  bool refuse_updates = false;
};

// A ControlListener that remembers.
class FakeSite final : public wire::ControlListener {
 public:
  void OnDirective(const v1::Directive& directive) override;
  void OnClosed(const Status& why) override;

  Signal signal;
  std::vector<v1::Directive> directives;
  std::vector<Status> closed;
};

// Bytes that differ from place to place, from a seed.
Bytes SomeBytes(std::size_t size, std::uint64_t seed);

}  // namespace domicile::test

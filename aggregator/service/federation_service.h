// The federation service: what sites send, validated and given to the coordinator.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <variant>

#include "aggregator/coordinator/coordinator.h"
#include "wire/handlers.h"

namespace domicile::aggregator {

// Borrows the coordinator. Threads as wire/handlers.h says.
class FederationService final : public wire::FederationHandler {
 public:
  explicit FederationService(Coordinator& coordinator) : coordinator_(coordinator) {}

  Status OnConnect(std::shared_ptr<wire::SiteStream> stream) override;
  void OnMessage(wire::SiteStream& stream, const v1::SiteMessage& message) override;
  void OnDisconnect(wire::SiteStream& stream, const Status& why) override;

  StatusOr<wire::SharedBytes> OpenBlob(const crypto::PeerIdentity& peer,
                                       const Digest& digest) override;
  StatusOr<wire::BeginAnswer> BeginUpdate(const crypto::PeerIdentity& peer,
                                          const v1::UpdateHeader& header) override;
  StatusOr<v1::ProveConsistencyResponse> ProveConsistency(const crypto::PeerIdentity& peer,
                                                          std::uint64_t first_size) override;

 private:
  class Port;
  // Hello: welcomes the site, or says why not.
  std::optional<Refusal> Greet(const crypto::PeerIdentity& peer, const std::shared_ptr<Port>& port,
                               const v1::Hello& hello);
  Status Handle(const SiteId& site, const v1::SiteMessage& message);

  Coordinator& coordinator_;
  // Control thread only. A stream is here from OnConnect to OnDisconnect.
  std::map<const wire::SiteStream*, std::shared_ptr<Port>> ports_;
};

}  // namespace domicile::aggregator

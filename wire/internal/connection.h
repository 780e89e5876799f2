// A client's channel: opened, diagnosed, and shared by the calls over it.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "base/status.h"
#include "crypto/certificate.h"
#include "wire/client.h"
#include "wire/credentials.h"

namespace domicile::wire::internal {

// Thread-safe.
class Connection {
 public:
  // As FederationClient::Connect.
  static StatusOr<std::unique_ptr<Connection>> Open(const ClientOptions& options,
                                                    const CallLimits& limits);

  const std::shared_ptr<grpc::Channel>& Channel() const { return channel_; }
  crypto::PeerIdentity Server() const { return verifier_->LastPeer(); }

  // The status of a call, with a diagnosis if it failed for want of a connection.
  Status Explain(const grpc::Status& status) const;

 private:
  Connection(std::string address, std::shared_ptr<PeerVerifier> verifier,
             std::shared_ptr<grpc::Channel> channel);
  Status WhyNotConnected() const;
  Status Diagnose(const std::string& text) const;

  const std::string address_;
  const std::shared_ptr<PeerVerifier> verifier_;
  const std::shared_ptr<grpc::Channel> channel_;
};

// The context of one call with its limits. One thread at a time.
class CallContext {
 public:
  explicit CallContext(const CallLimits& limits);
  CallContext(const CallContext&) = delete;
  CallContext& operator=(const CallContext&) = delete;

  grpc::ClientContext& operator*() { return context_; }
  grpc::ClientContext* operator->() { return &context_; }

 private:
  struct Cancel {
    grpc::ClientContext* context;
    void operator()() const { context->TryCancel(); }
  };
  grpc::ClientContext context_;
  std::stop_callback<Cancel> stop_;
};

}  // namespace domicile::wire::internal

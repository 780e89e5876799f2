#include "aggregator/service/federation_service.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/service/convert.h"
#include "base/log.h"
#include "base/mutex.h"
#include "policy/language/parse.h"
#include "wire/settings.h"

namespace domicile::aggregator {

namespace {

Refusal Because(policy::Reason reason) {
  Refusal refusal;
  refusal.reason = reason;
  return refusal;
}

// Other versions than this program's, which it names.
Refusal OtherVersion(policy::Reason reason, std::uint32_t own, std::uint32_t found) {
  Refusal refusal = Because(reason);
  refusal.limit = own;
  refusal.found = found;
  return refusal;
}

std::string RawDigest(const Digest& digest) { return {digest.bytes.begin(), digest.bytes.end()}; }

StatusOr<SiteId> SiteOf(const crypto::PeerIdentity& peer) {
  return SiteId::Parse(peer.spiffe.name);
}

// One upload: its bytes in memory, until they are folded.
class Upload final : public wire::UpdateUpload {
 public:
  Upload(Coordinator& coordinator, SiteId site, UpdateHead head)
      : coordinator_(coordinator),
        site_(std::move(site)),
        head_(std::move(head)),
        bytes_(head_.size_bytes) {}

  ~Upload() override {
    if (!finished_) {
      coordinator_.AbortUpdate(site_, head_, received_bytes_);
    }
  }

  std::span<std::uint8_t> Destination() override { return bytes_; }
  std::uint64_t StartBytes() const override { return 0; }
  Status Received(std::uint64_t end_bytes) override {
    received_bytes_ = end_bytes;
    return OkStatus();
  }

  StatusOr<std::variant<v1::Receipt, v1::Refusal>> Finish(const Digest& digest) override {
    finished_ = true;
    if (digest != head_.digest) {
      coordinator_.RefuseUpdate(site_, head_, received_bytes_, policy::Reason::kDigestMismatch);
      return ToWire(Because(policy::Reason::kDigestMismatch));
    }
    const std::variant<UpdateReceipt, Refusal> answer =
        coordinator_.FinishUpdate(site_, head_, bytes_);
    if (const auto* receipt = std::get_if<UpdateReceipt>(&answer)) {
      return ToWire(*receipt);
    }
    return ToWire(std::get<Refusal>(answer));
  }

 private:
  Coordinator& coordinator_;
  const SiteId site_;
  const UpdateHead head_;
  Bytes bytes_;
  std::uint64_t received_bytes_ = 0;
  bool finished_ = false;
};

}  // namespace

// A site's stream as the coordinator sees it.
class FederationService::Port final : public SitePort {
 public:
  Port(std::shared_ptr<wire::SiteStream> stream, SiteId site_id)
      : site(std::move(site_id)), stream_(std::move(stream)) {}

  // The coordinator may push as soon as it has admitted the site; the welcome still goes first.
  void Push(const ToSite& message) override {
    {
      const MutexLock lock(mutex_);
      if (!welcomed_) {
        waiting_.push_back(ToWire(message));
        return;
      }
    }
    Send(ToWire(message));
  }

  void Welcomed(v1::Directive welcome) {
    Send(std::move(welcome));
    {
      const MutexLock lock(mutex_);
      // Sent under the lock, so that nothing pushed now overtakes what has waited.
      for (v1::Directive& directive : waiting_) {
        Send(std::move(directive));
      }
      waiting_.clear();
      welcomed_ = true;
    }
  }

  ControlTally Tally() const override {
    const wire::ControlTally tally = stream_->Tally();
    return {.messages_in = tally.messages_in,
            .messages_out = tally.messages_out,
            .bytes_in = tally.bytes_in,
            .bytes_out = tally.bytes_out};
  }

  void End(const Refusal& why) override {
    v1::Directive goodbye;
    *goodbye.mutable_goodbye()->mutable_refusal() = ToWire(why);
    // A twin, a restored copy or another release must not come back by itself; the others may try
    // again.
    const bool final =
        why.reason == policy::Reason::kInstance || why.reason == policy::Reason::kSuperseded ||
        why.reason == policy::Reason::kLogHead || why.reason == policy::Reason::kProtocolVersion ||
        why.reason == policy::Reason::kPolicySchemaVersion;
    goodbye.mutable_goodbye()->set_retry_after_seconds(final ? 0 : 5);
    goodbye.mutable_goodbye()->set_witnessed_head(why.witnessed_head);
    Send(std::move(goodbye));
    stream_->End(OkStatus());
  }

  void Send(v1::Directive directive) {
    const Status sent = stream_->Push(std::make_shared<const v1::Directive>(std::move(directive)));
    if (!sent.ok() && sent.code() != StatusCode::kUnavailable) {
      LogWarning("site `" + site.text() + "`: " + std::string(Message(sent)));
    }
  }

  const SiteId site;
  bool greeted = false;  // control thread only

 private:
  const std::shared_ptr<wire::SiteStream> stream_;  // shared with gRPC, which ends it
  Mutex mutex_;
  bool welcomed_ GUARDED_BY(mutex_) = false;
  std::vector<v1::Directive> waiting_ GUARDED_BY(mutex_);
};

Status FederationService::OnConnect(std::shared_ptr<wire::SiteStream> stream) {
  ASSIGN_OR_RETURN(SiteId site, SiteOf(stream->Peer()));
  const wire::SiteStream* key = stream.get();
  ports_.emplace(key, std::make_shared<Port>(std::move(stream), std::move(site)));
  return OkStatus();
}

void FederationService::OnMessage(wire::SiteStream& stream, const v1::SiteMessage& message) {
  const auto found = ports_.find(&stream);
  if (found == ports_.end()) {
    return;
  }
  const std::shared_ptr<Port> port = found->second;
  if (message.has_hello() == port->greeted) {
    port->End(Because(policy::Reason::kMalformed));  // hello comes first, and once
    return;
  }
  if (message.has_hello()) {
    port->greeted = true;
    if (std::optional<Refusal> refusal = Greet(stream.Peer(), port, message.hello())) {
      port->End(*refusal);
    }
  } else if (!Handle(port->site, message).ok()) {
    port->End(Because(policy::Reason::kMalformed));
  }
}

std::optional<Refusal> FederationService::Greet(const crypto::PeerIdentity& peer,
                                                const std::shared_ptr<Port>& port,
                                                const v1::Hello& hello) {
  if (hello.protocol_min() > wire::kProtocolVersion ||
      hello.protocol_max() < wire::kProtocolVersion) {
    coordinator_.RefuseGreeting(peer, policy::Reason::kProtocolVersion);
    return OtherVersion(policy::Reason::kProtocolVersion, wire::kProtocolVersion,
                        hello.protocol_max());
  }
  if (hello.policy_schema_min() > policy::kPolicySchema ||
      hello.policy_schema_max() < policy::kPolicySchema) {
    coordinator_.RefuseGreeting(peer, policy::Reason::kPolicySchemaVersion);
    return OtherVersion(policy::Reason::kPolicySchemaVersion, policy::kPolicySchema,
                        hello.policy_schema_max());
  }
  const StatusOr<SiteHello> parsed = HelloFrom(hello);
  const StatusOr<std::vector<std::pair<JobId, PhaseKey>>> pending = PendingFrom(hello);
  if (!parsed.ok() || !pending.ok()) {
    return Because(policy::Reason::kMalformed);
  }
  const std::variant<Welcome, Refusal> answer = coordinator_.Connect(peer, *parsed, port);
  if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    return *refusal;
  }
  v1::Directive directive;
  *directive.mutable_welcome() = ToWire(std::get<Welcome>(answer));
  directive.mutable_welcome()->set_protocol(wire::kProtocolVersion);
  directive.mutable_welcome()->set_policy_schema(policy::kPolicySchema);
  port->Welcomed(std::move(directive));
  coordinator_.Joined(port->site, *pending);
  return std::nullopt;
}

Status FederationService::Handle(const SiteId& site, const v1::SiteMessage& message) {
  if (message.has_offer_reply()) {
    ASSIGN_OR_RETURN(const OfferReply reply, OfferReplyFrom(message.offer_reply()));
    coordinator_.ReplyToOffer(site, reply);
  } else if (message.has_phase_reply()) {
    ASSIGN_OR_RETURN(const auto phase, PhaseFrom(message.phase_reply().phase()));
    coordinator_.DeclinePhase(site, phase.first, phase.second,
                              EpochFrom(message.phase_reply().epoch()),
                              ReasonFrom(message.phase_reply().refusal().reason()));
  } else if (message.has_progress()) {
    ASSIGN_OR_RETURN(const auto phase, PhaseFrom(message.progress().phase()));
    coordinator_.ReportProgress(site, phase.first, phase.second, message.progress().percent());
  } else if (message.has_heartbeat()) {
    ASSIGN_OR_RETURN(const std::vector<Digest> proof,
                     DigestsFrom(message.heartbeat().consistency()));
    coordinator_.WitnessHead(site, message.heartbeat().own_head(), proof);
  }
  return OkStatus();
}

void FederationService::OnDisconnect(wire::SiteStream& stream, const Status& /*why*/) {
  const auto found = ports_.find(&stream);
  if (found != ports_.end()) {
    coordinator_.Disconnected(found->second->site, found->second.get());
    ports_.erase(found);
  }
}

StatusOr<wire::SharedBytes> FederationService::OpenBlob(const crypto::PeerIdentity& peer,
                                                        const Digest& digest) {
  ASSIGN_OR_RETURN(const SiteId site, SiteOf(peer));
  ASSIGN_OR_RETURN(const std::string path, coordinator_.OpenModel(site, digest));
  return wire::MapFile(path);
}

StatusOr<wire::BeginAnswer> FederationService::BeginUpdate(const crypto::PeerIdentity& peer,
                                                           const v1::UpdateHeader& header) {
  ASSIGN_OR_RETURN(const SiteId site, SiteOf(peer));
  ASSIGN_OR_RETURN(const UpdateHead head, UpdateHeadFrom(header));
  std::variant<Proceed, UpdateReceipt, Refusal> answer = coordinator_.BeginUpdate(site, head);
  if (const auto* receipt = std::get_if<UpdateReceipt>(&answer)) {
    return wire::BeginAnswer(ToWire(*receipt));
  }
  if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    return wire::BeginAnswer(ToWire(*refusal));
  }
  return wire::BeginAnswer(std::make_unique<Upload>(coordinator_, site, head));
}

StatusOr<v1::ProveConsistencyResponse> FederationService::ProveConsistency(
    const crypto::PeerIdentity& /*peer*/, std::uint64_t first_size) {
  ASSIGN_OR_RETURN(const Coordinator::Proof proof, coordinator_.ProveConsistency(first_size));
  v1::ProveConsistencyResponse response;
  response.set_head(proof.head);
  for (const Digest& node : proof.proof) {
    response.add_proof(RawDigest(node));
  }
  return response;
}

}  // namespace domicile::aggregator

// An agent meets an aggregator of another release: one sentence with both versions, an exit code,
// and it does not come back by itself.
#include <atomic>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "contracts/identity.h"
#include "policy/language/parse.h"
#include "policy/reason.h"
#include "tests/support/federation_processes.h"
#include "wire/server.h"
#include "wire/settings.h"

namespace domicile::test {
namespace {

const std::string kSite = "cleveland";

// An aggregator with the right keys that answers every hello with the same words.
class OtherRelease final : public wire::FederationHandler {
 public:
  explicit OtherRelease(v1::Directive answer)
      : answer_(std::make_shared<const v1::Directive>(std::move(answer))) {}

  Status OnConnect(std::shared_ptr<wire::SiteStream> /*stream*/) override {
    ++connections;
    return OkStatus();
  }
  void OnMessage(wire::SiteStream& stream, const v1::SiteMessage& message) override {
    if (message.has_hello()) {
      protocol_said = message.hello().protocol_max();
      stream.Push(answer_).IgnoreError();
    } else {
      ++messages_after_hello;
    }
  }
  void OnDisconnect(wire::SiteStream& /*stream*/, const Status& /*why*/) override {}
  StatusOr<wire::SharedBytes> OpenBlob(const crypto::PeerIdentity& /*peer*/,
                                       const Digest& /*digest*/) override {
    return Error(StatusCode::kNotFound, "nothing is here");
  }
  StatusOr<wire::BeginAnswer> BeginUpdate(const crypto::PeerIdentity& /*peer*/,
                                          const v1::UpdateHeader& /*header*/) override {
    return Error(StatusCode::kFailedPrecondition, "nothing is taken here");
  }
  StatusOr<v1::ProveConsistencyResponse> ProveConsistency(const crypto::PeerIdentity& /*peer*/,
                                                          std::uint64_t /*first*/) override {
    return Error(StatusCode::kNotFound, "no log is here");
  }

  std::atomic<int> connections = 0;
  std::atomic<int> messages_after_hello = 0;
  std::atomic<std::uint32_t> protocol_said = 0;

 private:
  const std::shared_ptr<const v1::Directive> answer_;  // shared with the stream that sends it
};

struct Outcome {
  int code = 0;
  std::string said;
  int connections = 0;
  int messages_after_hello = 0;
};

// A real agent, to its end, with that aggregator in place of the real one.
Outcome Meet(const v1::Directive& answer) {
  auto made = FederationProcesses::Create();
  REQUIRE_MESSAGE(made.ok(), Message(made.status()));
  FederationProcesses& federation = **made;
  const SystemClock clock;
  const auto identity = contracts::LoadIdentity(federation.Folders().Path("aggregator/identity"),
                                                crypto::Role::kAggregator, clock.Now());
  REQUIRE_MESSAGE(identity.ok(), Message(identity.status()));
  wire::ServerOptions options;
  options.address = federation.Address();
  options.identity = {.key_pem = std::string(identity->files.tls_key.Text()),
                      .chain_pem = identity->files.tls_chain,
                      .roots_pem = identity->files.root};
  options.peer.federation = identity->Name().federation;
  options.peer.rule = [](const crypto::PeerIdentity&) { return OkStatus(); };
  options.clock = &clock;
  OtherRelease handler(answer);
  const auto server = wire::FederationServer::Start(options, handler, nullptr);
  REQUIRE_MESSAGE(server.ok(), Message(server.status()));
  REQUIRE(federation.Start(TrainerOf(kSite)).ok());

  const StatusOr<int> code = federation.RunToExit(AgentOf(kSite));

  REQUIRE_MESSAGE(code.ok(), Message(code.status()));
  CHECK(handler.protocol_said == wire::kProtocolVersion);
  return {.code = *code,
          .said = federation.LastLine(AgentOf(kSite)),
          .connections = handler.connections,
          .messages_after_hello = handler.messages_after_hello};
}

void CheckTurnedAway(const Outcome& outcome, const std::string& code) {
  CAPTURE(outcome.said);
  CHECK(outcome.code == 3);
  CHECK(outcome.connections == 1);
  CHECK(outcome.messages_after_hello == 0);
  CHECK(outcome.said.find(code) != std::string::npos);
}

v1::Directive WelcomeOf(std::uint32_t protocol, std::uint32_t schema) {
  v1::Directive answer;
  answer.mutable_welcome()->set_protocol(protocol);
  answer.mutable_welcome()->set_policy_schema(schema);
  answer.mutable_welcome()->set_starts(1);
  return answer;
}

}  // namespace

TEST_CASE("Protocol version: a welcome in another version is not read, and the agent says both") {
  for (const std::uint32_t other : {0U, wire::kProtocolVersion + 1}) {
    CAPTURE(other);
    const Outcome outcome = Meet(WelcomeOf(other, policy::kPolicySchema));

    CheckTurnedAway(outcome, "PROTOCOL-VERSION");
    CHECK(outcome.said.find("speaks protocol version " + std::to_string(other) +
                            ", this agent speaks " + std::to_string(wire::kProtocolVersion)) !=
          std::string::npos);
  }
}

TEST_CASE("Protocol version: a welcome with another policy schema is not read either") {
  const Outcome outcome = Meet(WelcomeOf(wire::kProtocolVersion, policy::kPolicySchema + 1));

  CheckTurnedAway(outcome, "POLICY-SCHEMA-VERSION");
}

TEST_CASE("Protocol version: an aggregator that turns the agent away ends it with a sentence") {
  v1::Directive goodbye;
  v1::Refusal* refusal = goodbye.mutable_goodbye()->mutable_refusal();
  refusal->set_reason(static_cast<std::uint32_t>(policy::Reason::kProtocolVersion));
  refusal->set_limit(7);
  refusal->set_found(wire::kProtocolVersion);

  const Outcome outcome = Meet(goodbye);

  CheckTurnedAway(outcome, "PROTOCOL-VERSION");
  CHECK(outcome.said.find("This agent speaks " + std::to_string(wire::kProtocolVersion) +
                          ", the aggregator 7") != std::string::npos);
}

}  // namespace domicile::test

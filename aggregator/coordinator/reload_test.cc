// Policies that change while jobs run.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "aggregator/coordinator/testing.h"

namespace domicile::aggregator {
namespace {

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string Example(const std::string& name, int version) {
  return Replaced(Read(kExamples + name), "\nversion = 1\n",
                  "\nversion = " + std::to_string(version) + "\n");
}

std::string WithoutFact(std::string facts, const std::string& id) {
  const std::size_t begin = facts.rfind("[[fact]]", facts.find("id = \"" + id + "\""));
  REQUIRE(begin != std::string::npos);
  return facts.erase(begin, facts.find("[[fact]]", begin + 1) - begin);
}

// Ireland is no longer adequate for Switzerland.
std::string TighterFacts(int version) {
  return WithoutFact(Example("legal-facts.toml", version), "adequacy-ch-eea");
}

// The office takes no plain deltas.
std::string TighterPolicy(int version) {
  return Replaced(Example("aggregator.policy.toml", version), "\"delta.plain\", ", "");
}

// What all leaves of a type say under a key, in order.
std::vector<std::string> Said(const Federation& federation, audit::EventType type,
                              std::string_view key) {
  std::vector<std::string> found;
  for (const audit::Event& leaf : LeavesOf(federation, type)) {
    found.emplace_back(leaf.Text(key));
  }
  return found;
}

void ComeBack(Federation& federation, FakeSite& site) {
  federation.Rejoin(site);
  federation.Accept(site);
}

}  // namespace

TEST_CASE("Coordinator: tighter facts before the commit begin again without whom they exclude") {
  Federation federation;
  federation.SubmitAndAccept(Replaced(ShortJob(), "quorum = 4", "quorum = 3"));
  FakeSite& excluded = *federation.sites[3];  // at Zurich and Basel
  const SentUpdate old = federation.Update(*federation.sites[0], kDeltas[0], kWeights[0]);
  REQUIRE(federation.Send(federation.sites[0]->id, old) == policy::Reason::kNone);
  REQUIRE(federation.Send(excluded.id, federation.Update(excluded, kDeltas[3], kWeights[3])) ==
          policy::Reason::kNone);

  federation.WritePolicy(federation.Configuration().legal_facts, TighterFacts(2));
  REQUIRE(federation.coordinator->LookAtPolicies().ok());

  for (const auto& site : federation.sites) {
    CHECK(site->port->Ended() == policy::Reason::kPolicyDigestMismatch);
  }
  CHECK(Said(federation, audit::EventType::kPhaseAbandoned, "reason") ==
        std::vector<std::string>{"SUPERSEDED"});
  CHECK(Said(federation, audit::EventType::kOfferHeld, "reason") ==
        std::vector<std::string>(4, "POLICY-DIGEST-MISMATCH"));
  federation.Rejoin(excluded);  // and cannot accept any more
  for (const std::size_t i : {0, 1, 2}) {
    ComeBack(federation, *federation.sites[i]);
  }
  const auto* open = federation.sites[0]->port->Last<OpenMessage>();
  REQUIRE(open != nullptr);
  CHECK(open->epoch.attempt > old.head.epoch.attempt);
  CHECK(excluded.port->Last<OpenMessage>() == nullptr);
  // What was decided under the old facts is refused, also in the new epoch.
  SentUpdate again = old;
  again.head.epoch = open->epoch;
  again.head.instance = federation.sites[0]->instance;
  CHECK(federation.Send(federation.sites[0]->id, again) == policy::Reason::kPolicyDigestMismatch);
}

TEST_CASE("Coordinator: a site that says yes where the facts say no is refused at ingress") {
  Federation federation;
  federation.WritePolicy(federation.Configuration().legal_facts, TighterFacts(2));
  REQUIRE(federation.coordinator->LookAtPolicies().ok());
  for (const auto& site : federation.sites) {
    federation.Rejoin(*site);
  }
  federation.SubmitAndAccept();
  FakeSite& lax = *federation.sites[3];

  CHECK(federation.Send(lax.id, federation.Update(lax, kDeltas[3], kWeights[3])) ==
        policy::Reason::kEdpbUseCase6);
  CHECK(federation.Send(federation.sites[0]->id,
                        federation.Update(*federation.sites[0], kDeltas[0], kWeights[0])) ==
        policy::Reason::kNone);
}

TEST_CASE("Coordinator: what allows more waits, over a restart, and disturbs nobody meanwhile") {
  Federation federation;
  const std::string& file = federation.Configuration().aggregator_policy;
  federation.WritePolicy(file, TighterPolicy(2));
  REQUIRE(federation.coordinator->LookAtPolicies().ok());
  federation.Rejoin(*federation.sites[0]);

  federation.WritePolicy(file, Example("aggregator.policy.toml", 3));
  REQUIRE(federation.coordinator->LookAtPolicies().ok());
  CHECK(federation.sites[0]->port->Ended() == policy::Reason::kNone);
  REQUIRE(federation.coordinator->NextLook().has_value());
  const WallTime due = *federation.coordinator->NextLook();
  for (const auto& site : federation.sites) {
    ++site->instance;
  }
  federation.Restart();
  CHECK(federation.coordinator->NextLook() == due);
  CHECK(Said(federation, audit::EventType::kPolicyWaiting, "source") ==
        std::vector<std::string>{"aggregator"});

  federation.Advance(contracts::kDefaultCooldown);
  REQUIRE(federation.coordinator->LookAtPolicies().ok());
  CHECK_FALSE(federation.coordinator->NextLook().has_value());
  CHECK(federation.sites[0]->port->Ended() == policy::Reason::kPolicyDigestMismatch);
}

TEST_CASE("Coordinator: an older or unreadable file changes nothing, and the log says so") {
  Federation federation;
  const std::string& file = federation.Configuration().aggregator_policy;
  federation.WritePolicy(file, TighterPolicy(3));
  REQUIRE(federation.coordinator->LookAtPolicies().ok());
  federation.Rejoin(*federation.sites[0]);
  for (const std::string& text : {TighterPolicy(2), std::string("[policy]\n")}) {
    federation.WritePolicy(file, text);
    REQUIRE(federation.coordinator->LookAtPolicies().ok());
  }

  CHECK(federation.sites[0]->port->Ended() == policy::Reason::kNone);
  CHECK(Said(federation, audit::EventType::kPolicyRefused, "reason") ==
        std::vector<std::string>{"POLICY-ROLLBACK", "RULE-INVALID"});
}

}  // namespace domicile::aggregator

// Who may connect at all, and who is shown what.
#include <doctest/doctest.h>

#include "aggregator/coordinator/coordinator.h"
#include "aggregator/coordinator/testing.h"
#include "policy/language/parse.h"
#include "policy/language/statement.h"

namespace domicile::aggregator {
namespace {

// The statement of a site's example policy, after a change.
std::string StatementOf(const FakeSite& site, void (*change)(policy::Policy&)) {
  const std::string file = kExamples + "site." + site.id.text() + ".policy.toml";
  policy::Policy policy =
      policy::ParsePolicy(Read(file), file, policy::PolicySource::kSite).value();
  change(policy);
  return policy::StatementText(policy);
}

policy::Reason Greet(Federation& federation, FakeSite& site, const SiteHello& hello) {
  const auto answer = federation.coordinator->Connect(site.identity.certificate, hello, site.port);
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal == nullptr ? policy::Reason::kNone : refusal->reason;
}

TEST_CASE(
    "Coordinator: a site whose policies refuse this aggregator, or whose clock is off, goes") {
  Federation federation;
  FakeSite& site = *federation.sites[1];

  SiteHello timeless = site.Hello(2);
  timeless.sent_unix_ms = 0;
  CHECK(Greet(federation, site, timeless) == policy::Reason::kClock);
  SiteHello late = site.Hello(2);
  late.sent_unix_ms -= 31'000;
  CHECK(Greet(federation, site, late) == policy::Reason::kClock);
  SiteHello elsewhere = site.Hello(2);
  elsewhere.policy_statement = StatementOf(site, [](policy::Policy& policy) {
    policy.rules[0].aggregator_locations = {*policy::Area::Parse("EEA")};
    policy.rules[0].deny_locations = {*policy::Area::Parse("IE")};
  });
  CHECK(Greet(federation, site, elsewhere) == policy::Reason::kForbidden);
  SiteHello attested = site.Hello(2);
  attested.policy_statement = StatementOf(site, [](policy::Policy& policy) {
    policy.rules[0].evidence = policy::LocationEvidence::kAttested;
  });
  CHECK(Greet(federation, site, attested) == policy::Reason::kLocationEvidence);
  CHECK(Greet(federation, site, site.Hello(2)) == policy::Reason::kNone);
}

TEST_CASE(
    "Coordinator: metrics are shown to whom every contributor's policy names, and to no other") {
  Federation federation;
  federation.SubmitAndAccept();
  for (std::size_t i = 0; i < 4; ++i) {
    FakeSite& site = *federation.sites[i];
    REQUIRE(federation.Send(site.id, federation.Update(site, kDeltas[i], kWeights[i])) ==
            policy::Reason::kNone);
  }
  const JobView shown = *federation.coordinator->Show("alice", federation.job);
  CHECK(shown.rounds_committed == 1);
  CHECK(shown.metrics.size() == 1);
  CHECK(shown.metrics_withheld == policy::Reason::kNone);
  // Looked at twice: nothing new is shown, and nothing is shown that was not asked for.
  CHECK(federation.coordinator
            ->WaitForChange("alice", federation.job, shown.change, std::chrono::milliseconds(0))
            ->metrics.empty());
  CHECK(federation.coordinator->List().front().metrics.empty());

  FakeSite& site = *federation.sites[2];
  SiteHello stricter = site.Hello(2);
  stricter.policy_statement = StatementOf(site, [](policy::Policy& policy) {
    policy.rules[0].recipients = {{"sites", "operator/bob"}};
  });
  REQUIRE(Greet(federation, site, stricter) == policy::Reason::kNone);

  const JobView withheld = *federation.coordinator->Show("alice", federation.job);
  CHECK(withheld.metrics.empty());
  CHECK(withheld.metrics_withheld == policy::Reason::kRecipient);
  CHECK(withheld.rounds_committed == 1);
  CHECK(federation.coordinator->Show("bob", federation.job)->metrics.size() == 1);
}

}  // namespace
}  // namespace domicile::aggregator

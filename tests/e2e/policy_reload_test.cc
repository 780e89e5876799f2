// SIGHUP: the programs look at their policy files again, also at one that was put in the place of
// another, in a folder with other things in it.
#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "tests/support/federation_processes.h"

namespace domicile::test {
namespace {

// Puts a next version there, which nobody has signed.
void PutUnsigned(const std::string& file) {
  StatusOr<std::string> text = ReadFile(file, 1U << 20U);
  REQUIRE_MESSAGE(text.ok(), Message(text.status()));
  const std::size_t at = text->find("\nversion = 1\n");
  REQUIRE(at != std::string::npos);
  text->replace(at, 13, "\nversion = 2\n");
  REQUIRE(WriteFileDurably(file, AsBytes(*text)).ok());
}

}  // namespace

TEST_CASE("Policy reload: a file that nobody signed is refused by both programs, which go on") {
  auto made = FederationProcesses::Create({.rounds = 1});
  REQUIRE_MESSAGE(made.ok(), Message(made.status()));
  FederationProcesses& federation = **made;
  const Status started = federation.StartAll();
  REQUIRE_MESSAGE(started.ok(), Message(started));
  const std::string site = cli::HeartSites().front().name;
  const std::string own = federation.Folders().Path("sites/" + site + "/site.policy.toml");
  REQUIRE(WriteFileDurably(own + ".notes", AsBytes("beside the policies")).ok());
  PutUnsigned(own);
  PutUnsigned(federation.Folders().Path("aggregator/aggregator.policy.toml"));

  for (const auto& [program, party] :
       {std::pair(AgentOf(site), site), {std::string(kAggregator), std::string(kAggregator)}}) {
    CAPTURE(program);
    federation.Reload(program);
    LogWatch log(federation.LogOf(party));
    const auto refused = log.WaitFor([](const audit::Leaf& leaf) {
      return leaf.event.type() == audit::EventType::kPolicyRefused;
    });
    REQUIRE_MESSAGE(refused.ok(), Message(refused.status()));
    CHECK(refused->event.Text("reason") == "POLICY-SIGNATURE");
  }
  const StatusOr<JobId> job = federation.SubmitAndApprove();
  REQUIRE_MESSAGE(job.ok(), Message(job.status()));
  CHECK(federation.WaitForEnd(*job)->event.Text("state") == "done");
}

}  // namespace domicile::test

// A job whose sites end their rounds by themselves, over the real programs.
#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "tests/support/federation_processes.h"

namespace domicile::test {
namespace {

constexpr std::uint64_t kLargest = 1U << 20U;

void Change(const std::string& file, std::string_view from, std::string_view to) {
  StatusOr<std::string> text = ReadFile(file, kLargest);
  REQUIRE_MESSAGE(text.ok(), Message(text.status()));
  const std::size_t at = text->find(from);
  CAPTURE(from);
  REQUIRE(at != std::string::npos);
  text->replace(at, from.size(), to);
  REQUIRE(WriteFileDurably(file, AsBytes(*text)).ok());
}

std::size_t Times(const std::string& text, std::string_view words) {
  std::size_t times = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    ++times;
  }
  return times;
}

}  // namespace

TEST_CASE("Early stopping: every site ends its rounds by itself, and the job is done") {
  constexpr std::uint32_t kRounds = 2;
  auto made = FederationProcesses::Create({.rounds = kRounds});
  REQUIRE_MESSAGE(made.ok(), Message(made.status()));
  FederationProcesses& federation = **made;
  const cli::DemoFederation& folders = federation.Folders();
  Change(folders.JobFile(), "local_steps = 10\n", "local_epochs = 50\n");
  Change(folders.JobFile(), "[normalisation]",
         "[training.early_stopping]\npatience = 2\nmin_improvement = 0.01\n"
         "validation_share = 0.2\n[normalisation]");
  // The sites of the example want ten steps behind what they send; such a job promises one.
  for (const cli::DemoSite& site : folders.Case().sites) {
    Change(folders.SitePath(site, "site.policy.toml"), "min_local_steps = 10",
           "min_local_steps = 1");
    REQUIRE(folders.SignPolicies(site).ok());
  }
  const Status started = federation.StartAll();
  REQUIRE_MESSAGE(started.ok(), Message(started));

  const StatusOr<JobId> job = federation.SubmitAndApprove();
  REQUIRE_MESSAGE(job.ok(), Message(job.status()));
  const StatusOr<audit::Leaf> ended = federation.WaitForEnd(*job);
  REQUIRE_MESSAGE(ended.ok(), Message(ended.status()));

  CHECK(ended->event.Text("state") == "done");
  for (const cli::DemoSite& site : folders.Case().sites) {
    CAPTURE(site.name);
    const std::string said =
        ReadFile(folders.SitePath(site, "trainer/output.log"), kLargest).value_or("");
    CAPTURE(said);
    CHECK(Times(said, "training ended after epoch ") == kRounds);
    CHECK(Times(said, "training ended after epoch 50 of 50") == 0);
    CHECK(Times(said, "no checkpoint") == 0);
    // What it saw of its rows held out stays with the trainer.
    CHECK(Times(federation.Output(AgentOf(site.name)), "training ended") == 0);
  }
  const Status told =
      federation.WaitForOutcomes({.job = *job, .round = kRounds, .phase = "evaluate", .epoch = {}});
  CHECK_MESSAGE(told.ok(), Message(told));
  federation.StopAll();
  const Status checked = federation.CheckLogs();
  CHECK_MESSAGE(checked.ok(), Message(checked));
}

TEST_CASE("Early stopping: a site that wants ten steps behind what it sends takes no part") {
  auto made = FederationProcesses::Create({.rounds = 1});
  REQUIRE_MESSAGE(made.ok(), Message(made.status()));
  FederationProcesses& federation = **made;
  Change(federation.Folders().JobFile(), "local_steps = 10\n", "local_epochs = 50\n");
  Change(federation.Folders().JobFile(), "[normalisation]",
         "[training.early_stopping]\npatience = 2\n[normalisation]");
  const Status started = federation.StartAll();
  REQUIRE_MESSAGE(started.ok(), Message(started));
  const StatusOr<JobId> job = federation.Submit();
  REQUIRE_MESSAGE(job.ok(), Message(job.status()));

  LogWatch log(federation.LogOf(cli::HeartSites().front().name));
  const auto decided = log.WaitFor([](const audit::Leaf& leaf) {
    return leaf.event.type() == audit::EventType::kOfferDeclined;
  });

  REQUIRE_MESSAGE(decided.ok(), Message(decided.status()));
  CHECK(decided->event.Text("reason") == "LOCAL-STEPS");
}

}  // namespace domicile::test

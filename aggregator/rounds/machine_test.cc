#include "aggregator/rounds/machine.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "aggregator/rounds/testing.h"

namespace domicile::aggregator {
namespace {

using policy::Reason;
using testing::Driver;
using testing::Fill;
using testing::Site;
using testing::TrainRules;

constexpr PhaseKey kFirst = {1, PhaseKind::kTrain};

std::vector<std::string> Names(const std::vector<Contributor>& contributors) {
  std::vector<std::string> names;
  for (const Contributor& contributor : contributors) {
    names.push_back(contributor.site.text());
  }
  return names;
}

std::vector<std::string> Names(const std::vector<SiteId>& sites) {
  std::vector<std::string> names;
  for (const SiteId& site : sites) {
    names.push_back(site.text());
  }
  return names;
}

using List = std::vector<std::string>;

TEST_CASE("Start: when the quorum has accepted and no connected site owes an answer") {
  Driver job(TrainRules(1, 2));
  CHECK(job.Find<ArmStart>()->after == std::chrono::seconds(60));
  job.Connect("a");
  CHECK(job.actions == std::vector<Action>{OfferTo{Site("a")}});
  job.Connect("b");
  job.Connect("c");
  job.Accept("a");
  job.Accept("b");
  CHECK(job.state.stage == JobStage::kWaiting);  // c owes an answer
  job.Refuse("c", Answer::kHold);
  CHECK(job.state.stage == JobStage::kWaiting);  // c holds
  job.Refuse("c");
  REQUIRE(job.state.stage == JobStage::kRunning);
  CHECK(job.actions == std::vector<Action>{OpenPhase{.key = kFirst,
                                                     .epoch = {1, 1},
                                                     .participants = {Site("a"), Site("b")},
                                                     .floor = 2,
                                                     .model = Fill(100),
                                                     .deadline = std::chrono::seconds(10)},
                                           ArmDeadline{kFirst, {1, 1}, std::chrono::seconds(10)}});
}

TEST_CASE("Start: a holding site that leaves is not waited for") {
  Driver job(TrainRules(1, 2));
  job.Connect("c");
  job.Refuse("c", Answer::kHold);
  job.Join({"a", "b"});
  CHECK(job.state.stage == JobStage::kWaiting);
  job.Do(SiteDisconnected{Site("c")});
  CHECK(job.state.stage == JobStage::kRunning);
}

TEST_CASE("Start: once the time is over, as soon as the quorum is there") {
  Driver job(TrainRules(1, 2));
  job.Connect("c");
  job.Join({"a"});
  job.Do(StartDue{});
  CHECK(job.state.stage == JobStage::kWaiting);
  job.Join({"b"});
  REQUIRE(job.state.stage == JobStage::kRunning);
  CHECK(Names(job.Find<OpenPhase>()->participants) == List{"a", "b"});
}

TEST_CASE("Start: sites of one organisation are one toward the quorum") {
  Driver job(TrainRules(1, 2));
  for (const char* const site : {"a", "b", "c"}) {
    job.Connect(site);
  }
  job.Accept("a", 0, "org-1");
  job.Accept("b", 0, "org-1");
  job.Refuse("c");
  CHECK(job.state.stage == JobStage::kWaiting);
  job.Accept("c", 0, "org-2");
  REQUIRE(job.state.stage == JobStage::kRunning);
  CHECK(job.Find<OpenPhase>()->floor == 2);
  job.Receive("a", 1);
  job.Receive("b", 2);
  job.PassDeadline();
  CHECK(job.Find<AbandonPhase>()->reason == Reason::kBelowFloor);
}

TEST_CASE("Floor: the greatest minimum of the participants") {
  Driver job(TrainRules(1, 2));
  for (const char* const site : {"a", "b", "c"}) {
    job.Connect(site);
  }
  job.Accept("a", 3);
  job.Accept("b");
  job.Accept("c");
  CHECK(job.Find<OpenPhase>()->floor == 3);
  job.Receive("a", 1);
  job.Receive("b", 2);
  job.PassDeadline();
  CHECK(job.Find<AbandonPhase>()->reason == Reason::kBelowFloor);
}

TEST_CASE("Floor: a site whose minimum cannot be met is left out, and the others go on") {
  Driver job(TrainRules(1, 2));
  for (const char* const site : {"a", "b", "c"}) {
    job.Connect(site);
  }
  job.Accept("a", 5);
  job.Accept("b", 2);
  job.Accept("c", 2);
  REQUIRE(job.state.stage == JobStage::kRunning);
  CHECK(Names(job.Find<OpenPhase>()->participants) == List{"b", "c"});
  CHECK(job.Find<OpenPhase>()->floor == 2);
  CHECK(job.state.sites.at(Site("a")).reason == Reason::kMinContributors);
}

TEST_CASE("Cohort: never larger than the sum has room for, organisations first") {
  JobRules rules = TrainRules(1, 2);
  rules.max_sites = 2;
  Driver job(rules);
  for (const char* const site : {"a", "b", "c"}) {
    job.Connect(site);
  }
  job.Accept("a", 0, "org-1");
  job.Accept("b", 0, "org-1");
  job.Accept("c", 0, "org-2");
  REQUIRE(job.state.stage == JobStage::kRunning);
  CHECK(Names(job.Find<OpenPhase>()->participants) == List{"a", "c"});
  CHECK(job.state.sites.at(Site("b")).reason == Reason::kBusy);
}

TEST_CASE("Close: at once when every participant has answered") {
  Driver job(TrainRules(2, 2));
  job.Join({"a", "b", "c"});
  job.Receive("b", 2, 20);
  job.DeclinePhase("c", Reason::kTrainerFailed);
  CHECK(job.actions.empty());
  job.Receive("a", 1, 10);
  REQUIRE(job.Find<CommitPhase>() != nullptr);
  CHECK(job.Find<CommitPhase>()->contributors ==
        std::vector<Contributor>{{Site("a"), Fill(1), 10, 1}, {Site("b"), Fill(2), 20, 2}});
  job.Commit(101);
  CHECK(job.state.rounds_committed == 1);
  CHECK(job.Find<OpenPhase>()->key == PhaseKey{2, PhaseKind::kTrain});
  CHECK(job.Find<OpenPhase>()->model == Fill(101));
  CHECK(Names(job.Find<OpenPhase>()->participants) == List{"a", "b", "c"});
}

TEST_CASE(
    "Close: a site that dies is waited for until the deadline, then the round goes on (C19)") {
  Driver job(TrainRules(2, 2));
  job.Join({"a", "b", "c"});
  job.Receive("a", 1);
  job.Receive("b", 2);
  job.Do(SiteDisconnected{Site("c")});
  CHECK(job.actions.empty());
  job.PassDeadline();
  REQUIRE(job.Find<CommitPhase>() != nullptr);
  CHECK(Names(job.Find<CommitPhase>()->contributors) == List{"a", "b"});

  SUBCASE("back before the next round opens, it takes part") {
    job.Connect("c");
    CHECK(job.Find<RepeatOpen>() == nullptr);
    job.Do(PhaseCommitted{
        kFirst, {1, 1}, {{Site("a"), Fill(1), 1, 1}, {Site("b"), Fill(2), 1, 2}}, Fill(101)});
    CHECK(Names(job.Find<OpenPhase>()->participants) == List{"a", "b", "c"});
  }
  SUBCASE("back later, it joins from the round after") {
    job.Commit(101);
    CHECK(Names(job.Find<OpenPhase>()->participants) == List{"a", "b"});
  }
}

TEST_CASE("Close: a participant that comes back before the deadline is told again and counts") {
  Driver job(TrainRules(1, 2));
  job.Join({"a", "b"});
  job.Do(SiteDisconnected{Site("b")});
  job.Connect("b");
  CHECK(job.actions == std::vector<Action>{OfferTo{Site("b")}, RepeatOpen{Site("b")}});
  job.Receive("b", 2);
  job.Do(SiteDisconnected{Site("b")});
  job.Connect("b");
  CHECK(job.Find<RepeatOpen>() == nullptr);  // it has answered
  job.Receive("a", 1);
  CHECK(job.Find<CommitPhase>() != nullptr);
}

TEST_CASE("Attempts: below the floor the phase is tried again, then the job fails (C19)") {
  Driver job(TrainRules(1, 3, 2));
  job.Join({"a", "b", "c"});
  job.Receive("a", 1);
  job.Receive("b", 2);
  job.PassDeadline();
  CHECK(job.Find<AbandonPhase>()->reason == Reason::kBelowFloor);
  REQUIRE(job.Find<OpenPhase>() != nullptr);
  CHECK(job.Find<OpenPhase>()->epoch == Epoch{1, 2});
  CHECK(job.state.known_digests.size() == 2);
  job.PassDeadline();
  CHECK(job.Find<EndJob>()->stage == JobStage::kFailed);
  CHECK(job.Find<EndJob>()->reason == Reason::kBelowFloor);
  CHECK(job.state.model == Fill(100));
}

TEST_CASE("Attempts: when all sites are gone the job ends by itself (C19)") {
  Driver job(TrainRules(3, 2, 3));
  job.Join({"a", "b"});
  job.Do(SiteDisconnected{Site("a")});
  job.Do(SiteDisconnected{Site("b")});
  job.PassDeadline();
  CHECK(job.Find<AbandonPhase>()->reason == Reason::kBelowFloor);
  CHECK(job.Find<OpenPhase>() == nullptr);  // nobody to open it for
  CHECK(job.Find<ArmDeadline>() != nullptr);
  job.PassDeadline();
  CHECK(job.Find<AbandonPhase>() == nullptr);  // was never opened
  job.PassDeadline();
  CHECK(job.Find<EndJob>()->reason == Reason::kTooFewSites);
}

TEST_CASE("Attempts: a phase that gathers sites opens as soon as it can, in an epoch of its own") {
  Driver job(TrainRules(1, 2, 3));
  job.Join({"a", "b"});
  job.Do(SiteDisconnected{Site("b")});
  job.PassDeadline();
  REQUIRE(job.state.current->step == CurrentPhase::Step::kGathering);
  const Epoch gathering = job.state.current->epoch;
  job.Connect("b");
  REQUIRE(job.Find<OpenPhase>() != nullptr);
  CHECK(job.Find<OpenPhase>()->epoch > gathering);
  CHECK(job.Do(DeadlinePassed{kFirst, gathering}).empty());  // of the waiting
  CHECK(job.state.current->step == CurrentPhase::Step::kOpen);
}

TEST_CASE("Attempts: a result that cannot be published abandons the attempt") {
  Driver job(TrainRules(1, 1, 2));
  job.Join({"a"});
  job.Receive("a", 1);
  const PhaseFailed failed = {kFirst, {1, 1}, Reason::kResultNotFinite};
  job.Do(failed);
  CHECK(job.Find<AbandonPhase>()->reason == Reason::kResultNotFinite);
  CHECK(job.Do(failed).empty());  // of the old epoch
  job.Receive("a", 1);
  job.Do(PhaseFailed{kFirst, {1, 2}, Reason::kResultNotFinite});
  CHECK(job.Find<EndJob>()->reason == Reason::kResultNotFinite);
  CHECK(job.state.model == Fill(100));
}

TEST_CASE("No examples: not counted at one site; at all sites the attempt fails (C13)") {
  Driver job(TrainRules(1, 1, 1));
  job.Join({"a", "b"});
  SUBCASE("one site") {
    job.DeclinePhase("b", Reason::kNoExamples);
    job.Receive("a", 1);
    CHECK(Names(job.Find<CommitPhase>()->contributors) == List{"a"});
  }
  SUBCASE("all sites") {
    job.DeclinePhase("b", Reason::kNoExamples);
    job.DeclinePhase("a", Reason::kNoExamples);
    CHECK(job.Find<AbandonPhase>()->reason == Reason::kNoExamplesAnywhere);
    CHECK(job.Find<EndJob>()->reason == Reason::kNoExamplesAnywhere);
    CHECK(job.state.sites.at(Site("a")).reason == Reason::kNoExamples);
  }
}

TEST_CASE("Decline: why a site gave nothing is known until it is asked again") {
  Driver job(TrainRules(2, 1));
  job.Join({"a", "b"});
  job.DeclinePhase("b", Reason::kNotFinite);
  CHECK(job.state.sites.at(Site("b")).reason == Reason::kNotFinite);
  SUBCASE("in the next round") {
    job.Receive("a", 1);
    job.Commit(101);
    REQUIRE(job.Find<OpenPhase>() != nullptr);
  }
  SUBCASE("after a restart") { job.Do(AggregatorStarted{2}); }
  CHECK(job.state.sites.at(Site("b")).reason == Reason::kNone);
}

JobRules StatisticsRules() {
  JobRules rules = TrainRules(2, 2, 3);
  rules.rounds[0] = {PhaseKind::kStatistics, PhaseKind::kTrain};
  rules.rounds[1] = {PhaseKind::kTrain, PhaseKind::kEvaluate};
  return rules;
}

TEST_CASE("Statistics: commit with all participants or not at all, and keep the cohort") {
  Driver job(StatisticsRules());
  job.Join({"a", "b", "c"});
  job.Receive("a", 1);
  job.Receive("b", 2);
  job.Join({"d"});  // too late for this question
  job.PassDeadline();
  CHECK(job.Find<AbandonPhase>()->reason == Reason::kPhaseIncomplete);
  CHECK(Names(job.Find<OpenPhase>()->participants) == List{"a", "b", "c"});
  job.Receive("a", 1);
  job.Receive("b", 2);
  job.Receive("c", 3);
  REQUIRE(job.Find<CommitPhase>() != nullptr);
  job.Commit(101);
  // The cohort of the round stays for its next phase.
  CHECK(job.Find<OpenPhase>()->key == PhaseKey{1, PhaseKind::kTrain});
  CHECK(Names(job.Find<OpenPhase>()->participants) == List{"a", "b", "c"});
  CHECK(job.state.known_digests.empty());
}

TEST_CASE("Statistics: a site without examples may be missing, any other may not") {
  Driver job(StatisticsRules());
  job.Join({"a", "b", "c"});
  job.Receive("a", 1);
  job.Receive("b", 2);
  SUBCASE("no examples") {
    job.DeclinePhase("c", Reason::kNoExamples);
    CHECK(Names(job.Find<CommitPhase>()->contributors) == List{"a", "b"});
  }
  SUBCASE("another reason") {
    job.DeclinePhase("c", Reason::kStatDifference);
    CHECK(job.Find<AbandonPhase>()->reason == Reason::kPhaseIncomplete);
  }
}

TEST_CASE("Job: ends when the last phase of the last round is committed") {
  Driver job(StatisticsRules());
  job.Join({"a", "b"});
  for (const int model : {101, 102, 103}) {
    job.Receive("a", 1);
    job.Receive("b", 2);
    job.Commit(static_cast<std::uint8_t>(model));
  }
  CHECK(job.Find<OpenPhase>()->key == PhaseKey{2, PhaseKind::kEvaluate});
  job.Receive("a", 1);
  job.Receive("b", 2);
  job.Commit(0);  // evaluate makes no model
  CHECK(job.actions == std::vector<Action>{EndJob{JobStage::kDone, Reason::kNone}});
  CHECK(job.state.model == Fill(103));
  CHECK(job.Do(SiteConnected{Site("z")}).empty());
}

TEST_CASE("Restart: the same phase opens in a new epoch with an empty sum") {
  Driver job(TrainRules(1, 2, 2));
  job.Join({"a", "b", "c"});
  job.Receive("a", 1);
  job.Do(AggregatorStarted{2});
  CHECK(job.actions ==
        std::vector<Action>{OpenPhase{.key = kFirst,
                                      .epoch = {2, 1},
                                      .participants = {Site("a"), Site("b"), Site("c")},
                                      .floor = 2,
                                      .model = Fill(100),
                                      .deadline = std::chrono::seconds(10)},
                            ArmDeadline{kFirst, {2, 1}, std::chrono::seconds(10)}});
  job.Connect("a");
  CHECK(job.Find<RepeatOpen>() != nullptr);
  job.Receive("a", 9);  // other bytes than before the restart
  CHECK_FALSE(job.state.current->participants.at(Site("a")).received);
  job.Receive("a", 1);
  CHECK(job.state.current->participants.at(Site("a")).received);
  job.Receive("b", 2);
  job.Receive("c", 3);
  CHECK(job.Find<CommitPhase>()->epoch == Epoch{2, 1});
  CHECK(job.Do(AggregatorStarted{2}).empty());  // no new start
}

TEST_CASE("Restart: the wait goes on from where it was, and never begins anew") {
  struct Case {
    const char* name;
    std::chrono::seconds waited;
    std::chrono::seconds left;
  };
  constexpr Case kCases[] = {
      {"a part has passed", std::chrono::seconds(4), std::chrono::seconds(6)},
      {"all of it", std::chrono::seconds(10), std::chrono::seconds(0)},
      {"more", std::chrono::seconds(99), std::chrono::seconds(0)}};
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    Driver open(TrainRules(1, 2, 2));
    open.Join({"a", "b", "c"});
    open.Do(AggregatorStarted{.starts = 2, .waited = c.waited});
    CHECK(open.Find<ArmDeadline>()->after == c.left);
    CHECK(open.Find<OpenPhase>()->deadline == c.left);
    // The next attempt has a whole deadline again.
    open.PassDeadline();
    CHECK(open.Find<ArmDeadline>()->after == std::chrono::seconds(10));

    Driver gathering(TrainRules(2, 2, 2));
    gathering.Join({"a", "b"});
    gathering.Do(SiteDisconnected{Site("b")});
    gathering.PassDeadline();  // below the floor: the next attempt waits for sites
    REQUIRE(gathering.Find<OpenPhase>() == nullptr);
    gathering.Do(AggregatorStarted{.starts = 2, .waited = c.waited});
    CHECK(gathering.Find<ArmDeadline>()->after == c.left);
  }
}

TEST_CASE("Restart: while closing, the commit of the old epoch does not fit any more") {
  Driver job(TrainRules(1, 1));
  job.Join({"a"});
  job.Receive("a", 1);
  const CommitPhase commit = *job.Find<CommitPhase>();
  job.Do(AggregatorStarted{2});
  const JobState before = job.state;
  CHECK(job.Do(PhaseCommitted{commit.key, commit.epoch, commit.contributors, Fill(101)}).empty());
  CHECK(job.state == before);
}

TEST_CASE("Restart: while waiting, the time to start runs again; failed attempts are kept") {
  Driver job(TrainRules(1, 2, 2));
  job.Do(AggregatorStarted{2});
  CHECK(job.Find<ArmStart>() != nullptr);
  job.Join({"a", "b"});
  job.PassDeadline();
  job.Do(AggregatorStarted{3});
  CHECK(job.state.failed_attempts == 1);
  job.PassDeadline();
  CHECK(job.Find<EndJob>()->stage == JobStage::kFailed);
}

TEST_CASE("Withdrawal: before its update is in, it is a decline; after, a new epoch without it") {
  Driver job(TrainRules(1, 2, 2));
  job.Join({"a", "b", "c"});
  SUBCASE("before") {
    job.Refuse("c");
    CHECK(job.Find<AbandonPhase>() == nullptr);
    job.Receive("a", 1);
    job.Receive("b", 2);
    CHECK(Names(job.Find<CommitPhase>()->contributors) == List{"a", "b"});
  }
  SUBCASE("after") {
    job.Receive("c", 3);
    job.Refuse("c");
    CHECK(job.Find<AbandonPhase>()->reason == Reason::kSuperseded);
    CHECK(Names(job.Find<OpenPhase>()->participants) == List{"a", "b"});
  }
  SUBCASE("once closing, what was decided is committed") {
    job.Receive("a", 1);
    job.Receive("b", 2);
    job.Receive("c", 3);
    job.actions.clear();
    job.Refuse("c");
    CHECK(job.actions.empty());
    CHECK(job.state.current->step == CurrentPhase::Step::kClosing);
  }
}

TEST_CASE("Withdrawal: a tighter answer begins the attempt again, the same answer does not") {
  Driver job(TrainRules(1, 2, 2));
  job.Join({"a", "b", "c"});
  job.Receive("a", 1);
  SUBCASE("the same") {
    job.Accept("b");
    CHECK(job.actions.empty());
  }
  SUBCASE("a minimum that the floor meets") {
    job.Accept("b", 2);
    CHECK(job.actions.empty());
  }
  SUBCASE("a larger minimum") {
    job.Accept("b", 3);
    CHECK(job.Find<AbandonPhase>()->reason == Reason::kSuperseded);
    CHECK(job.Find<OpenPhase>()->floor == 3);
  }
  SUBCASE("another policy") {
    job.Accept("b", 0, {}, 2);
    CHECK(job.Find<AbandonPhase>()->reason == Reason::kSuperseded);
  }
}

TEST_CASE("Policies that change: one attempt at most, and a site comes back by accepting again") {
  Driver job(TrainRules(1, 2));
  job.Join({"a", "b", "c"});
  job.Receive("a", 1);
  job.Receive("b", 2);

  job.Do(AnswersWithdrawn{{Site("a"), Site("b"), Site("c"), Site("d")},
                          Reason::kPolicyDigestMismatch});

  REQUIRE(job.Find<AbandonPhase>() != nullptr);
  CHECK(job.Find<AbandonPhase>()->reason == Reason::kSuperseded);
  CHECK(job.state.failed_attempts == 1);
  CHECK(job.state.current->step == CurrentPhase::Step::kGathering);
  CHECK_FALSE(job.state.sites.contains(Site("d")));
  job.Accept("c", 0, {}, 2);
  job.Accept("a", 0, {}, 2);
  REQUIRE(job.Find<OpenPhase>() != nullptr);
  CHECK(Names(job.Find<OpenPhase>()->participants) == List{"a", "c"});  // b is excluded now
}

TEST_CASE("Policies that change: what is not in the sum is only not waited for") {
  Driver job(TrainRules(1, 2));
  job.Join({"a", "b", "c"});
  job.Receive("a", 1);
  job.Receive("b", 2);
  job.Do(AnswersWithdrawn{{Site("c")}, Reason::kPolicyDigestMismatch});
  REQUIRE(job.Find<CommitPhase>() != nullptr);
  CHECK(job.Find<CommitPhase>()->contributors.size() == 2);

  job.Do(AnswersWithdrawn{{Site("a")}, Reason::kPolicyDigestMismatch});
  CHECK(job.actions.empty());  // closing: what was decided is committed
}

TEST_CASE("Cancel: ends a job in any stage, and an open phase with it") {
  Driver waiting(TrainRules(1, 2));
  waiting.Do(Cancelled{});
  CHECK(waiting.actions == std::vector<Action>{EndJob{JobStage::kCancelled, Reason::kCancelled}});

  Driver running(TrainRules(1, 2));
  running.Join({"a", "b"});
  running.Do(Cancelled{});
  CHECK(running.actions == std::vector<Action>{AbandonPhase{kFirst, {1, 1}, Reason::kCancelled},
                                               EndJob{JobStage::kCancelled, Reason::kCancelled}});
  CHECK(running.Do(Cancelled{}).empty());
}

TEST_CASE("Step: events that do not fit change nothing") {
  Driver job(TrainRules(2, 2));
  job.Join({"a", "b"});
  job.Receive("a", 1);
  const JobState before = job.state;
  const Event events[] = {
      Submitted{.starts = 1, .model = Fill(1)},
      DeadlinePassed{kFirst, {1, 2}},
      DeadlinePassed{{2, PhaseKind::kTrain}, {1, 1}},
      UpdateReceived{Site("a"), kFirst, {1, 1}, Fill(1), 1, 1},  // has answered
      UpdateReceived{Site("z"), kFirst, {1, 1}, Fill(1), 1, 1},  // no participant
      UpdateReceived{Site("b"), kFirst, {1, 2}, Fill(2), 1, 1},  // of another epoch
      UpdateReceived{Site("b"), kFirst, {1, 1}, Fill(2), 0, 1},  // without weight
      UpdateReceived{Site("b"), kFirst, {1, 1}, Digest{}, 1, 1},
      PhaseDeclined{Site("a"), kFirst, {1, 1}, Reason::kTrainerFailed},  // has answered
      PhaseDeclined{Site("b"), kFirst, {2, 1}, Reason::kTrainerFailed},
      PhaseCommitted{kFirst, {1, 1}, {{Site("a"), Fill(1), 1, 1}}, Fill(101)},  // not asked for
      PhaseFailed{kFirst, {1, 1}, Reason::kResultNotFinite},
      SiteDisconnected{Site("z")},
      AggregatorStarted{1},
  };
  for (const Event& event : events) {
    CAPTURE(event.index());
    CHECK(job.Do(event).empty());
    CHECK(job.state == before);
  }
}

TEST_CASE("Step: nothing happens to a job that was not submitted") {
  JobState state(TrainRules(1, 1));
  CHECK(Step(state, SiteConnected{Site("a")}).empty());
  CHECK(Step(state, Cancelled{}).empty());
  CHECK(state == JobState(TrainRules(1, 1)));
}

TEST_CASE("Commit: contributors that were not asked for are not committed") {
  Driver job(TrainRules(1, 1));
  job.Join({"a", "b"});
  job.Receive("a", 1);
  job.Receive("b", 2);
  const JobState before = job.state;
  CHECK(job.Do(PhaseCommitted{kFirst, {1, 1}, {{Site("a"), Fill(1), 1, 1}}, Fill(101)}).empty());
  CHECK(job.state == before);
}

}  // namespace
}  // namespace domicile::aggregator

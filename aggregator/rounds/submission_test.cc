#include "aggregator/rounds/submission.h"

#include <map>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "aggregator/rounds/testing.h"
#include "base/file.h"

namespace domicile::aggregator {
namespace {

using policy::Reason;
using testing::Driver;
using testing::Fill;
using testing::Site;
using testing::TrainRules;

nlohmann::json Golden(const std::string& name) {
  const auto text =
      ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/tests/golden/cases/" + name, 1U << 16U);
  REQUIRE(text.ok());
  return nlohmann::json::parse(*text);
}

SubmissionHeader Header(const Driver& job, std::uint8_t digest) {
  return {.key = job.state.current->key,
          .epoch = job.state.current->epoch,
          .digest = Fill(digest),
          .base_model = job.state.current->model};
}

TEST_CASE("CheckSubmission: stale, early, missing and wrong updates are told apart (C17)") {
  const nlohmann::json messages = Golden("C17/messages.json")["messages"];
  Driver job(TrainRules(2, 2));
  job.Join({"a", "b", "c"});
  const auto model = [](const std::string& name) {
    return name == "model after round 0" ? Fill(100) : Fill(101);
  };
  std::map<int, SubmissionAnswer> answers;
  for (const auto& message : messages) {
    const int t = message["t"];
    if (!message.contains("site")) {  // a round closes
      job.PassDeadline();
      job.Commit(static_cast<std::uint8_t>(100 + job.state.current->key.round));
      continue;
    }
    std::string site = message["site"];
    site[0] = static_cast<char>(site[0] - 'A' + 'a');
    SubmissionHeader header = {.epoch = {1, 1}, .digest = Fill(static_cast<std::uint8_t>(t))};
    if (message.contains("round")) {
      header.key = {message["round"], PhaseKind::kTrain};
    }
    if (message.contains("base")) {
      header.base_model = model(message["base"]);
    }
    const JobState before = job.state;
    answers[t] = CheckSubmission(job.state, Site(site), header);
    CHECK(job.state == before);
    if (answers[t].verdict == Verdict::kAccept) {
      job.Receive(site, static_cast<std::uint8_t>(t), message["n"]);
    }
  }
  for (const int accepted : {1, 2, 5, 9}) {
    CAPTURE(accepted);
    CHECK(answers[accepted].verdict == Verdict::kAccept);
  }
  const std::map<int, Reason> refused = {{4, Reason::kStaleRound},
                                         {6, Reason::kRoundNotOpen},
                                         {7, Reason::kRoundMissing},
                                         {8, Reason::kWrongBaseModel}};
  for (const auto& entry : refused) {
    const int t = entry.first;
    const Reason reason = entry.second;
    CAPTURE(t);
    CHECK(answers[t].verdict == Verdict::kRefuse);
    CHECK(answers[t].reason == reason);
    CHECK(answers[t].open_key == PhaseKey{2, PhaseKind::kTrain});
    CHECK(answers[t].open_model == Fill(101));
  }
  CHECK(job.state.stage == JobStage::kDone);
}

TEST_CASE("CheckSubmission: the certificate's name counts, once, and members only (C25)") {
  const nlohmann::json messages = Golden("C25/messages.json");
  Driver job(TrainRules(1, 2));
  job.Join({"site-a", "site-b"});
  std::map<int, SubmissionAnswer> answers;
  for (const auto& message : messages) {
    // What is not an update, or has no certificate or a claim that differs, is refused before.
    const bool is_update =
        message["call"] == "submit_update" || message["tls_identity"] == "site-x";
    const bool claims_another =
        !message["claims"].is_null() && message["claims"] != message["tls_identity"];
    if (!is_update || claims_another || message["tls_identity"].is_null()) {
      continue;
    }
    const std::string site = message["tls_identity"];
    const auto digest = static_cast<std::uint8_t>(message.value("n", 77));  // m1 and m4: the same
    const SubmissionAnswer answer = CheckSubmission(job.state, Site(site), Header(job, digest));
    answers[message["m"]] = answer;
    if (answer.verdict == Verdict::kAccept) {
      job.Receive(site, digest, message["n"]);
    }
  }
  CHECK(answers.at(1).verdict == Verdict::kAccept);
  CHECK(answers.at(4).verdict == Verdict::kRepeatReceipt);
  CHECK(answers.at(5).reason == Reason::kNotAParticipant);
  CHECK_FALSE(answers.at(5).open_model.has_value());  // who is no member is told nothing
  CHECK(answers.at(8).verdict == Verdict::kAccept);
  CHECK(answers.count(2) + answers.count(3) + answers.count(6) + answers.count(9) == 0);
  REQUIRE(job.Find<CommitPhase>() != nullptr);
  CHECK(job.Find<CommitPhase>()->contributors.size() == 2);
}

TEST_CASE("CheckSubmission: other bytes of a site are refused over all epochs") {
  Driver job(TrainRules(1, 2, 3));
  job.Join({"a", "b"});
  job.Receive("a", 1);
  CHECK(CheckSubmission(job.state, Site("a"), Header(job, 2)).reason == Reason::kAlreadyReceived);
  CHECK(CheckSubmission(job.state, Site("a"), Header(job, 1)).verdict == Verdict::kRepeatReceipt);

  SUBCASE("a new attempt") { job.PassDeadline(); }
  SUBCASE("a new start of the aggregator") {
    job.Do(AggregatorStarted{2});
    job.Connect("a");
  }
  CHECK(CheckSubmission(job.state, Site("a"), Header(job, 2)).reason == Reason::kAlreadyReceived);
  CHECK(CheckSubmission(job.state, Site("a"), Header(job, 1)).verdict == Verdict::kAccept);
  job.Receive("a", 1);
  CHECK(CheckSubmission(job.state, Site("a"), Header(job, 1)).verdict == Verdict::kRepeatReceipt);
}

TEST_CASE("CheckSubmission: an epoch that is not the open one is refused with the right one") {
  Driver job(TrainRules(1, 2, 3));
  job.Join({"a", "b"});
  SubmissionHeader header = Header(job, 1);
  job.Do(AggregatorStarted{2});
  SubmissionAnswer answer = CheckSubmission(job.state, Site("a"), header);
  CHECK(answer.reason == Reason::kWrongEpoch);
  CHECK(answer.open_epoch == Epoch{2, 1});
  header.epoch = {3, 1};
  CHECK(CheckSubmission(job.state, Site("a"), header).reason == Reason::kWrongEpoch);
}

TEST_CASE("CheckSubmission: phases of one round come in their order") {
  JobRules rules = TrainRules(2, 1);
  rules.rounds[0] = {PhaseKind::kStatistics, PhaseKind::kTrain};
  rules.rounds[1] = {PhaseKind::kTrain, PhaseKind::kEvaluate};
  Driver job(rules);
  job.Join({"a"});
  const auto reason = [&](PhaseKey key) {
    SubmissionHeader header = Header(job, 1);
    header.key = key;
    return CheckSubmission(job.state, Site("a"), header).reason;
  };
  CHECK(reason({1, PhaseKind::kStatistics}) == Reason::kNone);
  CHECK(reason({1, PhaseKind::kTrain}) == Reason::kRoundNotOpen);
  CHECK(reason({1, PhaseKind::kEvaluate}) == Reason::kRoundNotOpen);  // the round has none
  CHECK(reason({2, PhaseKind::kTrain}) == Reason::kRoundNotOpen);
  CHECK(reason({3, PhaseKind::kTrain}) == Reason::kRoundNotOpen);
  CHECK(reason({0, PhaseKind::kTrain}) == Reason::kRoundMissing);
  CHECK(reason({1, PhaseKind::kNone}) == Reason::kRoundMissing);
  job.Receive("a", 1);
  job.Commit(101);
  CHECK(reason({1, PhaseKind::kStatistics}) == Reason::kStaleRound);
  CHECK(reason({1, PhaseKind::kTrain}) == Reason::kNone);
}

TEST_CASE("CheckSubmission: a job that waits, gathers, closes or has ended takes nothing") {
  Driver job(TrainRules(1, 2, 2));
  job.Connect("a");
  job.Accept("a");
  const SubmissionHeader header = {
      .key = {1, PhaseKind::kTrain}, .epoch = {1, 1}, .digest = Fill(1), .base_model = Fill(100)};
  CHECK(CheckSubmission(job.state, Site("a"), header).reason == Reason::kRoundNotOpen);
  SUBCASE("gathering") {
    job.Join({"b"});
    job.Do(SiteDisconnected{Site("b")});
    job.PassDeadline();
    const SubmissionAnswer answer = CheckSubmission(job.state, Site("a"), header);
    CHECK(answer.reason == Reason::kRoundNotOpen);
    CHECK_FALSE(answer.open_key.has_value());
  }
  SUBCASE("closing") {
    job.Join({"b"});
    job.Receive("a", 1);
    job.Receive("b", 2);
    REQUIRE(job.state.current->step == CurrentPhase::Step::kClosing);
    CHECK(CheckSubmission(job.state, Site("a"), header).verdict == Verdict::kRepeatReceipt);
    CHECK(CheckSubmission(job.state, Site("b"), header).reason == Reason::kAlreadyReceived);
  }
  SUBCASE("open, for a site that joins from the next round") {
    job.Join({"b"});
    job.Join({"d"});
    CHECK(CheckSubmission(job.state, Site("d"), header).reason == Reason::kNotAParticipant);
  }
  SUBCASE("cancelled") {
    job.Do(Cancelled{});
    CHECK(CheckSubmission(job.state, Site("a"), header).reason == Reason::kCancelled);
  }
  SUBCASE("failed") {
    job.Join({"b"});
    job.PassDeadline();
    job.PassDeadline();
    REQUIRE(job.state.stage == JobStage::kFailed);
    CHECK(CheckSubmission(job.state, Site("a"), header).reason == Reason::kStaleRound);
  }
}

TEST_CASE("CheckSubmission: a phase that is closing takes no more") {
  Driver job(TrainRules(1, 2));
  job.Join({"a", "b", "c"});
  job.Receive("a", 1);
  job.Receive("b", 2);
  job.PassDeadline();
  REQUIRE(job.state.current->step == CurrentPhase::Step::kClosing);
  CHECK(CheckSubmission(job.state, Site("c"), Header(job, 3)).reason == Reason::kDeadline);
}

TEST_CASE("CheckSubmission: a site that has withdrawn is no participant") {
  Driver job(TrainRules(1, 1));
  job.Join({"a", "b"});
  const SubmissionHeader header = Header(job, 2);
  job.Refuse("b");
  CHECK(CheckSubmission(job.state, Site("b"), header).reason == Reason::kNotAParticipant);
}

TEST_CASE("CheckSubmission: a site that declined a phase may still send, while it is open") {
  Driver job(TrainRules(1, 1));
  job.Join({"a", "b"});
  job.DeclinePhase("b", Reason::kTrainerUnavailable);
  CHECK(CheckSubmission(job.state, Site("b"), Header(job, 2)).verdict == Verdict::kAccept);
  job.Receive("b", 2);
  job.Receive("a", 1);
  CHECK(job.Find<CommitPhase>()->contributors.size() == 2);
}

}  // namespace
}  // namespace domicile::aggregator

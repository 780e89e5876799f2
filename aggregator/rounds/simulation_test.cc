// Thousands of random lives of a job: sites die, return, are cloned from old snapshots and send
// late, stale and repeated messages; the aggregator restarts. What must hold is checked at every
// action.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "aggregator/rounds/event_json.h"
#include "aggregator/rounds/machine.h"
#include "aggregator/rounds/submission.h"
#include "aggregator/rounds/testing.h"
#include "base/random.h"

namespace domicile::aggregator {
namespace {

using policy::Reason;
using testing::Organisation;
using testing::Site;

// What all runs together have reached: a simulation that never sees a thing proves nothing of it.
struct Coverage {
  std::map<JobStage, int> ends;
  std::map<Reason, int> refusals;
  std::map<Reason, int> failures;
  int commits = 0;
  int repeats = 0;
  int restarts_while_open = 0;
  int left_out = 0;
  int surplus = 0;
  int replays = 0;
};

// One job with its sites and the wire between them. The wire loses, repeats and reorders.
class World {
 public:
  World(std::uint64_t seed, Coverage& coverage)
      : random_(seed), coverage_(coverage), rules_(RandomRules()), state_(rules_) {
    const std::size_t num_sites = 2 + random_.Below(5);
    for (std::size_t i = 0; i < num_sites; ++i) {
      sites_.push_back(
          {.id = Site("site-" + std::to_string(i)),
           // Every fourth site shares its organisation with the one before.
           .organisation = Organisation("org-" + std::to_string(i % 4 == 3 ? i - 1 : i)),
           .min_contributors = static_cast<std::uint32_t>(random_.Below(4))});
    }
    Do(Submitted{.starts = 1, .model = NewDigest()});
  }

  void Run() {
    const std::uint64_t steps = 50 + random_.Below(400);
    for (std::uint64_t step = 0; step < steps && !HasEnded(state_.stage); ++step) {
      RandomStep();
      if (random_.Below(40) == 0) {
        CheckReplay();
      }
    }
    Drain();
    CheckReplay();
    ++coverage_.ends[state_.stage];
  }

 private:
  struct SimulatedSite {
    SiteId id;
    OrganisationId organisation;
    std::uint32_t min_contributors = 0;
    bool connected = false;
    std::map<std::pair<RoundNumber, PhaseKind>, Digest> outbox = {};
  };
  struct Submission {
    SiteId site;
    SubmissionHeader header;
  };

  JobRules RandomRules() {
    JobRules rules{.quorum = 1 + static_cast<std::uint32_t>(random_.Below(3)),
                   .max_sites = 3 + static_cast<std::uint32_t>(random_.Below(4)),
                   .attempts = 1 + static_cast<std::uint32_t>(random_.Below(3)),
                   .deadline = std::chrono::seconds(10)};
    const std::uint64_t rounds = 1 + random_.Below(3);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      rules.rounds.push_back({PhaseKind::kTrain});
    }
    if (random_.Below(2) == 0) {
      rules.rounds.front().insert(rules.rounds.front().begin(), PhaseKind::kStatistics);
    }
    if (random_.Below(2) == 0) {
      rules.rounds.back().push_back(PhaseKind::kEvaluate);
    }
    return rules;
  }

  Digest NewDigest() {
    Digest digest;
    random_.Fill(digest.bytes);
    return digest;
  }

  // ---- the aggregator around the machine ----

  void Do(const Event& event) {
    stored_.push_back(PrintEvent(event));
    const JobStage before = state_.stage;
    for (const Action& action : Step(state_, event)) {
      std::visit([this](const auto& what) { Carry(what); }, action);
    }
    REQUIRE_FALSE(HasEnded(before));
  }

  void Carry(const OfferTo& action) { offers_.push_back(action.site); }
  void Carry(const ArmStart& /*action*/) {}
  void Carry(const RepeatOpen& action) {
    REQUIRE(open_.has_value());
    REQUIRE(state_.current->participants.count(action.site) == 1);
  }
  void Carry(const ArmDeadline& action) { deadlines_.push_back({action.key, action.epoch}); }
  void Carry(const OpenPhase& action) {
    REQUIRE_FALSE(action.participants.empty());
    REQUIRE(action.participants.size() <= rules_.max_sites);
    if (last_open_ && last_open_->key == action.key) {
      REQUIRE(action.epoch > last_open_->epoch);
    }
    // The floor is fixed by what the participants said before, and they can reach it; only a
    // restart keeps an older one.
    std::uint32_t floor = rules_.quorum;
    std::set<OrganisationId> organisations;
    for (const SiteId& site : action.participants) {
      floor = std::max(floor, state_.sites.at(site).min_contributors);
      organisations.insert(state_.sites.at(site).organisation);
    }
    if (!is_restarting_) {
      REQUIRE(action.floor == std::max(floor, 1U));
      REQUIRE(organisations.size() >= action.floor);
    }
    REQUIRE(action.floor >= rules_.quorum);
    // The cohort is fixed once the round has committed a phase.
    if (!committed_.empty() && committed_.back().round == action.key.round) {
      for (const SiteId& site : action.participants) {
        REQUIRE(std::count(round_cohort_.begin(), round_cohort_.end(), site) == 1);
      }
    }
    for (const auto& [site, record] : state_.sites) {
      coverage_.left_out += record.reason == Reason::kMinContributors ? 1 : 0;
      coverage_.surplus += record.reason == Reason::kBusy ? 1 : 0;
    }
    open_ = action;
    last_open_ = action;
    sum_.clear();
  }
  void Carry(const CommitPhase& action) {
    REQUIRE(open_.has_value());
    REQUIRE(open_->key == action.key);
    REQUIRE(open_->epoch == action.epoch);
    std::set<SiteId> seen;
    std::set<OrganisationId> organisations;
    for (const Contributor& contributor : action.contributors) {
      REQUIRE(seen.insert(contributor.site).second);  // nobody twice
      REQUIRE(std::count(open_->participants.begin(), open_->participants.end(),
                         contributor.site) == 1);
      REQUIRE(sum_.count(contributor.site) == 1);  // received in this epoch
      REQUIRE(sum_.at(contributor.site) == contributor.digest);
      organisations.insert(state_.sites.at(contributor.site).organisation);
    }
    REQUIRE(action.contributors.size() == sum_.size());  // nobody forgotten
    REQUIRE(organisations.size() >= open_->floor);
    if (action.key.phase == PhaseKind::kStatistics) {
      for (const SiteId& site : open_->participants) {
        REQUIRE((seen.count(site) == 1 || without_examples_.count({site, action.epoch}) == 1));
      }
    }
    to_commit_ = action;
  }
  void Carry(const AbandonPhase& action) {
    REQUIRE(open_.has_value());
    REQUIRE(open_->epoch == action.epoch);
    ++coverage_.failures[action.reason];
    open_.reset();
    to_commit_.reset();
    sum_.clear();
  }
  void Carry(const EndJob& action) {
    REQUIRE(action.stage == state_.stage);
    REQUIRE(HasEnded(action.stage));
    if (action.stage == JobStage::kDone) {
      std::size_t phases = 0;
      for (const std::vector<PhaseKind>& round : rules_.rounds) {
        phases += round.size();
      }
      REQUIRE(committed_.size() == phases);
    }
  }

  void AnswerCommit() {
    const CommitPhase commit = *to_commit_;
    to_commit_.reset();
    if (random_.Below(8) == 0) {
      Do(PhaseFailed{commit.key, commit.epoch, Reason::kResultNotFinite});
      return;
    }
    // Phases commit in the order of the plan, each once.
    const auto place = [this](const PhaseKey& key) {
      const auto& phases = rules_.rounds.at(key.round - 1);
      return std::pair(key.round,
                       std::find(phases.begin(), phases.end(), key.phase) - phases.begin());
    };
    if (!committed_.empty()) {
      REQUIRE(place(committed_.back()) < place(commit.key));
    }
    committed_.push_back(commit.key);
    round_cohort_ = open_->participants;
    ++coverage_.commits;
    open_.reset();
    sum_.clear();
    Do(PhaseCommitted{commit.key, commit.epoch, commit.contributors,
                      commit.key.phase == PhaseKind::kEvaluate ? Digest{} : NewDigest()});
  }

  void Receive(const Submission& submission) {
    const SubmissionAnswer answer = CheckSubmission(state_, submission.site, submission.header);
    switch (answer.verdict) {
      case Verdict::kRefuse:
        REQUIRE(answer.reason != Reason::kNone);
        ++coverage_.refusals[answer.reason];
        return;
      case Verdict::kRepeatReceipt:
        ++coverage_.repeats;
        REQUIRE(sum_.at(submission.site) == submission.header.digest);
        return;
      case Verdict::kAccept:
        break;
    }
    // One set of bytes per (phase, site), whatever clones and restarts there were.
    const auto key = std::pair(submission.header.key.round, submission.header.key.phase);
    const auto [first, is_new] =
        first_digests_.emplace(std::pair(key, submission.site), submission.header.digest);
    REQUIRE((is_new || first->second == submission.header.digest));
    REQUIRE(sum_.emplace(submission.site, submission.header.digest).second);
    Do(UpdateReceived{submission.site, submission.header.key, submission.header.epoch,
                      submission.header.digest, 1 + static_cast<std::int64_t>(random_.Below(9)),
                      leaf_++});
  }

  void Restart() {
    ++restarts_;
    coverage_.restarts_while_open += open_ ? 1 : 0;
    // The sum was memory, timers and streams are gone, and so is a commit that was not stored.
    sum_.clear();
    to_commit_.reset();
    for (SimulatedSite& site : sites_) {
      site.connected = false;
    }
    CheckReplay();
    is_restarting_ = true;
    Do(AggregatorStarted{.starts = 1 + restarts_,
                         .waited = std::chrono::seconds(random_.Below(12))});
    is_restarting_ = false;
  }

  // ---- the world ----

  SimulatedSite& AnySite() { return sites_[random_.Below(sites_.size())]; }

  void RandomStep() {
    if (to_commit_ && random_.Below(8) == 0) {
      AnswerCommit();
      return;
    }
    SimulatedSite& site = AnySite();
    const std::uint64_t dice = random_.Below(16);
    // In a calm world less goes wrong, so that more jobs get far.
    if (is_calm_ && (dice <= 3 || dice >= 13) && dice > 1 && random_.Below(4) != 0) {
      return;
    }
    switch (dice) {
      case 0:
      case 1:
        if (!site.connected) {
          site.connected = true;
          Do(SiteConnected{site.id});
        }
        return;
      case 2:
        if (site.connected && random_.Below(3) == 0) {
          site.connected = false;
          Do(SiteDisconnected{site.id});
        }
        return;
      case 3:
        if (random_.Below(4) == 0) {
          site.outbox.clear();  // restored from an old snapshot, or a clone on a standby machine
        }
        return;
      case 4:
      case 5:
      case 6:
        AnswerOffer();
        return;
      case 7:
      case 8:
      case 9:
        SendUpdate(site);
        return;
      case 10:
      case 11:
      case 12:
        DeliverOne();
        return;
      case 13:
        RareStep(site);
        return;
      case 14:
        if (open_ && random_.Below(3) == 0) {
          DeclinePhase(site);
        }
        return;
      default:
        if (random_.Below(3) == 0) {
          FireDeadline();
        }
        return;
    }
  }

  void RareStep(const SimulatedSite& site) {
    switch (random_.Below(8)) {
      case 0:
        if (restarts_ < 3) {
          Restart();
        }
        return;
      case 1:
        if (random_.Below(8) == 0) {
          Do(Cancelled{});
        }
        return;
      case 2:
        Do(StartDue{});
        return;
      case 3:  // a withdrawal, or a revocation
        Do(OfferAnswered{.site = site.id,
                         .organisation = site.organisation,
                         .answer = Answer::kDecline,
                         .reason = Reason::kGrantExpired});
        return;
      case 4:  // a tighter answer
        Do(OfferAnswered{.site = site.id,
                         .organisation = site.organisation,
                         .answer = Answer::kAccept,
                         .min_contributors = static_cast<std::uint32_t>(random_.Below(5))});
        return;
      default:
        return;
    }
  }

  void AnswerOffer() {
    if (offers_.empty()) {
      return;
    }
    const SiteId id = offers_.back();
    offers_.pop_back();
    const auto site = std::find_if(sites_.begin(), sites_.end(),
                                   [&](const SimulatedSite& other) { return other.id == id; });
    const std::uint64_t dice = random_.Below(12);
    const Answer answer = dice == 0   ? Answer::kDecline
                          : dice == 1 ? Answer::kHold
                                      : Answer::kAccept;
    Do(OfferAnswered{.site = id,
                     .organisation = site->organisation,
                     .answer = answer,
                     .reason = answer == Answer::kAccept ? Reason::kNone : Reason::kApprovalMissing,
                     .min_contributors = site->min_contributors});
  }

  void SendUpdate(SimulatedSite& site) {
    if (!last_open_) {
      return;
    }
    // Usually of the phase that was opened last, sometimes an older one from the outbox.
    SubmissionHeader header = {
        .key = last_open_->key, .epoch = last_open_->epoch, .base_model = last_open_->model};
    if (!site.outbox.empty() && random_.Below(6) == 0) {
      header.key.round = site.outbox.begin()->first.first;
      header.key.phase = site.outbox.begin()->first.second;
    }
    const auto key = std::pair(header.key.round, header.key.phase);
    header.digest = site.outbox.emplace(key, NewDigest()).first->second;
    switch (random_.Below(40)) {
      case 0:
        header.key.round += 1;
        break;
      case 1:
        header.key = {};
        break;
      case 2:
        header.base_model = NewDigest();
        break;
      case 3:
        header.epoch.attempt += 1;
        break;
      default:
        break;
    }
    wire_.push_back({site.id, header});
  }

  void DeliverOne() {
    if (wire_.empty()) {
      return;
    }
    const std::size_t index = random_.Below(wire_.size());
    const Submission submission = wire_[index];
    if (random_.Below(4) != 0) {  // else it arrives again later
      wire_.erase(wire_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    Receive(submission);
  }

  void DeclinePhase(const SimulatedSite& site) {
    const bool no_examples = random_.Below(2) == 0;
    const bool counts = state_.current->participants.count(site.id) == 1 &&
                        !state_.current->participants.at(site.id).received;
    if (no_examples && counts) {
      without_examples_.insert({site.id, open_->epoch});
    }
    Do(PhaseDeclined{site.id, open_->key, open_->epoch,
                     no_examples ? Reason::kNoExamples : Reason::kTrainerFailed});
  }

  void FireDeadline() {
    if (deadlines_.empty()) {
      return;
    }
    // Now and then an old timer fires late: it must do nothing.
    const std::size_t index =
        random_.Below(3) == 0 ? random_.Below(deadlines_.size()) : deadlines_.size() - 1;
    Do(deadlines_[index]);
  }

  // Nobody does anything any more. A running job ends by itself: only deadlines pass, and commits
  // are answered.
  void Drain() {
    if (state_.stage == JobStage::kWaiting) {
      Do(Cancelled{});
    }
    std::size_t limit = 0;
    for (const std::vector<PhaseKind>& round : rules_.rounds) {
      limit += 2 * round.size() * rules_.attempts;
    }
    for (std::size_t i = 0; i < limit && !HasEnded(state_.stage); ++i) {
      if (to_commit_) {
        AnswerCommit();
      } else {
        Do(DeadlinePassed{state_.current->key, state_.current->epoch});
      }
    }
    REQUIRE(HasEnded(state_.stage));
  }

  void CheckReplay() {
    JobState replayed(rules_);
    for (const std::string& line : stored_) {
      const auto event = ParseEvent(line);
      REQUIRE(event.ok());
      Step(replayed, *event);
    }
    REQUIRE(replayed == state_);
    ++coverage_.replays;
  }

  SeededRandom random_;
  Coverage& coverage_;
  JobRules rules_;
  JobState state_;
  std::vector<SimulatedSite> sites_;
  std::vector<std::string> stored_;
  std::vector<SiteId> offers_;
  std::vector<Submission> wire_;
  std::vector<DeadlinePassed> deadlines_;
  std::optional<OpenPhase> open_;
  std::optional<OpenPhase> last_open_;
  std::optional<CommitPhase> to_commit_;
  std::map<SiteId, Digest> sum_;  // what is folded in this epoch
  std::map<std::pair<std::pair<RoundNumber, PhaseKind>, SiteId>, Digest> first_digests_;
  std::set<std::pair<SiteId, Epoch>> without_examples_;
  std::vector<PhaseKey> committed_;
  std::vector<SiteId> round_cohort_;  // of the last committed phase
  std::uint64_t restarts_ = 0;
  std::uint64_t leaf_ = 1;
  bool is_restarting_ = false;
  bool is_calm_ = random_.Below(2) == 0;
};

TEST_CASE("Simulation: whatever happens, the promises of a round hold") {
  Coverage coverage;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    CAPTURE(seed);
    World(seed, coverage).Run();
  }

  CHECK(coverage.ends[JobStage::kDone] > 100);
  CHECK(coverage.ends[JobStage::kFailed] > 100);
  CHECK(coverage.ends[JobStage::kCancelled] > 100);
  CHECK(coverage.commits > 1000);
  CHECK(coverage.repeats > 100);
  CHECK(coverage.restarts_while_open > 100);
  CHECK(coverage.left_out > 10);
  CHECK(coverage.surplus > 10);
  CHECK(coverage.replays > 4000);
  for (const Reason reason : {Reason::kNotAParticipant, Reason::kRoundMissing, Reason::kStaleRound,
                              Reason::kRoundNotOpen, Reason::kWrongBaseModel, Reason::kWrongEpoch,
                              Reason::kAlreadyReceived, Reason::kDeadline}) {
    CAPTURE(policy::Code(reason));
    CHECK(coverage.refusals[reason] > 10);
  }
  for (const Reason reason :
       {Reason::kBelowFloor, Reason::kPhaseIncomplete, Reason::kSuperseded,
        Reason::kNoExamplesAnywhere, Reason::kResultNotFinite, Reason::kCancelled}) {
    CAPTURE(policy::Code(reason));
    CHECK(coverage.failures[reason] > 10);
  }
}

}  // namespace
}  // namespace domicile::aggregator

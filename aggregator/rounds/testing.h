// What the tests of the machine share: names, digests, and a job that is driven by hand.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "aggregator/rounds/machine.h"

namespace domicile::aggregator::testing {

inline SiteId Site(std::string_view name) { return *SiteId::Parse(name); }
inline OrganisationId Organisation(std::string_view name) { return *OrganisationId::Parse(name); }

inline Digest Fill(std::uint8_t byte) {
  Digest digest;
  digest.bytes.fill(byte);
  return digest;
}

inline JobRules TrainRules(std::size_t rounds, std::uint32_t quorum, std::uint32_t attempts = 2) {
  return {.rounds = std::vector<std::vector<PhaseKind>>(rounds, {PhaseKind::kTrain}),
          .quorum = quorum,
          .max_sites = 64,
          .attempts = attempts,
          .deadline = std::chrono::seconds(10),
          .start_after = std::chrono::seconds(60)};
}

// A job with its actions of the last event. Sites are run by an organisation of their own name.
class Driver {
 public:
  explicit Driver(JobRules rules) : state(std::move(rules)) {
    Do(Submitted{.starts = 1, .model = Fill(100)});
  }

  const std::vector<Action>& Do(const Event& event) {
    actions = Step(state, event);
    return actions;
  }

  void Connect(std::string_view site) { Do(SiteConnected{Site(site)}); }
  void Accept(std::string_view site, std::uint32_t min_contributors = 0,
              std::string_view organisation = {}, std::uint8_t policy = 1) {
    Do(OfferAnswered{.site = Site(site),
                     .organisation = Organisation(organisation.empty() ? site : organisation),
                     .answer = Answer::kAccept,
                     .min_contributors = min_contributors,
                     .policy = Fill(policy)});
  }
  void Refuse(std::string_view site, Answer answer = Answer::kDecline) {
    Do(OfferAnswered{.site = Site(site),
                     .organisation = Organisation(site),
                     .answer = answer,
                     .reason = answer == Answer::kHold ? policy::Reason::kApprovalMissing
                                                       : policy::Reason::kPurpose});
  }
  void Join(std::initializer_list<std::string_view> sites) {
    for (const std::string_view site : sites) {
      Connect(site);
    }
    for (const std::string_view site : sites) {
      Accept(site);
    }
  }
  void Receive(std::string_view site, std::uint8_t digest, std::int64_t weight = 1) {
    REQUIRE(state.current.has_value());
    Do(UpdateReceived{.site = Site(site),
                      .key = state.current->key,
                      .epoch = state.current->epoch,
                      .digest = Fill(digest),
                      .weight = weight,
                      .leaf = digest});
  }
  void DeclinePhase(std::string_view site, policy::Reason reason) {
    REQUIRE(state.current.has_value());
    Do(PhaseDeclined{.site = Site(site),
                     .key = state.current->key,
                     .epoch = state.current->epoch,
                     .reason = reason});
  }
  void PassDeadline() {
    REQUIRE(state.current.has_value());
    Do(DeadlinePassed{state.current->key, state.current->epoch});
  }
  // Answers the CommitPhase of the last event.
  void Commit(std::uint8_t model) {
    const CommitPhase* const commit = Find<CommitPhase>();
    REQUIRE(commit != nullptr);
    Do(PhaseCommitted{.key = commit->key,
                      .epoch = commit->epoch,
                      .contributors = commit->contributors,
                      .model = model == 0 ? Digest{} : Fill(model)});
  }

  // The first action of that kind in the last event's; null if there is none.
  template <typename T>
  const T* Find() const {
    for (const Action& action : actions) {
      if (const T* const found = std::get_if<T>(&action)) {
        return found;
      }
    }
    return nullptr;
  }

  JobState state;
  std::vector<Action> actions;
};

}  // namespace domicile::aggregator::testing

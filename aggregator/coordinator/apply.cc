// The one way an event of a job goes: step, record, take over, carry out.
#include <algorithm>
#include <utility>

#include "aggregator/coordinator/coordinator.h"
#include "aggregator/rounds/event_json.h"
#include "audit/records.h"
#include "base/log.h"
#include "base/sqlite.h"

namespace domicile::aggregator {

namespace {

constexpr std::uint64_t kNoLeaf = UINT64_MAX;
// After a failure of the disk, what could not be recorded is tried again.
constexpr std::chrono::seconds kRetry{1};

std::string TimerName(std::string_view what, const JobId& job) {
  return std::string(what) + "/" + job.text();
}

std::vector<SiteId> ParticipantsOf(const JobState& state) {
  std::vector<SiteId> sites;
  if (state.current) {
    for (const auto& [site, participation] : state.current->participants) {
      sites.push_back(site);
    }
  }
  return sites;
}

}  // namespace

Status Coordinator::Apply(Job& job, const Event& event, std::vector<audit::Event> leaves,
                          const Rows& rows, const std::function<void()>& taken_over) {
  JobState next = job.state;
  const std::vector<Action> actions = Step(next, event);
  for (const Action& action : actions) {
    ASSIGN_OR_RETURN(std::optional<audit::Event> leaf, LeafOf(job, next, action));
    if (leaf) {
      leaves.push_back(*std::move(leaf));
    }
  }
  StatusOr<std::vector<std::uint64_t>> indexes = Record(job, event, leaves, actions, rows);
  if (!indexes.ok()) {
    LogError("job `" + job.id.text() + "`: " + std::string(Message(indexes.status())));
    return indexes.status();
  }
  const std::vector<SiteId> participants = ParticipantsOf(job.state);
  job.state = std::move(next);
  if (taken_over) {
    taken_over();
  }
  Changed(job);
  std::size_t at = 0;
  for (const Action& action : actions) {
    if (const auto* abandon = std::get_if<AbandonPhase>(&action)) {
      StatusOr<audit::ProvenLeaf> leaf = log_->LeafWithProof((*indexes)[at]);
      if (leaf.ok()) {
        PushToParticipants(participants, OutcomeMessage{.job = job.id,
                                                        .key = abandon->key,
                                                        .epoch = abandon->epoch,
                                                        .reason = abandon->reason,
                                                        .leaf = *std::move(leaf)});
      }
    }
    CarryOut(job, action, (*indexes)[at++]);
  }
  return OkStatus();
}

// One transaction: the event, the caller's rows, the leaves. Returns the leaf index of each action.
StatusOr<std::vector<std::uint64_t>> Coordinator::Record(Job& job, const Event& event,
                                                         std::span<const audit::Event> leaves,
                                                         std::span<const Action> actions,
                                                         const Rows& rows) {
  std::vector<std::uint64_t> indexes(actions.size(), kNoLeaf);
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(store_.Db()));
  if (rows) {
    RETURN_IF_ERROR(rows());
  }
  RETURN_IF_ERROR(store_.AddEvent(job.id, PrintEvent(event)));
  for (const Action& action : actions) {
    if (const auto* deadline = std::get_if<ArmDeadline>(&action)) {
      RETURN_IF_ERROR(store_.SetWaited(job.id, job.state.rules.deadline - deadline->after));
    }
  }
  std::vector<std::uint64_t> appended;
  for (const audit::Event& leaf : leaves) {
    ASSIGN_OR_RETURN(const std::uint64_t index, log_->Append(leaf));
    appended.push_back(index);
  }
  RETURN_IF_ERROR(transaction.Commit());
  // The leaves of actions stand last, in the order of the actions that have one.
  std::size_t taken = appended.size();
  for (std::size_t i = actions.size(); i-- > 0;) {
    const bool has_leaf = std::holds_alternative<OpenPhase>(actions[i]) ||
                          std::holds_alternative<AbandonPhase>(actions[i]) ||
                          std::holds_alternative<EndJob>(actions[i]) ||
                          std::holds_alternative<OfferTo>(actions[i]);
    if (has_leaf) {
      indexes[i] = appended[--taken];
    }
  }
  return indexes;
}

StatusOr<std::optional<audit::Event>> Coordinator::LeafOf(const Job& job, const JobState& next,
                                                          const Action& action) {
  if (const auto* offer = std::get_if<OfferTo>(&action)) {
    return audit::EventBuilder(audit::EventType::kJobOffered)
        .Set("job", job.id)
        .Set("plan", job.plan_digest)
        .Set("site", offer->site)
        .Build();
  }
  if (const auto* open = std::get_if<OpenPhase>(&action)) {
    return ToEvent(audit::PhaseOpened{
        .key = LogKey(job.id, open->key, open->epoch),
        .plan = job.plan_digest,
        .model = open->model,
        .participants = open->participants,
        .floor = open->floor,
        .scale_bits = open->key.phase == PhaseKind::kStatistics ? job.plan->normalisation.scale_bits
                                                                : job.plan->update.scale_bits,
        .max_weight = job.plan->update.max_weight,
        .max_sites = job.plan->update.max_sites,
        .deadline_seconds = static_cast<std::uint32_t>(open->deadline.count()),
        .policies = own_policies_});
  }
  if (const auto* abandon = std::get_if<AbandonPhase>(&action)) {
    return audit::EventBuilder(audit::EventType::kPhaseAbandoned)
        .Phase(LogKey(job.id, abandon->key, abandon->epoch))
        .Set("reason", std::string(policy::Code(abandon->reason)))
        .Build();
  }
  if (const auto* end = std::get_if<EndJob>(&action)) {
    audit::EventBuilder builder(audit::EventType::kJobEnded);
    builder.Set("job", job.id)
        .Set("state", std::string(StageName(end->stage)))
        .Set("rounds", next.rounds_committed)
        .Set("model", next.model);
    if (end->reason != policy::Reason::kNone) {
      builder.Set("reason", std::string(policy::Code(end->reason)));
    }
    return builder.Build();
  }
  return std::nullopt;
}

void Coordinator::CarryOut(Job& job, const Action& action, std::uint64_t leaf) {
  if (const auto* offer = std::get_if<OfferTo>(&action)) {
    if (Session* session = FindSession(offer->site)) {
      session->port->Push(
          OfferMessage{.job = job.id, .plan = job.plan_text, .base_model = job.base_model});
    }
  } else if (const auto* start = std::get_if<ArmStart>(&action)) {
    ApplyLater(job.id, TimerName("start", job.id), start->after, StartDue{});
  } else if (const auto* deadline = std::get_if<ArmDeadline>(&action)) {
    ApplyLater(job.id, TimerName("deadline", job.id), deadline->after,
               DeadlinePassed{.key = deadline->key, .epoch = deadline->epoch});
    job.armed_at = clock_.Monotonic();
    KeepWaited(job.id, WaitPace(job.state.rules.deadline));
  } else if (const auto* open = std::get_if<OpenPhase>(&action)) {
    StatusOr<PhaseSum> sum = PhaseSum::Create(*job.plan, open->key.phase);
    if (!sum.ok()) {
      LogError("opening a phase of job `" + job.id.text() +
               "`: " + std::string(Message(sum.status())));
      return;  // nobody is told: the deadline ends the attempt
    }
    job.sum = *std::move(sum);
    job.opened_leaf = leaf;
    job.armed_at = clock_.Monotonic();
    job.percent.clear();
    job.due.emplace_back(OpeningDue{.key = open->key, .epoch = open->epoch});
    Tell(job);
  } else if (const auto* repeat = std::get_if<RepeatOpen>(&action)) {
    StatusOr<audit::ProvenLeaf> opening = log_->LeafWithProof(job.opened_leaf);
    if (opening.ok()) {
      PushOpen(job, repeat->site, *opening);
    }
  } else if (const auto* commit = std::get_if<CommitPhase>(&action)) {
    Commit(job, *commit);
  } else if (std::holds_alternative<AbandonPhase>(action)) {
    job.sum.reset();
  } else if (const auto* end = std::get_if<EndJob>(&action)) {
    job.sum.reset();
    timers_.Cancel(TimerName("start", job.id));
    timers_.Cancel(TimerName("deadline", job.id));
    timers_.Cancel(TimerName("wait", job.id));
    job.due.emplace_back(EndDue{.stage = end->stage, .reason = end->reason});
    Tell(job);
    LogInfo("job `" + job.id.text() + "`: " + std::string(StageName(end->stage)));
  }
}

void Coordinator::PushToParticipants(const std::vector<SiteId>& sites, const ToSite& message) {
  for (const SiteId& site : sites) {
    if (Session* session = FindSession(site)) {
      session->port->Push(message);
    }
  }
}

void Coordinator::Changed(Job& job) {
  ++job.change;
  changed_.notify_all();
}

void Coordinator::ApplyLater(const JobId& id, const std::string& timer,
                             std::chrono::nanoseconds after, Event event) {
  timers_.Arm(timer, clock_.Monotonic() + after, [this, id, timer, event = std::move(event)] {
    const MutexLock lock(mutex_);
    Job* job = FindJob(id);
    if (job != nullptr && !Apply(*job, event).ok()) {
      ApplyLater(id, timer, kRetry, event);
    }
  });
}

Job* Coordinator::FindJob(const JobId& job) {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : found->second.get();
}

Coordinator::Session* Coordinator::FindSession(const SiteId& site) {
  const auto found = sessions_.find(site);
  return found == sessions_.end() ? nullptr : &found->second;
}

}  // namespace domicile::aggregator

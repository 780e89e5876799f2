#include "audit/reconcile.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "audit/leaves.h"
#include "audit/records.h"
#include "audit/recovery.h"

namespace domicile::audit {

namespace {

// One update in one attempt at a phase, as both sides tell it.
struct UpdateKey {
  PhaseKey phase;
  Digest digest;
  friend auto operator<=>(const UpdateKey&, const UpdateKey&) = default;
};

// A leaf that says something about an update.
struct Said {
  std::uint64_t seq = 0;
  std::uint64_t bytes = 0;
  bool in_time = true;  // of an end: there was an attempt without one
};

struct UpdateStory {
  std::vector<Said> intents;
  std::vector<Said> done;
  std::vector<Said> aborted;
  std::vector<Said> received;
  std::vector<Said> refused;
  std::vector<Said> partial;
  std::optional<std::uint64_t> receipt_seq;
  bool decided = false;  // the site had allowed it before the first attempt

  bool KnownToSite() const { return !intents.empty() || !done.empty() || !aborted.empty(); }
};

struct CountStory {
  std::optional<std::uint64_t> listed;      // in the aggregator's `phase.committed`
  std::optional<std::uint64_t> counted;     // the site's `update.counted`
  std::optional<std::uint64_t> commit_seq;  // of the leaf the site saw
  std::optional<std::uint64_t> not_counted;
};

struct ModelStory {
  PhaseKey first;  // the phase it was first seen in
  std::vector<Said> sent;
  std::vector<Said> taken;
};

std::uint64_t Sum(const std::vector<Said>& said) {
  std::uint64_t sum = 0;
  for (const Said& one : said) {
    sum += one.bytes;
  }
  return sum;
}

std::optional<std::uint64_t> First(std::initializer_list<const std::vector<Said>*> lists) {
  std::optional<std::uint64_t> first;
  for (const std::vector<Said>* list : lists) {
    if (!list->empty() && (!first || list->front().seq < *first)) {
      first = list->front().seq;
    }
  }
  return first;
}

std::string Number(std::uint64_t number) { return std::to_string(number); }

Digest DigestIn(const Event& event, std::string_view field) {
  const auto digest = ParseDigest(event.Text(field));
  return digest.ok() ? *digest : Digest{};
}

// A recovery as both sides tell it. Entries of the aggregator between the two may be about entries
// of the site that are lost.
struct RecoveryStory {
  std::optional<std::uint64_t> recovered;  // the site's `log.recovered`
  std::optional<LogRecovered> record;
  std::optional<std::uint64_t> taken;  // the aggregator's `head.recovered`
  std::uint64_t after = 0;             // its last word on the history that both had
};

class Reconciler {
 public:
  StatusOr<Reconciliation> Run(const std::vector<Leaf>& site_log,
                               const std::vector<Leaf>& aggregator_log) {
    RETURN_IF_ERROR(NameSides(site_log, aggregator_log));
    site_origin_ = site_log.front().frame.origin;
    for (const Leaf& leaf : site_log) {
      RETURN_IF_ERROR(ReadSite(leaf));
    }
    for (const Leaf& leaf : aggregator_log) {
      RETURN_IF_ERROR(ReadAggregator(leaf));
    }
    for (auto& [seq, story] : recoveries_) {
      FindLostTime(story);
      MatchRecovery(story);
    }
    for (const auto& [key, story] : updates_) {
      MatchUpdate(key, story);
    }
    for (const auto& [key, story] : counts_) {
      MatchCount(key, story);
    }
    for (const auto& [key, story] : models_) {
      MatchModel(key, story);
    }
    return std::move(result_);
  }

 private:
  Status NameSides(const std::vector<Leaf>& site_log, const std::vector<Leaf>& aggregator_log) {
    const auto find = [](const std::vector<Leaf>& log, EventType type, std::string_view field) {
      for (const Leaf& leaf : log) {
        if (leaf.event.type() == type) {
          return leaf.event.Text(field);
        }
      }
      return std::string();
    };
    result_.site = find(site_log, EventType::kAgentStarted, "site");
    result_.aggregator = find(aggregator_log, EventType::kAggregatorStarted, "aggregator");
    if (result_.site.empty()) {
      return Error(StatusCode::kInvalidArgument,
                   "the first log has no `agent.started`: it is not a site's; give the site's log "
                   "first and the aggregator's second");
    }
    if (result_.aggregator.empty()) {
      return Error(
          StatusCode::kInvalidArgument,
          "the second log has no `aggregator.started`: it is not an aggregator's; give the "
          "site's log first and the aggregator's second");
    }
    return OkStatus();
  }

  Status ReadSite(const Leaf& leaf) {
    const Event& event = leaf.event;
    const EventType type = event.type();
    const std::uint64_t seq = leaf.frame.seq;
    if (type == EventType::kEgressDecided) {
      ASSIGN_OR_RETURN(const EgressDecided record, ReadEgressDecided(event));
      if (record.decision.result == "allow") {
        allowed_.insert(record.transfer);
      }
    } else if (type == EventType::kEgressIntent || type == EventType::kEgressDone ||
               type == EventType::kEgressAborted) {
      return ReadEgress(seq, event);
    } else if (type == EventType::kUpdateCounted) {
      CountStory& story = counts_[{event.Phase(), result_.site, DigestIn(event, "digest")}];
      story.counted = seq;
      story.commit_seq = static_cast<std::uint64_t>(event.Int("commit_seq"));
    } else if (type == EventType::kUpdateNotCounted) {
      counts_[{event.Phase(), result_.site, DigestIn(event, "digest")}].not_counted = seq;
    } else if (type == EventType::kLogRecovered) {
      RecoveryStory& story = recoveries_[seq];
      story.recovered = seq;
      ASSIGN_OR_RETURN(story.record, ReadLogRecovered(event));
    } else if (type == EventType::kModelIntake || type == EventType::kModelRefused) {
      ReadModel(event, seq, &ModelStory::taken);
    }
    return OkStatus();
  }

  void ReadModel(const Event& event, std::uint64_t seq, std::vector<Said> ModelStory::*side) {
    const Digest model = DigestIn(event, "model");
    if (model.IsZero()) {
      return;  // refused before it had a digest
    }
    ModelStory& story = models_[{event.Phase().job, model}];
    if (story.sent.empty() && story.taken.empty()) {
      story.first = event.Phase();
    }
    (story.*side).push_back({seq, static_cast<std::uint64_t>(event.Int("bytes"))});
  }

  Status ReadEgress(std::uint64_t seq, const Event& event) {
    ASSIGN_OR_RETURN(const EgressStep step, ReadEgressStep(event));
    UpdateStory& story = updates_[{step.key, step.digest}];
    if (event.type() == EventType::kEgressIntent) {
      if (story.intents.empty()) {
        story.decided = allowed_.contains(step.digest);
      }
      story.intents.push_back({seq, step.bytes});
      return OkStatus();
    }
    Said end{seq, step.bytes};
    end.in_time = story.done.size() + story.aborted.size() < story.intents.size();
    if (event.type() == EventType::kEgressDone) {
      story.receipt_seq = step.receipt_seq;
      story.done.push_back(end);
    } else {
      story.aborted.push_back(end);
    }
    return OkStatus();
  }

  Status ReadAggregator(const Leaf& leaf) {
    const Event& event = leaf.event;
    const EventType type = event.type();
    const std::uint64_t seq = leaf.frame.seq;
    if (type == EventType::kPhaseCommitted) {
      ASSIGN_OR_RETURN(const PhaseCommitted record, ReadPhaseCommitted(event));
      for (const Contributor& one : record.contributors) {
        counts_[{record.key, one.site.text(), one.digest}].listed = seq;
        ++listings_[{record.key.job, record.key.round, record.key.phase, one.site.text()}];
      }
    } else if (type == EventType::kModelSent) {
      ASSIGN_OR_RETURN(const ModelTransfer record, ReadModelTransfer(event));
      if (record.to.party == "site/" + result_.site) {
        ReadModel(event, seq, &ModelStory::sent);
      }
    } else if (type == EventType::kIngressReceived || type == EventType::kIngressRefused ||
               type == EventType::kIngressPartial) {
      ReadIngress(event, seq);
    } else if (event.Text("log") == site_origin_) {
      if (type == EventType::kHeadWitnessed) {
        witnessed_.emplace_back(seq, static_cast<std::uint64_t>(event.Int("size")));
      } else if (type == EventType::kHeadRecovered) {
        recoveries_[static_cast<std::uint64_t>(event.Int("recovered_seq"))].taken = seq;
      }
    }
    return OkStatus();
  }

  void ReadIngress(const Event& event, std::uint64_t seq) {
    const UpdateKey key{event.Phase(), DigestIn(event, "digest")};
    const std::string site = event.Text("site");
    const Said said{seq, static_cast<std::uint64_t>(event.Int("bytes"))};
    const bool received = event.type() == EventType::kIngressReceived;
    if (received) {
      received_.insert({key.phase, site, key.digest});
    }
    // A refusal without a digest names no update: the site has it as a broken attempt.
    if (site != result_.site || key.digest.IsZero()) {
      return;
    }
    UpdateStory& story = updates_[key];
    if (received) {
      story.received.push_back(said);
      received_digests_[{key.phase.job, key.phase.round, key.phase.phase}].insert(key.digest);
    } else {
      (event.type() == EventType::kIngressRefused ? story.refused : story.partial).push_back(said);
    }
  }

  // The copy had at least the entries that were witnessed before it was made. A head may overtake
  // what was uploaded meanwhile, so the lost time begins one head earlier.
  void FindLostTime(RecoveryStory& story) const {
    if (!story.record || !story.taken) {
      return;
    }
    std::uint64_t last = 0;
    for (const auto& [seq, size] : witnessed_) {
      if (seq > *story.taken || size > story.record->kept) {
        break;
      }
      story.after = std::exchange(last, seq);
    }
  }

  bool IsLost(std::optional<std::uint64_t> aggregator_seq) const {
    return aggregator_seq &&
           std::any_of(recoveries_.begin(), recoveries_.end(), [&](const auto& one) {
             const RecoveryStory& story = one.second;
             return story.record && story.taken && story.after < *aggregator_seq &&
                    *aggregator_seq < *story.taken;
           });
  }

  void MatchRecovery(const RecoveryStory& story) {
    Match match;
    match.subject = MatchSubject::kRecovery;
    match.site = result_.site;
    match.site_seq = story.recovered;
    match.aggregator_seq = story.taken;
    if (!story.record) {
      match.match = MatchClass::kUnexplained;
      match.text = "the aggregator took a recovery that the site's log does not tell of";
    } else {
      match.match = story.taken ? MatchClass::kMatched : MatchClass::kInFlight;
      match.digest = story.record->remembered_root;
      match.text = "the site went on from a restored copy; its entries " +
                   Number(story.record->kept) + " to " +
                   Number(std::max<std::uint64_t>(story.record->remembered_size, 1) - 1) +
                   " of before are lost" + (story.taken ? "" : "; the aggregator has not taken it");
    }
    result_.matches.push_back(std::move(match));
  }

  // Why the two sides of an update do not fit; empty if they do.
  std::string Contradiction(const UpdateKey& key, const UpdateStory& story) const {
    if (!story.KnownToSite()) {
      return "the aggregator has it, the site's log does not say it was sent";
    }
    if (story.intents.empty()) {
      return "the site ended an attempt that it had not begun";
    }
    if (!story.decided) {
      return "the site sent it without an `egress.decided` before";
    }
    const auto late = [](const Said& end) { return !end.in_time; };
    if (std::any_of(story.done.begin(), story.done.end(), late) ||
        std::any_of(story.aborted.begin(), story.aborted.end(), late)) {
      return "the site ended an attempt twice";
    }
    if (story.received.size() > 1) {
      return "the aggregator logged it as received " + Number(story.received.size()) + " times";
    }
    const auto others = received_digests_.find({key.phase.job, key.phase.round, key.phase.phase});
    if (others != received_digests_.end() && others->second.size() > 1 && !story.received.empty()) {
      return "the aggregator received different updates of this site for one phase";
    }
    const std::uint64_t size = story.intents.front().bytes;
    if (!story.received.empty() && story.received.front().bytes != size) {
      return "received " + Number(story.received.front().bytes) + " bytes of " + Number(size);
    }
    if (!story.done.empty() && story.received.empty()) {
      return "the site has a receipt, the aggregator's log has no such entry";
    }
    if (!story.done.empty() && story.receipt_seq != story.received.front().seq) {
      return "the receipt is of another entry of the aggregator's log";
    }
    // What arrived in attempts that broke off cannot be more than the site wrote in all its
    // attempts.
    const std::size_t open = story.intents.size() - story.done.size() - story.aborted.size();
    const std::uint64_t written =
        Sum(story.aborted) + Sum(story.done) + static_cast<std::uint64_t>(open) * size;
    const std::uint64_t whole = story.received.empty() ? 0 : size;
    const std::uint64_t broken = Sum(story.partial) + Sum(story.refused);
    if (std::max(whole, broken) > written) {
      return "more bytes arrived (" + Number(std::max(whole, broken)) +
             ") than the site says it wrote (" + Number(written) + ")";
    }
    return {};
  }

  void MatchUpdate(const UpdateKey& key, const UpdateStory& story) {
    Match match;
    match.subject = MatchSubject::kUpdate;
    match.key = key.phase;
    match.site = result_.site;
    match.digest = key.digest;
    match.site_seq = First({&story.intents, &story.done, &story.aborted});
    match.aggregator_seq = First({&story.received, &story.refused, &story.partial});
    match.bytes = !story.received.empty() ? story.received.front().bytes
                                          : std::max(Sum(story.partial), Sum(story.refused));
    match.text = Contradiction(key, story);
    const bool open = story.intents.size() > story.done.size() + story.aborted.size();
    if (!story.KnownToSite() && IsLost(match.aggregator_seq)) {
      match.match = MatchClass::kLost;
      match.text = "the site's entries about it are lost";
    } else if (!match.text.empty()) {
      match.match = MatchClass::kUnexplained;
    } else if (!story.done.empty()) {
      match.match = MatchClass::kMatched;
    } else if (!story.received.empty()) {
      match.match = open ? MatchClass::kInFlight : MatchClass::kAborted;
      match.text = "received; the site has no receipt";
    } else if (!story.refused.empty()) {
      match.match = MatchClass::kRefused;
    } else {
      match.match = open ? MatchClass::kInFlight : MatchClass::kAborted;
    }
    result_.matches.push_back(std::move(match));
  }

  using CountKey = std::tuple<PhaseKey, std::string, Digest>;  // phase, site, digest

  void MatchCount(const CountKey& key, const CountStory& story) {
    const auto& [phase, site, digest] = key;
    if (!story.listed && !story.counted) {
      return;  // not counted, and both agree
    }
    Match match;
    match.subject = MatchSubject::kCounted;
    match.key = phase;
    match.site = site;
    match.digest = digest;
    match.aggregator_seq = story.listed;
    match.site_seq = story.counted ? story.counted : story.not_counted;
    match.match = MatchClass::kUnexplained;
    if (!story.listed) {
      match.text = "the site says counted, the aggregator's log has no such commit";
    } else if (listings_[{phase.job, phase.round, phase.phase, site}] > 1) {
      match.text = "the site is counted twice in one phase";
    } else if (!received_.contains(key)) {
      match.text = "counted, but the aggregator never received it in this epoch";
    } else if (site != result_.site) {
      match.match = MatchClass::kMatched;  // as far as the aggregator's own log shows
      match.text = "of another site: its own log was not given";
    } else if (story.not_counted) {
      match.text = "counted by the aggregator, the site says not counted";
    } else if (!story.counted && IsLost(story.listed)) {
      match.match = MatchClass::kLost;
      match.text = "the site's entry about it is lost";
    } else if (!story.counted) {
      match.match = MatchClass::kInFlight;
      match.text = "counted; the site has not logged the outcome";
    } else if (story.commit_seq != story.listed) {
      match.text = "the site saw another commit entry";
    } else {
      match.match = MatchClass::kMatched;
    }
    result_.matches.push_back(std::move(match));
  }

  using ModelKey = std::pair<JobId, Digest>;

  // By digest alone: an agent that still has a model does not fetch it again.
  void MatchModel(const ModelKey& key, const ModelStory& story) {
    Match match;
    match.subject = MatchSubject::kModel;
    match.key = story.first;
    match.site = result_.site;
    match.digest = key.second;
    match.site_seq = First({&story.taken});
    match.aggregator_seq = First({&story.sent});
    match.bytes = (story.sent.empty() ? story.taken : story.sent).front().bytes;
    const auto other_size = [&](const Said& one) {
      return one.bytes != 0 && one.bytes != match.bytes;
    };
    match.match = MatchClass::kUnexplained;
    if (story.sent.empty()) {
      match.text = "the site got a model that the aggregator's log does not say was sent";
    } else if (story.taken.empty() && IsLost(match.aggregator_seq)) {
      match.match = MatchClass::kLost;
      match.text = "the site's entry about it is lost";
    } else if (story.taken.empty()) {
      match.match = MatchClass::kInFlight;
      match.text = "sent; the site has not logged that it arrived";
    } else if (std::any_of(story.taken.begin(), story.taken.end(), other_size)) {
      match.text = "the two logs give different sizes";
    } else {
      match.match = MatchClass::kMatched;
    }
    result_.matches.push_back(std::move(match));
  }

  Reconciliation result_;
  std::string site_origin_;
  std::map<std::uint64_t, RecoveryStory> recoveries_;               // by the site's entry
  std::vector<std::pair<std::uint64_t, std::uint64_t>> witnessed_;  // aggregator's entry, size
  std::set<Digest> allowed_;
  std::map<UpdateKey, UpdateStory> updates_;
  std::map<CountKey, CountStory> counts_;
  std::map<ModelKey, ModelStory> models_;
  std::set<CountKey> received_;
  // How often a site is listed in commits of a phase, over all epochs.
  std::map<std::tuple<JobId, RoundNumber, std::string, std::string>, int> listings_;
  // Of the site, over all epochs of a phase.
  std::map<std::tuple<JobId, RoundNumber, std::string>, std::set<Digest>> received_digests_;
};

StatusOr<std::vector<Leaf>> ReadAll(const std::string& path) {
  std::vector<Leaf> leaves;
  RETURN_IF_ERROR(ForEachLeaf(path, [&](Leaf& leaf) {
    leaves.push_back(std::move(leaf));
    return OkStatus();
  }));
  return leaves;
}

}  // namespace

std::uint64_t Reconciliation::Count(MatchClass match) const {
  return static_cast<std::uint64_t>(std::count_if(
      matches.begin(), matches.end(), [&](const Match& one) { return one.match == match; }));
}

StatusOr<Reconciliation> Reconcile(const std::vector<Leaf>& site_log,
                                   const std::vector<Leaf>& aggregator_log) {
  return Reconciler().Run(site_log, aggregator_log);
}

StatusOr<Reconciliation> ReconcileFiles(const std::string& site_log,
                                        const std::string& aggregator_log) {
  ASSIGN_OR_RETURN(const std::vector<Leaf> site, ReadAll(site_log));
  ASSIGN_OR_RETURN(const std::vector<Leaf> aggregator, ReadAll(aggregator_log));
  return Reconcile(site, aggregator);
}

}  // namespace domicile::audit

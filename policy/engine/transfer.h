// One crossing of a border, as the gate that asks describes it. Every field is a plain value:
// places are texts as the roster has them, and Decide refuses what it cannot read.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "policy/language/vocabulary.h"

namespace domicile::policy {

// Where a gate stands.
enum class DecisionPoint : std::uint8_t {
  kNone = 0,
  kOffer = 1,             // site: a plan is offered
  kDataOpen = 2,          // site: before the trainer gets a task
  kEgress = 3,            // site: the real bytes, before the first leaves
  kIngress = 4,           // aggregator: an update has arrived
  kAggregateRelease = 5,  // aggregator: a sum becomes a model; asked for each contributor
  kModelToSite = 6,       // aggregator: a model goes to a site; asked for each contributor (so not
                          // for a first model that nobody contributed to)
  kModelDownload = 7,     // aggregator: a model goes to a person; asked for each contributor
  kView = 8,              // aggregator: a person looks at what came from a site
  kEnrolment = 9,         // both: may this site and this aggregator work together at all
  kParentSum = 10,        // aggregator: a sum goes to a parent; asked for each contributor
};
std::string_view Code(DecisionPoint point);
std::optional<DecisionPoint> DecisionPointFromCode(std::string_view code);

enum class PartyRole : std::uint8_t {
  kNone = 0,
  kSite = 1,
  kAggregator = 2,
  kOperator = 3,
  kAuditor = 4,
};
std::string_view Code(PartyRole role);
std::optional<PartyRole> PartyRoleFromCode(std::string_view code);

// Who gives or gets, from certificate and roster. The roster has no place for persons: for an
// operator take the place and control of the aggregator's own roster entry if operators work in
// that office. An empty or unreadable place, or an empty control set, denies.
struct Party {
  PartyRole role = PartyRole::kNone;
  std::string id;            // the name in its role: `zurich-basel`, `main`, `alice`
  std::string organisation;  // who runs it
  std::string jurisdiction;
  std::vector<std::string> control;
  // How the place is known. A certificate of a site or an aggregator carries it; a person's does
  // not, and their place is declared. kUnset: nobody says, which denies where a rule asks.
  LocationEvidence evidence = LocationEvidence::kUnset;
};

// What the plan says, in numbers; the same at every decision point of the job.
struct PlanFacts {
  std::uint64_t rounds = 0;
  std::uint64_t local_steps = 0;         // optimizer steps a round
  std::uint64_t batch = 0;               // rows a step; 0: all of them
  double clip_l2 = 0;                    // of a delta
  std::uint32_t quorum = 0;              // fewest contributors of a committed phase
  std::uint32_t max_sites = 0;           // cap of contributors
  std::uint32_t scale_bits = 0;          // of the grid of deltas
  std::uint64_t numbers_per_round = 0;   // of one site's train update, metrics not counted
  std::uint64_t metrics_per_round = 0;   // scalar metrics in it
  std::uint64_t statistics_numbers = 0;  // once a job; 0: no statistics phase
  std::uint64_t evaluation_numbers = 0;  // once a job: histogram bins and counts; 0: none
  std::uint64_t inputs = 0;
  std::uint64_t parameters = 0;
  WeightRule weights = WeightRule::kUnset;
  DpMode dp_mode = DpMode::kNone;
  // What differential privacy the whole run spends, and how; unset without any.
  std::optional<double> epsilon = {};
  std::optional<double> delta = {};
  DpUnit dp_unit = DpUnit::kUnset;       // whose presence is hidden
  Sampling sampling = Sampling::kUnset;  // what `epsilon` counts on
  // Of secure aggregation: the least share of the contributors, 0 to 1, that can open the sum.
  // Unset: there is none.
  std::optional<double> secagg_threshold = {};
};

// Approvals of one role that one signed grant bears out.
struct PresentApproval {
  ApprovalRole role = ApprovalRole::kNone;
  std::uint32_t count = 0;                 // of distinct persons, in no other entry of this role
  std::string organisation = {};           // theirs; empty: unknown, and counts for none
  std::optional<WallTime> signed_at = {};  // by the earliest of them; unset: unknown, as if too old
};

// What the receiver binds itself to. Unset: it has promised nothing.
struct RetentionPromise {
  std::optional<std::chrono::seconds> audit;         // keeps its log at least so long
  std::optional<std::chrono::seconds> update;        // keeps an update at most so long
  std::optional<std::chrono::seconds> model_review;  // reviews a model at least so often
};

// A site whose numbers are in a sum.
struct Contributor {
  std::string site;
  std::string organisation;
};

struct Transfer {
  DecisionPoint point = DecisionPoint::kNone;
  // The site whose records are behind it, also where the bytes come from the aggregator.
  Party from;
  Party to;
  // kModelToSite, kModelDownload, kView, kParentSum: the aggregator that holds the bytes. Its
  // border to `to` is crossed too.
  std::optional<Party> via;
  // Relays on the way that pass the sealed bytes on and cannot open them; none if the two ends
  // speak directly. Whoever can open them is a receiver and needs a transfer of its own.
  std::vector<Party> transit;
  DatasetAlias dataset;
  // What is in it; at kOffer and kDataOpen: all that the plan will ask for.
  std::vector<UpdateKind> kinds;
  // What `to` can see of this one site's contribution. Of a model, nothing can be: there it must be
  // set but is not weighed, and `contributors` is.
  View view = View::kNone;
  Purpose purpose = Purpose::kNone;
  PlanFacts plan;
  // Who will get models: every party the plan's recipients stand for. Wanted at kOffer and
  // kDataOpen, checked at kEgress and kIngress if given; elsewhere not read, since `to` is the one
  // who gets it.
  std::vector<Party> recipients;

  // Forms of output among the numbers. Unset: nobody says. The gate of an agent builds every
  // message from numbers on a declared grid, so it knows that there is none.
  std::optional<std::set<Output>> outputs;

  // Contributors of distinct organisations, without which a rule on numbers of sites cannot be
  // evaluated. Wanted at kAggregateRelease, kModelToSite and kModelDownload.
  std::optional<std::uint32_t> contributors;
  // The same, by name: wanted there where a rule names who counts (`allow.contributors`).
  std::vector<Contributor> contributor_sites;
  // Records behind these very numbers (training rows; test rows of an evaluation). Wanted at
  // kEgress; elsewhere checked if known.
  std::optional<std::uint64_t> records_behind;
  std::uint64_t bytes = 0;    // kEgress, kIngress: of the encoded update
  std::uint64_t numbers = 0;  // kEgress, kIngress: all numbers in it, metrics included
  std::uint64_t metrics =
      0;  // kEgress, kIngress: the scalar metrics among them (no histogram bins)
  // The ledger: sum over earlier releases of this dataset of numbers / records behind them.
  double released_per_record = 0;
  std::uint64_t runs_today =
      0;  // runs begun on this dataset in the last 24 hours, this one included
  // What the trainer's sandbox gives; empty: there is none, or not yet known. Wanted at kDataOpen
  // and kEgress, checked at kOffer if known.
  std::optional<SandboxNetwork> sandbox_network;
  std::optional<SandboxProfile> sandbox_profile;
  std::vector<PresentApproval> approvals;  // kOffer, kDataOpen, kEgress

  // Wanted where the site decides, if a rule asks; unset is unknown and then denies.
  std::optional<Digest> plan_digest;     // SHA-256 of the plan, which fixes the model
  std::optional<Digest> trainer_digest;  // SHA-256 of the trainer's program
  std::optional<double> epsilon_spent;   // the ledger: by earlier runs in the budget window
  // Persons whose data crossed a border of their country since 1 January, with this transfer.
  std::optional<std::uint64_t> subjects_exported;
  // Others that have cosigned the sender's log, and the age of the last head they cosigned.
  std::optional<std::uint32_t> witnesses;
  std::optional<std::chrono::seconds> unwitnessed_age;
  // Between the two ends, measured when they connected. Wanted at every point of the two ends.
  std::optional<std::chrono::milliseconds> clock_skew;
  RetentionPromise retention;  // of `to`, where it gets a contribution
  WallTime now;
};

}  // namespace domicile::policy

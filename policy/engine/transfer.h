// One crossing of a border, as the gate that asks describes it. Every field is a plain value:
// places are texts as the roster has them, and Decide refuses what it cannot read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
};

struct PresentApproval {
  ApprovalRole role = ApprovalRole::kNone;
  std::uint32_t count = 0;  // of distinct persons
};

struct Transfer {
  DecisionPoint point = DecisionPoint::kNone;
  // The site whose records are behind it, also where the bytes come from the aggregator.
  Party from;
  Party to;
  // kModelToSite, kModelDownload, kView: the aggregator that holds the bytes. Its border to `to` is
  // crossed too.
  std::optional<Party> via;
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

  // Contributors of distinct organisations, without which a rule on numbers of sites cannot be
  // evaluated. Wanted at kAggregateRelease, kModelToSite and kModelDownload.
  std::optional<std::uint32_t> contributors;
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
  std::vector<PresentApproval> approvals;  // kOffer, kDataOpen, kEgress
  WallTime now;
};

}  // namespace domicile::policy

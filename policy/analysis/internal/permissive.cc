#include <algorithm>
#include <limits>
#include <map>

#include "policy/analysis/internal/space.h"
#include "policy/engine/fold.h"

namespace domicile::policy::analysis::internal {
namespace {

// Far beyond any bound that a policy can state, and exact as a double.
constexpr std::uint64_t kEndless = std::uint64_t{1} << 52U;
constexpr std::uint32_t kManySites = std::numeric_limits<std::uint32_t>::max();

std::string NameOf(const Policy& site) {
  const std::string& id = site.identity.id;
  const std::string name = id.substr(id.rfind('/') + 1);
  return SiteId::Parse(name).ok() ? name : "site";
}

// As many as any clause asks for, each by a person of another organisation. When they were signed
// is set with the date of the request.
std::vector<PresentApproval> AllApprovals(const Terms& terms) {
  std::vector<PresentApproval> approvals;
  for (const auto& [role, wanted] : FoldApprovals(terms)) {
    for (std::uint32_t i = 1; i <= wanted.count; ++i) {
      approvals.push_back({role, 1, "approver-" + std::to_string(i), std::nullopt});
    }
  }
  return approvals;
}

using Names = std::set<std::string>;

// A program or plan that every list names; any at all where there is no list.
std::optional<Digest> AllowedDigest(const Clauses<Names>& lists) {
  const std::optional<Names> all = Intersection(lists);
  if (!all) {
    return Digest{};
  }
  for (const std::string& text : *all) {
    if (const StatusOr<Digest> digest = ParseDigest(text); digest.ok()) {
      return *digest;
    }
  }
  return std::nullopt;
}

}  // namespace

Transfer PermissiveTransfer(const Policy& site, const DatasetAlias& dataset, const Terms* terms) {
  Transfer transfer;
  transfer.from.role = PartyRole::kSite;
  transfer.from.id = NameOf(site);
  transfer.from.organisation = kOwnOrganisation;
  transfer.from.evidence = LocationEvidence::kAttested;
  if (site.site) {
    transfer.from.jurisdiction = site.site->jurisdiction.text();
    for (const Jurisdiction& place : site.site->control_jurisdictions) {
      transfer.from.control.push_back(place.text());
    }
  }
  transfer.dataset = dataset;
  transfer.plan = {.rounds = 1,
                   .local_steps = kEndless,
                   .batch = kEndless,
                   .clip_l2 = std::numeric_limits<double>::min(),
                   .quorum = kManySites,
                   .max_sites = kManySites,
                   .scale_bits = 32,
                   .numbers_per_round = 1,
                   .inputs = 1,
                   .parameters = 1,
                   .weights = WeightRule::kEqual,
                   .dp_mode = DpMode::kEnforced,
                   .epsilon = 0,
                   .delta = 0,
                   .dp_unit = DpUnit::kSite,
                   .sampling = Sampling::kPoissonByAgent,
                   .secagg_threshold = 1};
  transfer.contributors = kManySites;
  transfer.records_behind = kEndless;
  transfer.bytes = 1;
  transfer.numbers = 1;
  transfer.runs_today = 1;
  transfer.sandbox_network = SandboxNetwork::kNone;
  transfer.epsilon_spent = 0;
  transfer.subjects_exported = 1;
  transfer.witnesses = kManySites;
  transfer.unwitnessed_age = std::chrono::seconds(0);
  transfer.clock_skew = std::chrono::milliseconds(0);
  transfer.retention = {.audit = std::chrono::seconds(kEndless),
                        .update = std::chrono::seconds(0),
                        .model_review = std::chrono::seconds(0)};
  transfer.outputs = std::set<Output>{};
  transfer.sandbox_profile = SandboxProfile::kTee;
  if (terms != nullptr) {
    transfer.approvals = AllApprovals(*terms);
    transfer.plan_digest = AllowedDigest(terms->models);
    transfer.trainer_digest = AllowedDigest(terms->trainers);
    for (const std::string& name : Intersection(terms->contributors).value_or(Names{})) {
      transfer.contributor_sites.push_back({name, "organisation-" + name});
    }
  }
  return transfer;
}

}  // namespace domicile::policy::analysis::internal

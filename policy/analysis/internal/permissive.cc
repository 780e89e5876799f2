#include <limits>

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

}  // namespace

Transfer PermissiveTransfer(const Policy& site, const DatasetAlias& dataset,
                            const Terms* /*terms*/) {
  Transfer transfer;
  transfer.from.role = PartyRole::kSite;
  transfer.from.id = NameOf(site);
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
  return transfer;
}

}  // namespace domicile::policy::analysis::internal

#include "policy/analysis/expiring.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace domicile::policy::analysis {
namespace {

class Collector {
 public:
  Collector(WallTime now, WallTime until) : now_(now), until_(until) {}

  void Add(WallTime at, std::string what, const std::string& file, std::uint32_t line) {
    if (at < until_) {
      endings_.push_back(
          {at, std::move(what), line == 0 ? file : file + ":" + std::to_string(line), at <= now_});
    }
  }

  std::vector<Ending> Take() {
    std::sort(endings_.begin(), endings_.end(), [](const Ending& a, const Ending& b) {
      return std::tie(a.at, a.where, a.what) < std::tie(b.at, b.where, b.what);
    });
    return std::move(endings_);
  }

 private:
  WallTime now_;
  WallTime until_;
  std::vector<Ending> endings_;
};

void AddDocuments(const Policy& policy, const PolicyDataset& dataset, Collector& collector) {
  struct Named {
    const std::optional<DocumentRef>& document;
    const char* name;
  };
  for (const Named& named : {Named{dataset.dpia, "the impact assessment (refs.dpia)"},
                             Named{dataset.tia, "the transfer assessment (refs.tia)"},
                             Named{dataset.permit, "the data permit (refs.permit)"},
                             Named{dataset.baa, "the business associate agreement (refs.baa)"}}) {
    if (named.document) {
      collector.Add(named.document->valid_until,
                    std::string(named.name) + " of dataset `" + dataset.alias.text() + "`",
                    policy.file, dataset.line);
    }
  }
}

}  // namespace

std::vector<Ending> Expiring(const World& world, WallTime now, WallTime until) {
  Collector collector(now, until);
  std::set<Regime> regimes;
  for (const Policy& policy : world.policies) {
    collector.Add(policy.identity.expires,
                  std::string(Code(policy.source)) + " policy `" + policy.identity.id + "`",
                  policy.file, 0);
    for (const PolicyDataset& dataset : policy.datasets) {
      regimes.insert(dataset.regimes.begin(), dataset.regimes.end());
      AddDocuments(policy, dataset, collector);
    }
    for (const Rule& rule : policy.rules) {
      for (const TransferGround& ground : rule.transfers) {
        if (ground.valid_until) {
          collector.Add(*ground.valid_until,
                        "transfers to " + ground.to.text() + " by " +
                            std::string(Code(ground.mechanism)) +
                            (ground.importer.empty() ? "" : " for `" + ground.importer + "`"),
                        policy.file, ground.line);
        }
      }
    }
  }
  collector.Add(world.facts.expires, "the legal facts `" + world.facts.id + "`, all of them",
                world.facts.file, 0);
  for (const Fact& fact : world.facts.facts) {
    const bool is_asked = fact.kind == FactKind::kBloc || regimes.contains(fact.regime);
    if (fact.until_date && is_asked && *fact.until_date > now) {
      collector.Add(*fact.until_date, "legal fact `" + fact.id + "`", world.facts.file, fact.line);
    }
  }
  return collector.Take();
}

}  // namespace domicile::policy::analysis

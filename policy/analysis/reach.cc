#include "policy/analysis/reach.h"

#include <algorithm>

#include "base/text.h"
#include "policy/analysis/internal/ways.h"

namespace domicile::policy::analysis {
namespace {

bool MayShare(const Area& area, const Jurisdiction& place, const Facts& facts, WallTime now) {
  return Overlaps(area, place, facts, now, nullptr) != Cover::kNo;
}

bool Concerns(const ReachQuestion& question, const Policy& site, const PolicyDataset& dataset,
              const Facts& facts) {
  const WallTime now = question.window.from;
  if ((!question.site.empty() && question.site != site.identity.id) ||
      (!question.dataset.empty() && question.dataset != dataset.alias.text())) {
    return false;
  }
  if (question.from && !MayShare(*question.from, site.site->jurisdiction, facts, now)) {
    return false;
  }
  const auto& subjects = dataset.subject_jurisdictions;
  return !question.subjects ||
         std::any_of(subjects.begin(), subjects.end(), [&](const Jurisdiction& place) {
           return MayShare(*question.subjects, place, facts, now);
         });
}

bool IsAlreadyThere(const ReachQuestion& question, const SiteSection& site, const Facts& facts) {
  const auto is_there = [&](const Jurisdiction& place) {
    return MayShare(question.to, place, facts, question.window.from);
  };
  const auto& control = site.control_jurisdictions;
  return (question.by != By::kControl && is_there(site.jurisdiction)) ||
         (question.by != By::kPlace && std::any_of(control.begin(), control.end(), is_there));
}

std::string PartyText(const Party& party) {
  return std::string(Code(party.role)) + " `" + party.id + "` in " + party.jurisdiction +
         ", controlled from " + Join(party.control, ", ") + ", run by " + party.organisation;
}

std::string KindsText(const Transfer& transfer) {
  std::vector<std::string> kinds;
  for (const UpdateKind kind : transfer.kinds) {
    kinds.emplace_back(Code(kind));
  }
  return Join(kinds, ", ");
}

}  // namespace

const DatasetReach* ReachResult::Shortest() const {
  const DatasetReach* best = nullptr;
  const auto is_better = [&best](const DatasetReach& each) {
    if (best == nullptr || each.way.size() != best->way.size()) {
      return best == nullptr || each.way.size() < best->way.size();
    }
    return !each.way.empty() && each.way.back().transfer.now < best->way.back().transfer.now;
  };
  for (const DatasetReach& each : datasets) {
    if (each.reaches && is_better(each)) {
      best = &each;
    }
  }
  return best;
}

ReachResult Reach(const World& world, const ReachQuestion& question) {
  ReachResult result;
  for (const Policy& site : world.policies) {
    if (site.source != PolicySource::kSite || !site.site) {
      continue;
    }
    const Effective effective = EffectiveOf(world, site);
    bool is_counted = false;
    for (const PolicyDataset& dataset : site.datasets) {
      if (!Concerns(question, site, dataset, world.facts)) {
        continue;
      }
      DatasetReach reach = {site.identity.id, dataset.alias.text(), false, false, {}};
      const auto terms = effective.Find(dataset.alias);
      const Transfer base = internal::PermissiveTransfer(site, dataset.alias, terms.get());
      const internal::Space space =
          internal::Space::About(std::array<const World*, 1>{&world}, site.identity.id,
                                 dataset.alias, question.window, {question.to});
      Covered covered = space.Cover(internal::AllPoints());
      covered.sites = is_counted ? 0 : 1;
      is_counted = true;
      reach.is_there = IsAlreadyThere(question, *site.site, world.facts);
      if (!reach.is_there) {
        internal::WayFinder finder(effective, space, base, world.facts, question);
        reach.way = finder.Find();
        covered.decisions = finder.decisions();
      }
      reach.reaches = reach.is_there || !reach.way.empty();
      result.datasets.push_back(std::move(reach));
      result.covered.Add(covered);
    }
  }
  return result;
}

std::string Print(const Hop& hop) {
  const Transfer& transfer = hop.transfer;
  std::string text = std::string(Code(transfer.point)) + ": " + KindsText(transfer) + " to " +
                     PartyText(transfer.to) + "\n";
  if (transfer.via) {
    text += "     from " + PartyText(*transfer.via) + "\n";
  }
  text += "     at " + PrintTime(transfer.now) + ", for " + std::string(Code(transfer.purpose));
  if (transfer.kinds != std::vector<UpdateKind>{UpdateKind::kModelFinal}) {
    text += ", view " + std::string(Code(transfer.view));
  }
  std::vector<std::string> rules;
  for (const Origin& rule : hop.rules) {
    if (rule.rule.starts_with("rule ") || rule.rule.starts_with("transfer ")) {
      rules.push_back(Print(rule));
    }
  }
  return text + "\n     allowed by " + (rules.empty() ? "no rule" : Join(rules, "; ")) + "\n";
}

Json ToJson(const Hop& hop) {
  const auto party = [](const Party& each) {
    JsonArray control;
    for (const std::string& place : each.control) {
      control.emplace_back(place);
    }
    return JsonObject{{"role", std::string(Code(each.role))},
                      {"id", each.id},
                      {"organisation", each.organisation},
                      {"jurisdiction", each.jurisdiction},
                      {"control", std::move(control)}};
  };
  JsonArray kinds;
  for (const UpdateKind kind : hop.transfer.kinds) {
    kinds.emplace_back(std::string(Code(kind)));
  }
  JsonArray rules;
  for (const Origin& rule : hop.rules) {
    rules.emplace_back(Print(rule));
  }
  JsonObject json = {{"point", std::string(Code(hop.transfer.point))},
                     {"to", party(hop.transfer.to)},
                     {"kinds", std::move(kinds)},
                     {"view", std::string(Code(hop.transfer.view))},
                     {"purpose", std::string(Code(hop.transfer.purpose))},
                     {"from", PrintTime(hop.period.from)},
                     {"until", PrintTime(hop.period.until)},
                     {"rules", std::move(rules)}};
  if (hop.transfer.via) {
    json.emplace("via", party(*hop.transfer.via));
  }
  return json;
}

}  // namespace domicile::policy::analysis

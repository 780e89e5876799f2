#include "policy/engine/internal/ground.h"

#include <algorithm>

namespace domicile::policy::internal {
namespace {

class GroundFinder {
 public:
  GroundFinder(const BorderView& border, const Clause<std::set<TransferGround>>& stated)
      : border_(border), stated_(stated) {
    ground_.origin = stated.origin;
  }

  // From so many people on, only these mechanisms count, of each threshold that holds.
  void ApplyThresholds(const RegimeFacts& law, const DatasetTraits& traits) {
    for (const Fact* fact : law.thresholds) {
      const bool names =
          fact->categories.empty() ||
          std::any_of(traits.categories.begin(), traits.categories.end(),
                      [fact](Category category) { return fact->categories.contains(category); });
      const bool holds = border_.now() >= fact->from_date &&
                         !(fact->until_date && border_.now() >= *fact->until_date);
      if (!fact->mechanisms.empty() && names && holds &&
          MayReach(traits.subjects_count, fact->at_least)) {
        Use(*fact);
        thresholds_.push_back(fact);
      }
    }
  }

  void ApplyFact(const Fact& fact) {
    const Cover from = border_.coverage.Any(fact.from, border_.from, border_.used);
    if (from == Cover::kNo) {
      return;
    }
    const Cover to = border_.coverage.Any(fact.to, border_.to, border_.used);
    if (to == Cover::kNo) {
      return;
    }
    if (from == Cover::kUnknown || to == Cover::kUnknown) {
      ground_.is_unknown = true;
      return;
    }
    if (border_.now() < fact.from_date) {
      return;  // decided, but not yet law
    }
    if (!fact.HoldsAt(border_.now()) || border_.now() >= border_.facts().expires) {
      // A decision that fell matters to who relied on it.
      Use(fact);
      ground_.has_expired_fact =
          ground_.has_expired_fact || fact.kind == FactKind::kFreeFlow || ReliesOnAdequacy();
      return;
    }
    if (fact.kind == FactKind::kFreeFlow) {
      ApplyFreeFlow(fact);
    } else {
      ApplyAdequacy(fact);
    }
  }

  void ApplyDocuments() {
    for (const TransferGround& entry : stated_.value) {
      if (entry.mechanism == Mechanism::kAdequacy || !Fits(entry)) {
        continue;
      }
      if (IsDerogation(entry.mechanism) && !border_.derogations_count) {
        ground_.has_derogation = true;
        continue;
      }
      if (!Counts(entry.mechanism)) {
        ground_.is_over_threshold = true;
        continue;
      }
      (IsSafeguard(entry.mechanism) ? ground_.by_safeguard : ground_.by_document) = true;
      if (!ground_.by_fact) {
        Point(entry, std::string(Code(entry.mechanism)));
      }
    }
  }

  Ground Take() { return std::move(ground_); }

 private:
  void Use(const Fact& fact) const {
    if (border_.used != nullptr) {
      border_.used->insert(fact.id);
    }
  }

  bool Counts(Mechanism mechanism) const {
    return std::all_of(thresholds_.begin(), thresholds_.end(), [mechanism](const Fact* fact) {
      return fact->mechanisms.contains(mechanism);
    });
  }

  // The entry is the rule to show.
  void Point(const TransferGround& entry, std::string text) {
    ground_.origin = stated_.origin;
    ground_.origin.rule =
        "transfer to " + entry.to.text() + " by " + std::string(Code(entry.mechanism));
    ground_.origin.line = entry.line;
    ground_.text = std::move(text);
  }

  bool Fits(const TransferGround& entry) {
    const Cover cover = border_.coverage.Of(entry.to, border_.to, border_.used);
    ground_.is_unknown = ground_.is_unknown || cover == Cover::kUnknown;
    if (cover != Cover::kYes || (!entry.importer.empty() && entry.importer != border_.importer)) {
      return false;
    }
    if (entry.valid_until && border_.now() >= *entry.valid_until) {
      ground_.has_expired_document = true;
      return false;
    }
    return true;
  }

  bool ReliesOnAdequacy() const {
    return std::any_of(stated_.value.begin(), stated_.value.end(),
                       [this](const TransferGround& entry) {
                         return entry.mechanism == Mechanism::kAdequacy &&
                                border_.coverage.Of(entry.to, border_.to, nullptr) != Cover::kNo;
                       });
  }

  void ApplyFreeFlow(const Fact& fact) {
    Use(fact);
    if (thresholds_.empty()) {
      ground_.by_fact = true;
      ground_.text = "free flow (fact " + fact.id + ")";
    } else {
      ground_.is_over_threshold = true;
    }
  }

  void ApplyAdequacy(const Fact& fact) {
    ground_.has_adequacy = ground_.has_adequacy || fact.scope.empty();
    for (const TransferGround& entry : stated_.value) {
      // A decision for certified importers only helps an importer that is named.
      const bool in_scope = fact.scope.empty() || !entry.importer.empty();
      if (entry.mechanism != Mechanism::kAdequacy || !in_scope || !Fits(entry)) {
        continue;
      }
      Use(fact);
      if (Counts(Mechanism::kAdequacy)) {
        ground_.by_fact = true;
        Point(entry, "adequacy (fact " + fact.id + ")");
      } else {
        ground_.is_over_threshold = true;
      }
    }
  }

  const BorderView& border_;
  const Clause<std::set<TransferGround>>& stated_;
  std::vector<const Fact*> thresholds_;
  Ground ground_;
};

}  // namespace

bool BorderView::IsExport(const RegimeFacts& law) const {
  bool known = false;
  bool inside = false;
  bool stays = false;
  for (const Fact* fact : law.territories) {
    if (!fact->HoldsAt(now())) {
      continue;
    }
    known = true;
    if (used != nullptr) {
      used->insert(fact->id);
    }
    inside = inside || coverage.Any(fact->from, from, nullptr) != Cover::kNo;
    stays = stays || coverage.Any(fact->from, to, nullptr) == Cover::kYes;
  }
  if (!known || now() >= facts().expires) {
    return LeavesCountry();
  }
  return inside && (LeavesCountry() || !stays);
}

Ground FindGround(const BorderView& border, const RegimeFacts& law, const DatasetTraits& traits,
                  const Clause<std::set<TransferGround>>& stated) {
  GroundFinder finder(border, stated);
  finder.ApplyThresholds(law, traits);
  for (const Fact* fact : law.grounds) {
    finder.ApplyFact(*fact);
  }
  finder.ApplyDocuments();
  return finder.Take();
}

Ground FindDocumentGround(const BorderView& border,
                          const Clause<std::set<TransferGround>>& stated) {
  GroundFinder finder(border, stated);
  finder.ApplyDocuments();
  return finder.Take();
}

}  // namespace domicile::policy::internal

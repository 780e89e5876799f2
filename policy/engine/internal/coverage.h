// Which areas cover which places, at one time: what the facts say of a bloc is looked up once.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "policy/language/facts.h"

namespace domicile::policy::internal {

// One thread at a time.
class Coverage {
 public:
  // Borrows the facts.
  Coverage(const Facts& facts, WallTime now) : facts_(facts), now_(now) {}

  // As policy::Covers.
  Cover Of(const Area& area, const Jurisdiction& place, std::set<std::string>* used);
  // kYes if any covers; else kUnknown if any is unknown; else kNo.
  Cover Any(const std::set<Area>& areas, const Jurisdiction& place, std::set<std::string>* used);

  const Facts& facts() const { return facts_; }
  WallTime now() const { return now_; }

 private:
  struct Known {
    std::string bloc;
    std::string place;
    Cover cover = Cover::kUnknown;
    std::set<std::string> read;  // ids of the facts
  };

  const Facts& facts_;
  const WallTime now_;
  std::vector<Known> known_;  // few: a decision is about a handful of places
};

}  // namespace domicile::policy::internal

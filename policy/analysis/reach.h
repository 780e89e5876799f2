// Whether data can ever get somewhere, directly or in several hops: from a site to an aggregator,
// from there as a model, a sum or a view to others, then or later.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policy/analysis/crossing.h"
#include "policy/analysis/world.h"

namespace domicile::policy::analysis {

// What being somewhere means for a receiver.
enum class By : std::uint8_t { kEither = 0, kPlace = 1, kControl = 2 };

struct ReachQuestion {
  std::optional<Area> subjects;  // datasets with people of there, or perhaps of there
  std::optional<Area> from;      // sites that are there
  std::string site;              // id of one site policy; empty: all
  std::string dataset;           // alias; empty: all
  Area to;
  By by = By::kEither;
  std::set<UpdateKind> kinds;      // empty: any
  std::optional<View> view;        // at least this view of a single contribution
  std::optional<Purpose> purpose;  // empty: any
  Window window;
};

// One crossing of a way, as Decide allowed it.
struct Hop {
  Transfer transfer;
  Period period;
  std::vector<Origin> rules;  // that bore on it
};

// A dataset of the question, and the shortest, then earliest, way from it.
struct DatasetReach {
  std::string site;
  std::string dataset;
  bool reaches = false;
  bool is_there = false;  // the site itself is there: no way is needed
  std::vector<Hop> way;
};

struct ReachResult {
  std::vector<DatasetReach> datasets;  // those that fit the question, in order of site and alias
  Covered covered;

  // The shortest, then earliest, way of all; null if there is none.
  const DatasetReach* Shortest() const;
};

// Pure. Exact at the most permissive numbers: a way that is told was allowed by Decide hop by hop,
// and where none is told, Decide denies every one. A receiver whose place is known only as the
// country counts as being in each of its subdivisions; one in a bloc that no fact describes, as
// being there.
ReachResult Reach(const World& world, const ReachQuestion& question);

// "egress of delta.plain to aggregator `main` in IE ...": three lines a hop.
std::string Print(const Hop& hop);
Json ToJson(const Hop& hop);

}  // namespace domicile::policy::analysis

// Crossings as analyses report them: sets of requests that have the same answer, merged for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "policy/engine/meet.h"
#include "policy/engine/transfer.h"
#include "policy/language/vocabulary.h"

namespace domicile::policy::analysis {

// A span in which nothing changes in any policy or fact, or several of them in a row.
struct Period {
  WallTime from;
  WallTime until;
  friend bool operator==(const Period&, const Period&) = default;
  friend auto operator<=>(const Period&, const Period&) = default;
};

// Parties that get the same answer: any combination of the four lists.
struct Parties {
  std::vector<std::string> who;            // `aggregator`, `site`, `site cleveland`, `operator`
  std::vector<std::string> organisations;  // empty: any
  std::vector<std::string> places;         // codes and blocs; "every place" if all
  std::vector<std::string> control;        // from where they are controlled, each country alone
};

struct Crossing {
  std::string site;  // id of the site policy whose records are behind it
  std::string dataset;
  DecisionPoint point = DecisionPoint::kNone;
  std::optional<Parties> via;  // the aggregator that holds the bytes
  Parties to;
  std::vector<UpdateKind> kinds;
  std::vector<View> views;
  std::vector<Purpose> purposes;
  std::vector<Period> periods;
  std::uint64_t requests = 0;  // how many requests of the full space this stands for
};

// The space that an analysis covered, all of it: the certificate of a "never".
struct Covered {
  std::uint64_t sites = 0;
  std::uint64_t datasets = 0;
  std::uint64_t points = 0;
  std::uint64_t places = 0;         // every country of ISO 3166-1, and each subdivision named
  std::uint64_t place_classes = 0;  // of places that no rule, bloc or fact tells apart (most)
  std::uint64_t kinds = 0;
  std::uint64_t views = 0;
  std::uint64_t purposes = 0;
  std::uint64_t parties = 0;       // names and organisations that rules tell apart (most)
  std::uint64_t date_classes = 0;  // spans without any change (most)
  std::uint64_t requests = 0;      // of the full space, not of classes
  std::uint64_t decisions = 0;     // answers of Decide that this rests on

  void Add(const Covered& other);
};

// "egress to aggregator in IE controlled from IE: delta.plain, ...": two or three lines.
std::string Print(const Crossing& crossing);
Json ToJson(const Crossing& crossing);
// Several lines: each dimension and its size, and what numbers were assumed.
std::string Print(const Covered& covered);
Json ToJson(const Covered& covered);

}  // namespace domicile::policy::analysis

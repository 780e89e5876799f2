// Legal facts: what the law says about borders, as dated data with sources (legal-facts.toml). Code
// knows no adequacy decision and no member of a bloc. An expired or missing fact denies.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "policy/language/jurisdiction.h"
#include "policy/language/vocabulary.h"

namespace domicile::policy {

enum class FactKind : std::uint8_t {
  kNone = 0,
  kBloc = 1,              // `bloc` has `members`
  kTerritory = 2,         // `regime` restricts exports from the areas `from`
  kFreeFlow = 3,          // `regime` asks for no mechanism from `from` to `to`
  kAdequacy = 4,          // a decision under `regime`: `to` is adequate for exporters in `from`
  kCountryOfConcern = 5,  // `regime` forbids exports to `to`, or to who is controlled from there
  // From `at_least` people in a dataset of one of `categories` on: with `requires`, only these
  // mechanisms are a ground under `regime`; without, the countries of concern of `regime` apply.
  kThreshold = 6,
  kNegativeList = 7,  // `regime` forbids exports from `from` to `to`, whatever is stated
};

struct Fact {
  std::string id;
  FactKind kind = FactKind::kNone;
  std::string bloc;
  std::set<Jurisdiction> members;
  Regime regime = Regime::kNone;
  std::set<Area> from;
  std::set<Area> to;
  std::set<Category> categories;   // of a threshold; empty: any
  std::uint64_t at_least = 0;      // of a threshold, in people
  std::set<Mechanism> mechanisms;  // `requires` of a threshold; empty: see kThreshold
  std::string scope;  // adequacy only for certified importers (`dpf-certified`); empty: no limit
  WallTime from_date;
  std::optional<WallTime> until_date;  // first instant it no longer holds
  std::string source;
  std::string checked_by;
  WallTime checked_on;
  std::uint32_t line = 0;

  bool HoldsAt(WallTime now) const;
  friend bool operator==(const Fact&, const Fact&) = default;
};

struct Facts {
  std::string file;
  // SHA-256 of the file's bytes, 64 hexadecimal digits: set by who hashed them, since this folder
  // does not. Empty: unknown, and then no policy that names a digest is satisfied.
  std::string digest;
  std::string id;
  std::uint64_t version = 0;
  WallTime expires;  // nobody vouches for any fact from here on
  std::vector<Fact> facts;

  // All facts in a canonical order, without file, digest and lines.
  Json ToJson() const;
};

// Closed keys and codes, as ParsePolicy. Errors: kInvalidArgument.
StatusOr<Facts> ParseFacts(std::string_view text, std::string_view file);

std::string_view Code(FactKind kind);

// Whether an area covers a place. kUnknown: a bloc without any fact, or facts past their expiry.
// Everyone must treat it as the answer that denies.
enum class Cover : std::uint8_t { kUnknown = 0, kNo = 1, kYes = 2 };

// Adds the ids of the facts it read to `used` (may be null).
Cover Covers(const Area& area, const Jurisdiction& place, const Facts& facts, WallTime now,
             std::set<std::string>* used);
// Wider than Covers: whether the two share ground, as far as is known. Who is known to be in `US`
// may be in `US-CA`.
Cover Overlaps(const Area& area, const Jurisdiction& place, const Facts& facts, WallTime now,
               std::set<std::string>* used);

}  // namespace domicile::policy

// Asks Decide about every request of a space, at one decision point.
//
// Not every request is asked by itself. A denial names all its reasons, and each reason is about
// some dimensions only: LOCATION about where the receiver is and when, never about the purpose. So
// a denied request denies every other that agrees with it in the dimensions of one of its reasons.
// Which dimensions a reason is about is one table, wide where in doubt; tests compare the outcome
// with one answer of Decide for each single request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_set>
#include <vector>

#include "policy/analysis/internal/space.h"
#include "policy/engine/decide.h"

namespace domicile::policy::analysis::internal {

// A set of dimensions, one bit each.
using DimSet = std::uint32_t;

// The dimensions that a reason is about, at any point.
DimSet DependsOn(Reason reason);

// What to do after a request that is not denied.
enum class Next : std::uint8_t {
  kEach = 0,   // go on with the next request
  kDate = 1,   // enough: go on with the next date
  kHub = 2,    // enough about this hub at this date (place, control, organisation)
  kParty = 3,  // enough about this receiver: go on with the next
  kStop = 4,
};

// Called for each request that is not denied, in order of the key.
using Visit = std::function<Next(const Key& key, const Transfer& transfer, Result result)>;

// A reason to deny that was found: it denies all requests that agree with one of `keys` in `dims`.
struct Denial {
  DimSet dims = 0;
  Reason reason = Reason::kNone;
  Origin origin;
  std::unordered_set<Key, KeyHash> keys;  // zero outside `dims`
};

// What is known of a point before a search, by someone who can vouch for it, and what one learns.
struct Known {
  std::vector<const Denial*> denials;
  std::vector<Denial>* learned = nullptr;  // grows by what is found; null: nobody wants it
};

// A part of the space.
struct Part {
  DimSet fixed = 0;  // these dimensions keep the value of `start`
  Key start = {};
  // Asked whenever a dimension has been fixed; empty: everything is wanted.
  std::function<bool(const Key& key, Dim just_fixed)> wanted = {};
  Known known = {};
};

// One thread at a time. Borrows all.
class Explorer {
 public:
  // `base` has what does not vary (PermissiveTransfer). `dataset` and site are those of `base`.
  Explorer(const Effective& effective, const Space& space, const Transfer& base)
      : effective_(effective), space_(space), base_(base) {}

  // A request of the space at a point, made anew.
  Transfer Request(DecisionPoint point, const Key& key) const;

  // Goes through the space at a point, or through a part of it.
  void Run(DecisionPoint point, const Visit& visit, const Part& part = {});

  std::uint64_t decisions() const { return decisions_; }

 private:
  // The level at which to go on: the values of all deeper dimensions are done.
  int Descend(std::size_t level);
  int Ask();
  int Learn(const Decision& denied);
  bool IsKnownDenied(std::size_t level) const;

  // A denial, for all requests that agree with `key` in `dims`.
  struct Denied {
    DimSet dims = 0;
    std::unordered_set<Key, KeyHash> keys;  // zero outside `dims`
  };

  void Record(const Finding& finding, DimSet dims) const;

  const Effective& effective_;
  const Space& space_;
  const Transfer& base_;
  DecisionPoint point_ = DecisionPoint::kNone;
  const Visit* visit_ = nullptr;
  const Part* part_ = nullptr;
  Key key_;
  Transfer transfer_;
  std::array<std::vector<Denied>, kNumDims> denied_;        // by their last dimension
  std::array<std::vector<const Denial*>, kNumDims> known_;  // likewise
  std::uint64_t decisions_ = 0;
};

constexpr DimSet Only(Dim dim) { return DimSet{1} << static_cast<unsigned>(dim); }

}  // namespace domicile::policy::analysis::internal

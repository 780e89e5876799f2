// The search for ways out of one dataset.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "policy/analysis/internal/explorer.h"
#include "policy/analysis/reach.h"

namespace domicile::policy::analysis::internal {

// Goes in layers of hops, so that the first way found is the shortest. A hub is told by its classes
// of place and control, since Decide asks for nothing else of who holds the bytes.
//
// One thread at a time. Borrows all.
class WayFinder {
 public:
  WayFinder(const Effective& effective, const Space& space, const Transfer& base,
            const Facts& facts, const ReachQuestion& question)
      : effective_(effective), space_(space), base_(base), facts_(facts), question_(question) {}

  // The shortest, then earliest, way; empty if there is none.
  std::vector<Hop> Find();

  std::uint64_t decisions() const { return decisions_; }

 private:
  using Hub = std::pair<std::uint16_t, std::uint16_t>;  // classes of place and control
  // How and when a hub first got something, for each class of purposes.
  struct Arrival {
    std::uint16_t date = 0;
    std::vector<Hop> way;
  };
  using Arrivals = std::map<std::uint16_t, Arrival>;

  std::map<Hub, Arrivals> Contribute();
  // Whether a contribution may be received too, and the job that asks for it be joined: some
  // recipient of its models must be allowed.
  bool IsWhole(const Key& key, const Transfer& egress);
  bool HasRecipient(const Key& key, const Transfer& egress);
  // Where a hub hands it on: the ends of ways are kept, parents returned.
  std::map<Hub, Arrivals> HandOn(const Hub& hub, const Arrivals& arrivals);
  void Give(DecisionPoint point, const Hub& hub, const Arrivals& arrivals);
  void GiveToParents(const Hub& hub, const Arrivals& arrivals, std::map<Hub, Arrivals>& parents);
  // Whether a sum that arrived became a model at some time until `date`.
  bool IsReleased(const Arrival& arrival, std::uint16_t date);
  bool IsAllowed(const Transfer& transfer);
  void Ask(DecisionPoint point, const Visit& visit, const Part& part);

  bool IsThere(const Jurisdiction& place, WallTime now) const;
  bool IsThere(const Jurisdiction& place, const Jurisdiction& control, WallTime now) const;
  bool IsAsked(const Transfer& transfer) const;  // kind and view are those of the question
  void Keep(const std::vector<Hop>& way);        // if it is the best so far
  // The way with one more hop; a hub told by its class gets the name it had on the way here.
  std::vector<Hop> Extend(const std::vector<Hop>& way, const Key& key, Transfer transfer);
  Hop MakeHop(const Key& key, Transfer transfer);

  const Effective& effective_;
  const Space& space_;
  const Transfer& base_;
  const Facts& facts_;
  const ReachQuestion& question_;
  // A recipient that was allowed before, by hub, date and purpose: most likely it is again.
  std::map<std::pair<Hub, std::pair<std::uint16_t, std::uint16_t>>, Party> recipients_;
  std::uint64_t decisions_ = 0;
  std::vector<Hop> best_;
};

}  // namespace domicile::policy::analysis::internal

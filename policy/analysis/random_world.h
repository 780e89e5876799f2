// Small worlds made at random, and the requests of a small part of their space one by one: for
// tests that compare an analysis with brute force.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "policy/analysis/world.h"
#include "policy/engine/transfer.h"

namespace domicile::policy::analysis {

// Under a sanitizer every step takes many times longer: there, brute force goes over fewer worlds.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

// Federation, aggregator and one site with one dataset, `heart`; the facts have blocs, free flow,
// adequacy with an end and with a scope, a country of concern. Leans to what is allowed.
World RandomWorld(std::uint64_t seed);

// What RandomWorld can tell apart, in small: every class of its places has a member here, and those
// with several countries have two.
struct SmallSpace {
  std::vector<std::string> places = {"DE", "IE", "CH", "US", "US-CA", "CN", "JP", "NZ"};
  std::vector<std::string> control = {"DE", "US", "CN", "JP"};
  std::vector<std::string> organisations = {"clinic", "any"};
  std::vector<Purpose> purposes = {Purpose::kScientificResearch, Purpose::kEducation,
                                   Purpose::kMarketing};
  std::vector<WallTime> dates;  // one of each span in which nothing changes
  // Who hands on; empty: `places` and `control`.
  std::vector<std::string> hub_places;
  std::vector<std::string> hub_control;
};
SmallSpace SmallSpaceOf(const World& world, const Window& window);

Window RandomWorldWindow();

// Calls `visit` with each request of the small space at a point: contributions to an aggregator, or
// what one hands on. `base` has what does not vary. Stops early when `visit` returns false.
void EachRequest(const SmallSpace& space, DecisionPoint point, const Transfer& base,
                 const std::function<bool(const Transfer&)>& visit);

}  // namespace domicile::policy::analysis

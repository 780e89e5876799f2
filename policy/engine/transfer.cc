#include "policy/engine/transfer.h"

#include <array>
#include <cstddef>

namespace domicile::policy {
namespace {

constexpr std::array<std::string_view, 11> kPoints = {
    "none",          "offer",          "data_open", "egress",    "ingress",   "aggregate_release",
    "model_to_site", "model_download", "view",      "enrolment", "parent_sum"};
constexpr std::array<std::string_view, 5> kRoles = {"party", "site", "aggregator", "operator",
                                                    "auditor"};

template <typename E, std::size_t N>
std::optional<E> Find(const std::array<std::string_view, N>& codes, std::string_view code) {
  for (std::size_t i = 1; i < N; ++i) {
    if (codes[i] == code) {
      return static_cast<E>(i);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view Code(DecisionPoint point) {
  const auto index = static_cast<std::size_t>(point);
  return index < kPoints.size() ? kPoints[index] : kPoints[0];
}
std::optional<DecisionPoint> DecisionPointFromCode(std::string_view code) {
  return Find<DecisionPoint>(kPoints, code);
}

std::string_view Code(PartyRole role) {
  const auto index = static_cast<std::size_t>(role);
  return index < kRoles.size() ? kRoles[index] : kRoles[0];
}
std::optional<PartyRole> PartyRoleFromCode(std::string_view code) {
  return Find<PartyRole>(kRoles, code);
}

}  // namespace domicile::policy

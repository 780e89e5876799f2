// The heart example's policies and parties, for tests of the gate and of what asks it.
#pragma once

#include <string>
#include <utility>

#include "base/file.h"
#include "site_agent/egress/gate.h"
#include "site_agent/egress/testing.h"

namespace domicile::site_agent {

inline const WallTime kPolicyNow = Must(ParseTime("2026-12-01T09:00:00Z"));

inline StatusOr<OwnPolicies> ReadHeart(const std::string& site, const std::string& place) {
  const std::pair<policy::PolicySource, std::string> files[] = {
      {policy::PolicySource::kSite, kHeart + "site." + site + ".policy.toml"},
      {policy::PolicySource::kFederation, kHeart + "federation.policy.toml"},
      {policy::PolicySource::kNone, kHeart + "legal-facts.toml"}};
  OwnPolicies own;
  for (const auto& [source, file] : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(file, 1U << 20U));
    RETURN_IF_ERROR(contracts::TakePolicyText(text, file, source, place, own).status());
  }
  return own;
}

inline ForcedPolicies HeartPolicies() {
  return Must(MeetOnConnect(Must(ReadHeart("budapest", "HU")), HeartText("federation.policy.toml"),
                            HeartText("aggregator.policy.toml"), HeartText("legal-facts.toml")));
}

inline contracts::RosterEntry RosterEntryOf(crypto::Role role, const std::string& name,
                                            const std::string& place,
                                            const std::string& organisation) {
  return {.role = role,
          .name = name,
          .jurisdiction = place,
          .control_jurisdictions = {place},
          .organisation = organisation,
          .tls_keys = {},
          .log_key = {}};
}

inline JobBorder HeartBorder() {
  JobBorder border;
  border.aggregator = RosterEntryOf(crypto::Role::kAggregator, "main", "IE", "federation-office");
  border.site =
      RosterEntryOf(crypto::Role::kSite, "budapest", "HU", "hungarian-institute-of-cardiology");
  border.roster.entries = {
      border.aggregator, border.site,
      RosterEntryOf(crypto::Role::kSite, "cleveland", "US-OH", "cleveland-clinic"),
      RosterEntryOf(crypto::Role::kSite, "zurich-basel", "CH",
                    "university-hospitals-zurich-basel")};
  border.approvals = {{.role = policy::ApprovalRole::kOperator,
                       .count = 1,
                       .organisation = "hungarian-institute-of-cardiology",
                       .signed_at = kPolicyNow}};
  border.trainer = Digest{};
  border.sandbox = policy::SandboxNetwork::kNone;
  border.runs_today = 1;
  border.clock_skew = std::chrono::milliseconds(250);
  return border;
}

}  // namespace domicile::site_agent

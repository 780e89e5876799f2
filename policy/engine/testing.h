// The heart example's policies and one update on its way out, for tests of the engine.
#pragma once

#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "policy/engine/decide.h"
#include "policy/language/parse.h"

namespace domicile::policy {

inline std::string HeartText(const std::string& name) {
  const auto text =
      ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/heart/" + name, 1U << 20U);
  REQUIRE_MESSAGE(text.ok(), ToString(text.status()));
  return *text;
}

inline Policy HeartPolicy(const std::string& name, PolicySource source) {
  auto policy = ParsePolicy(HeartText(name), name, source);
  REQUIRE_MESSAGE(policy.ok(), ToString(policy.status()));
  return *std::move(policy);
}

inline Facts HeartFacts() { return *ParseFacts(HeartText("legal-facts.toml"), "legal-facts.toml"); }

// A round of training of Budapest, on its way out.
inline Transfer HeartUpdate() {
  Transfer transfer;
  transfer.point = DecisionPoint::kEgress;
  transfer.from = {PartyRole::kSite,
                   "budapest",
                   "hungarian-institute-of-cardiology",
                   "HU",
                   {"HU"},
                   LocationEvidence::kCertificate};
  transfer.to = {PartyRole::kAggregator,        "main", "federation-office", "IE", {"IE"},
                 LocationEvidence::kCertificate};
  transfer.dataset = *DatasetAlias::Parse("heart");
  transfer.kinds = {UpdateKind::kDeltaPlain, UpdateKind::kMetricsAggregate};
  transfer.view = View::kPlaintextIndividual;
  transfer.purpose = Purpose::kScientificResearch;
  transfer.plan = {.rounds = 40,
                   .local_steps = 10,
                   .clip_l2 = 4,
                   .quorum = 4,
                   .max_sites = 16,
                   .scale_bits = 32,
                   .numbers_per_round = 14,
                   .metrics_per_round = 3,
                   .inputs = 13,
                   .parameters = 14,
                   .weights = WeightRule::kExact};
  transfer.records_behind = 196;
  transfer.bytes = 400;
  transfer.numbers = 17;
  transfer.metrics = 3;
  transfer.runs_today = 1;
  transfer.sandbox_network = SandboxNetwork::kNone;
  transfer.sandbox_profile = SandboxProfile::kNamespaces;
  transfer.outputs = std::set<Output>{};
  transfer.clock_skew = std::chrono::milliseconds(-40);
  transfer.retention = {.audit = std::chrono::hours(24 * 366 * 6),
                        .update = std::chrono::hours(24),
                        .model_review = std::chrono::hours(24 * 366)};
  transfer.now = *ParseTime("2026-12-01T09:00:00Z");
  transfer.approvals = {{.role = ApprovalRole::kOperator,
                         .count = 1,
                         .organisation = "hungarian-institute-of-cardiology",
                         .signed_at = transfer.now - std::chrono::hours(24)}};
  return transfer;
}

}  // namespace domicile::policy

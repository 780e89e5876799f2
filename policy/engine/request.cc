#include "policy/engine/request.h"

#include <utility>

#include "base/json.h"
#include "policy/language/duration.h"
#include "policy/language/toml_codes.h"

namespace domicile::policy {
namespace {

std::uint64_t Count(TomlTable& table, std::string_view key, std::uint64_t otherwise) {
  const auto value = table.TryInt(key, 0, kLargestJsonInteger);
  return value ? static_cast<std::uint64_t>(*value) : otherwise;
}

std::uint32_t Small(TomlTable& table, std::string_view key, std::uint32_t otherwise) {
  const auto value = table.TryInt(key, 0, 1'000'000'000);
  return value ? static_cast<std::uint32_t>(*value) : otherwise;
}

Party ReadParty(TomlTable table, Party party) {
  if (const auto role = table.TryString("role")) {
    const std::optional<PartyRole> found = PartyRoleFromCode(*role);
    if (!found) {
      FailUnknownCode(table, "role", *role, {"site", "aggregator", "operator", "auditor"});
    }
    party.role = found.value_or(PartyRole::kNone);
  }
  party.id = table.TryString("id").value_or(party.id);
  party.organisation = table.TryString("organisation").value_or(party.organisation);
  party.jurisdiction = table.TryString("jurisdiction").value_or(party.jurisdiction);
  party.control = table.TryStrings("control").value_or(party.control);
  party.evidence = TryCode<LocationEvidence>(table, "evidence").value_or(party.evidence);
  return party;
}

std::optional<double> Decimal(TomlTable& table, std::string_view key,
                              const std::optional<double>& otherwise) {
  const auto value = table.TryDouble(key, -1e300, 1e300);
  return value ? value : otherwise;
}

std::optional<Digest> ReadDigest(TomlTable& table, std::string_view key,
                                 const std::optional<Digest>& otherwise) {
  const auto text = table.TryString(key);
  if (!text) {
    return otherwise;
  }
  const StatusOr<Digest> digest = ParseDigest(*text);
  if (!digest.ok()) {
    table.Merge(key, digest.status());
    return std::nullopt;
  }
  return *digest;
}

std::optional<Duration> ReadSpan(TomlTable& table, std::string_view key,
                                 const std::optional<Duration>& otherwise) {
  const auto text = table.TryString(key);
  if (!text) {
    return otherwise;
  }
  const StatusOr<Duration> span = ParseDuration(*text);
  if (!span.ok()) {
    table.Merge(key, span.status());
    return std::nullopt;
  }
  return *span;
}

void ReadPlan(TomlTable table, PlanFacts& plan) {
  plan.rounds = Count(table, "rounds", plan.rounds);
  plan.local_steps = Count(table, "local_steps", plan.local_steps);
  plan.batch = Count(table, "batch", plan.batch);
  plan.clip_l2 = table.TryDouble("clip_l2", -1e300, 1e300).value_or(plan.clip_l2);
  plan.quorum = Small(table, "quorum", plan.quorum);
  plan.max_sites = Small(table, "max_sites", plan.max_sites);
  plan.scale_bits = Small(table, "scale_bits", plan.scale_bits);
  plan.numbers_per_round = Count(table, "numbers_per_round", plan.numbers_per_round);
  plan.metrics_per_round = Count(table, "metrics_per_round", plan.metrics_per_round);
  plan.statistics_numbers = Count(table, "statistics_numbers", plan.statistics_numbers);
  plan.evaluation_numbers = Count(table, "evaluation_numbers", plan.evaluation_numbers);
  plan.inputs = Count(table, "inputs", plan.inputs);
  plan.parameters = Count(table, "parameters", plan.parameters);
  plan.weights = TryCode<WeightRule>(table, "weights").value_or(plan.weights);
  plan.dp_mode = TryCode<DpMode>(table, "dp_mode").value_or(plan.dp_mode);
  plan.epsilon = Decimal(table, "epsilon", plan.epsilon);
  plan.delta = Decimal(table, "delta", plan.delta);
  plan.dp_unit = TryCode<DpUnit>(table, "dp_unit").value_or(plan.dp_unit);
  plan.sampling = TryCode<Sampling>(table, "sampling").value_or(plan.sampling);
  plan.secagg_threshold = Decimal(table, "secagg_threshold", plan.secagg_threshold);
}

void ReadParties(TomlTable& table, Transfer& transfer) {
  if (auto from = table.TryTable("from")) {
    transfer.from = ReadParty(*from, transfer.from);
  }
  if (auto to = table.TryTable("to")) {
    transfer.to = ReadParty(*to, transfer.to);
  }
  if (auto via = table.TryTable("via")) {
    transfer.via = ReadParty(*via, transfer.via.value_or(Party{}));
  }
  if (table.Has("transit")) {
    transfer.transit.clear();
  }
  for (const TomlTable& party : table.Tables("transit")) {
    transfer.transit.push_back(ReadParty(party, {}));
  }
  if (table.Has("recipients")) {
    transfer.recipients.clear();
  }
  for (const TomlTable& party : table.Tables("recipients")) {
    transfer.recipients.push_back(ReadParty(party, {}));
  }
}

void ReadContent(TomlTable& table, Transfer& transfer) {
  if (const auto text = table.TryString("dataset")) {
    StatusOr<DatasetAlias> alias = DatasetAlias::Parse(*text);
    if (alias.ok()) {
      transfer.dataset = *std::move(alias);
    } else {
      table.Merge("dataset", alias.status());
    }
  }
  if (const auto kinds = TryCodes<UpdateKind>(table, "kinds")) {
    transfer.kinds.assign(kinds->begin(), kinds->end());
  }
  if (const auto outputs = TryCodes<Output>(table, "outputs")) {
    transfer.outputs = *outputs;
  }
  transfer.plan_digest = ReadDigest(table, "plan_digest", transfer.plan_digest);
  transfer.trainer_digest = ReadDigest(table, "trainer_digest", transfer.trainer_digest);
  transfer.view = TryCode<View>(table, "view").value_or(transfer.view);
  transfer.purpose = TryCode<Purpose>(table, "purpose").value_or(transfer.purpose);
}

void ReadContributors(TomlTable& table, Transfer& transfer) {
  if (table.Has("contributors")) {
    transfer.contributors = Small(table, "contributors", 0);
  }
  if (table.Has("contributor_sites")) {
    transfer.contributor_sites.clear();
  }
  for (TomlTable item : table.Tables("contributor_sites")) {
    transfer.contributor_sites.push_back(
        {.site = item.String("site"), .organisation = item.String("organisation")});
  }
}

void ReadNumbers(TomlTable& table, Transfer& transfer) {
  if (table.Has("records_behind")) {
    transfer.records_behind = Count(table, "records_behind", 0);
  }
  transfer.bytes = Count(table, "bytes", transfer.bytes);
  transfer.numbers = Count(table, "numbers", transfer.numbers);
  transfer.metrics = Count(table, "metrics", transfer.metrics);
  transfer.released_per_record =
      table.TryDouble("released_per_record", -1e300, 1e300).value_or(transfer.released_per_record);
  transfer.runs_today = Count(table, "runs_today", transfer.runs_today);
  transfer.epsilon_spent = Decimal(table, "epsilon_spent", transfer.epsilon_spent);
  if (table.Has("subjects_exported")) {
    transfer.subjects_exported = Count(table, "subjects_exported", 0);
  }
}

void ReadApprovals(TomlTable& table, Transfer& transfer) {
  if (table.Has("approvals")) {
    transfer.approvals.clear();
  }
  for (TomlTable item : table.Tables("approvals")) {
    transfer.approvals.push_back({.role = ReadCode<ApprovalRole>(item, "role"),
                                  .count = Small(item, "count", 1),
                                  .organisation = item.TryString("organisation").value_or(""),
                                  .signed_at = item.TryTime("signed_at")});
  }
}

void ReadState(TomlTable& table, Transfer& transfer) {
  if (const auto network = TryCode<SandboxNetwork>(table, "sandbox_network")) {
    transfer.sandbox_network = network;
  }
  if (const auto profile = TryCode<SandboxProfile>(table, "sandbox_profile")) {
    transfer.sandbox_profile = profile;
  }
  if (table.Has("witnesses")) {
    transfer.witnesses = Small(table, "witnesses", 0);
  }
  transfer.unwitnessed_age = ReadSpan(table, "unwitnessed_age", transfer.unwitnessed_age);
  if (const auto skew = table.TryInt("clock_skew_ms", -kLargestJsonInteger, kLargestJsonInteger)) {
    transfer.clock_skew = std::chrono::milliseconds(*skew);
  }
  if (auto retention = table.TryTable("retention")) {
    RetentionPromise& promise = transfer.retention;
    promise.audit = ReadSpan(*retention, "audit", promise.audit);
    promise.update = ReadSpan(*retention, "update", promise.update);
    promise.model_review = ReadSpan(*retention, "model_review", promise.model_review);
  }
  transfer.now = table.TryTime("now").value_or(transfer.now);
}

}  // namespace

Transfer ReadTransfer(TomlTable table, Transfer base) {
  Transfer transfer = std::move(base);
  if (const auto point = table.TryString("point")) {
    const std::optional<DecisionPoint> found = DecisionPointFromCode(*point);
    if (!found) {
      FailUnknownCode(table, "point", *point,
                      {"offer", "data_open", "egress", "ingress", "aggregate_release",
                       "model_to_site", "model_download", "view", "enrolment", "parent_sum"});
    }
    transfer.point = found.value_or(DecisionPoint::kNone);
  }
  ReadParties(table, transfer);
  ReadContent(table, transfer);
  if (auto plan = table.TryTable("plan")) {
    ReadPlan(*plan, transfer.plan);
  }
  ReadContributors(table, transfer);
  ReadNumbers(table, transfer);
  ReadApprovals(table, transfer);
  ReadState(table, transfer);
  return transfer;
}

}  // namespace domicile::policy

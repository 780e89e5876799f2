#include "policy/engine/request.h"

#include <utility>

#include "base/json.h"
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
  return party;
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
  transfer.view = TryCode<View>(table, "view").value_or(transfer.view);
  transfer.purpose = TryCode<Purpose>(table, "purpose").value_or(transfer.purpose);
}

void ReadState(TomlTable& table, Transfer& transfer) {
  if (table.Has("contributors")) {
    transfer.contributors = Small(table, "contributors", 0);
  }
  if (table.Has("records_behind")) {
    transfer.records_behind = Count(table, "records_behind", 0);
  }
  transfer.bytes = Count(table, "bytes", transfer.bytes);
  transfer.numbers = Count(table, "numbers", transfer.numbers);
  transfer.metrics = Count(table, "metrics", transfer.metrics);
  transfer.released_per_record =
      table.TryDouble("released_per_record", -1e300, 1e300).value_or(transfer.released_per_record);
  transfer.runs_today = Count(table, "runs_today", transfer.runs_today);
  if (const auto network = TryCode<SandboxNetwork>(table, "sandbox_network")) {
    transfer.sandbox_network = network;
  }
  if (table.Has("approvals")) {
    transfer.approvals.clear();
  }
  for (TomlTable item : table.Tables("approvals")) {
    transfer.approvals.push_back({ReadCode<ApprovalRole>(item, "role"), Small(item, "count", 1)});
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
                       "model_to_site", "model_download", "view"});
    }
    transfer.point = found.value_or(DecisionPoint::kNone);
  }
  ReadParties(table, transfer);
  ReadContent(table, transfer);
  if (auto plan = table.TryTable("plan")) {
    ReadPlan(*plan, transfer.plan);
  }
  ReadState(table, transfer);
  return transfer;
}

}  // namespace domicile::policy

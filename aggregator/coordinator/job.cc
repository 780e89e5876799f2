#include "aggregator/coordinator/job.h"

#include <utility>

#include "base/json.h"
#include "crypto/sha256.h"

namespace domicile::aggregator {

Job::Job(JobId job_id, contracts::Plan job_plan)
    : id(std::move(job_id)),
      plan(std::make_shared<const contracts::Plan>(std::move(job_plan))),
      plan_text(contracts::PlanText(*plan)),
      plan_digest(crypto::Sha256(AsBytes(plan_text))),
      state(RulesFromPlan(*plan)) {}

JobView Job::View() const {
  JobView view;
  view.job = id;
  view.name = plan->name;
  view.stage = state.stage;
  view.reason = state.reason;
  view.rounds_planned = plan->rounds.count;
  view.rounds_committed = state.rounds_committed;
  view.submitted_unix_seconds = submitted_unix_seconds;
  view.plan = plan_text;
  view.plan_digest = plan_digest;
  view.model = model;
  view.metrics = metrics;
  view.change = change;
  if (state.current) {
    view.phase = state.current->key;
    view.epoch = state.current->epoch;
  }
  for (const auto& [site, record] : state.sites) {
    SiteView& row = view.sites.emplace_back();
    row.site = site;
    row.connected = record.connected;
    row.answer = record.answer;
    row.reason = record.reason;
    if (state.current) {
      if (const auto found = state.current->participants.find(site);
          found != state.current->participants.end()) {
        row.received = found->second.received;
        row.reason = found->second.declined ? found->second.reason : record.reason;
      }
    }
    if (const auto found = percent.find(site); found != percent.end()) {
      row.percent = found->second;
    }
  }
  return view;
}

audit::PhaseKey LogKey(const JobId& job, const PhaseKey& key, const Epoch& epoch) {
  return {.job = job,
          .round = key.round,
          .phase = std::string(contracts::PhaseName(key.phase)),
          .epoch = epoch};
}

std::string PrintMetrics(const PhaseMetrics& metrics) {
  Json json;
  json.Set("contributors", metrics.contributors);
  json.Set("examples", metrics.examples);
  const auto add = [&json](std::string_view key, const std::string& value) {
    if (!value.empty()) {
      json.Set(key, value);
    }
  };
  add("loss", metrics.loss);
  add("accuracy", metrics.accuracy);
  add("majority", metrics.majority);
  add("auc", metrics.auc);
  return PrintJson(json);
}

StatusOr<PhaseMetrics> ParsePhaseMetrics(std::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseCanonicalJson(text));
  JsonReader reader(json, "metrics");
  PhaseMetrics metrics;
  metrics.contributors = static_cast<std::uint32_t>(reader.Int("contributors", 0, UINT32_MAX));
  metrics.examples = static_cast<std::uint64_t>(reader.Int("examples", 0, kLargestJsonInteger));
  metrics.loss = reader.TryString("loss").value_or("");
  metrics.accuracy = reader.TryString("accuracy").value_or("");
  metrics.majority = reader.TryString("majority").value_or("");
  metrics.auc = reader.TryString("auc").value_or("");
  RETURN_IF_ERROR(reader.Finish());
  return metrics;
}

}  // namespace domicile::aggregator

#include "aggregator/service/admin_service.h"

#include <chrono>
#include <string>
#include <utility>

#include "aggregator/service/convert.h"

namespace domicile::aggregator {

namespace {

std::string RawDigest(const Digest& digest) { return {digest.bytes.begin(), digest.bytes.end()}; }

}  // namespace

StatusOr<v1::SubmitJobResponse> AdminService::SubmitJob(const crypto::PeerIdentity& caller,
                                                        const v1::SubmitJobRequest& request) {
  ASSIGN_OR_RETURN(const JobView view, coordinator_.Submit(caller.spiffe.name, request.job_file(),
                                                           request.file_name()));
  v1::SubmitJobResponse response;
  response.set_job(view.job.text());
  response.set_plan_digest(RawDigest(view.plan_digest));
  response.set_base_model_digest(RawDigest(view.model.digest));
  return response;
}

StatusOr<v1::ListJobsResponse> AdminService::ListJobs(const crypto::PeerIdentity& /*caller*/) {
  v1::ListJobsResponse response;
  for (const JobView& view : coordinator_.List()) {
    *response.add_jobs() = SummaryOf(view);
  }
  return response;
}

StatusOr<v1::ShowJobResponse> AdminService::ShowJob(const crypto::PeerIdentity& caller,
                                                    const v1::ShowJobRequest& request) {
  ASSIGN_OR_RETURN(const JobId job, JobId::Parse(request.job()));
  ASSIGN_OR_RETURN(const JobView view, coordinator_.Show(caller.spiffe.name, job));
  v1::ShowJobResponse response;
  *response.mutable_summary() = SummaryOf(view);
  response.set_plan(view.plan);
  response.set_plan_digest(RawDigest(view.plan_digest));
  AddSites(view, response.mutable_sites());
  *response.mutable_model() = ToWire(view.model);
  for (const MetricsView& metrics : view.metrics) {
    *response.add_metrics() = ToWire(metrics);
  }
  response.set_metrics_withheld(static_cast<std::uint32_t>(view.metrics_withheld));
  return response;
}

Status AdminService::CancelJob(const crypto::PeerIdentity& caller,
                               const v1::CancelJobRequest& request) {
  ASSIGN_OR_RETURN(const JobId job, JobId::Parse(request.job()));
  return coordinator_.Cancel(caller.spiffe.name, job);
}

v1::WatchJobResponse AdminService::EventOf(const JobView& view) const {
  v1::WatchJobResponse event;
  event.set_time(PrintTime(clock_.Now()));
  *event.mutable_summary() = SummaryOf(view);
  if (view.phase) {
    *event.mutable_phase() = PhaseIdOf(view.job, *view.phase);
    *event.mutable_epoch() = ToWire(view.epoch);
  }
  AddSites(view, event.mutable_sites());
  event.set_metrics_withheld(static_cast<std::uint32_t>(view.metrics_withheld));
  return event;
}

// One event for each committed phase that has not been told, then one for how things stand.
Status AdminService::WatchJob(const crypto::PeerIdentity& caller,
                              const v1::WatchJobRequest& request, wire::WatchSink& sink) {
  ASSIGN_OR_RETURN(const JobId job, JobId::Parse(request.job()));
  std::uint64_t seen = 0;
  std::size_t told_metrics = 0;
  while (!sink.IsGone()) {
    ASSIGN_OR_RETURN(
        const JobView view,
        coordinator_.WaitForChange(caller.spiffe.name, job, seen, std::chrono::milliseconds(500)));
    if (view.change == seen) {
      continue;
    }
    seen = view.change;
    for (; told_metrics < view.metrics.size(); ++told_metrics) {
      v1::WatchJobResponse event = EventOf(view);
      *event.mutable_metrics() = ToWire(view.metrics[told_metrics]);
      if (!sink.Send(event)) {
        return OkStatus();
      }
    }
    if (!sink.Send(EventOf(view)) || HasEnded(view.stage)) {
      return OkStatus();
    }
  }
  return OkStatus();
}

StatusOr<std::variant<wire::ModelRelease, v1::Refusal>> AdminService::FetchModel(
    const crypto::PeerIdentity& caller, const v1::FetchModelRequest& request) {
  ASSIGN_OR_RETURN(const JobId job, JobId::Parse(request.job()));
  ASSIGN_OR_RETURN(const auto released,
                   coordinator_.ReleaseModel(caller.spiffe.name, job, request.round()));
  if (const auto* refusal = std::get_if<Refusal>(&released)) {
    return std::variant<wire::ModelRelease, v1::Refusal>(ToWire(*refusal));
  }
  const auto& model = std::get<Coordinator::ReleasedModel>(released);
  wire::ModelRelease release;
  release.model = ToWire(model.model);
  ASSIGN_OR_RETURN(release.bytes, wire::MapFile(model.path));
  return std::variant<wire::ModelRelease, v1::Refusal>(std::move(release));
}

}  // namespace domicile::aggregator

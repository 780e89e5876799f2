// The admin service: what people ask, given to the coordinator.
#pragma once

#include "aggregator/coordinator/coordinator.h"
#include "wire/handlers.h"

namespace domicile::aggregator {

// Borrows the coordinator and the clock. Thread-safe.
class AdminService final : public wire::AdminHandler {
 public:
  AdminService(Coordinator& coordinator, const Clock& clock)
      : coordinator_(coordinator), clock_(clock) {}

  StatusOr<v1::SubmitJobResponse> SubmitJob(const crypto::PeerIdentity& caller,
                                            const v1::SubmitJobRequest& request) override;
  StatusOr<v1::ListJobsResponse> ListJobs(const crypto::PeerIdentity& caller) override;
  StatusOr<v1::ShowJobResponse> ShowJob(const crypto::PeerIdentity& caller,
                                        const v1::ShowJobRequest& request) override;
  Status CancelJob(const crypto::PeerIdentity& caller,
                   const v1::CancelJobRequest& request) override;
  Status WatchJob(const crypto::PeerIdentity& caller, const v1::WatchJobRequest& request,
                  wire::WatchSink& sink) override;
  StatusOr<std::variant<wire::ModelRelease, v1::Refusal>> FetchModel(
      const crypto::PeerIdentity& caller, const v1::FetchModelRequest& request) override;

 private:
  v1::WatchJobResponse EventOf(const JobView& view) const;

  Coordinator& coordinator_;
  const Clock& clock_;
};

}  // namespace domicile::aggregator

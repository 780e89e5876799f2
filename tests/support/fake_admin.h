// An AdminHandler with one job in it.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "crypto/tree_digest.h"
#include "tests/support/fake_federation.h"
#include "wire/handlers.h"

namespace domicile::test {

// Thread-safe.
class FakeAdmin final : public wire::AdminHandler {
 public:
  StatusOr<v1::SubmitJobResponse> SubmitJob(const crypto::PeerIdentity& caller,
                                            const v1::SubmitJobRequest& request) override {
    v1::SubmitJobResponse response;
    response.set_job(caller.spiffe.name + "-" + std::to_string(request.job_file().size()));
    return response;
  }
  StatusOr<v1::ListJobsResponse> ListJobs(const crypto::PeerIdentity& /*caller*/) override {
    v1::ListJobsResponse response;
    response.add_jobs()->set_job("heart");
    return response;
  }
  StatusOr<v1::ShowJobResponse> ShowJob(const crypto::PeerIdentity& /*caller*/,
                                        const v1::ShowJobRequest& request) override {
    if (request.job() != "heart") {
      return Error(StatusCode::kNotFound, "no job `" + request.job() + "`");
    }
    v1::ShowJobResponse response;
    response.mutable_summary()->set_job("heart");
    response.add_sites()->set_site("charite");
    return response;
  }
  Status CancelJob(const crypto::PeerIdentity& /*caller*/,
                   const v1::CancelJobRequest& request) override {
    return request.job() == "heart" ? OkStatus() : Error(StatusCode::kNotFound, "no such job");
  }
  // Three events; then it waits until the watcher has gone, if the job is `endless`.
  Status WatchJob(const crypto::PeerIdentity& /*caller*/, const v1::WatchJobRequest& request,
                  wire::WatchSink& sink) override {
    for (std::uint64_t i = 1; i <= 3; ++i) {
      v1::WatchJobResponse event;
      event.set_leaf_index(i);
      sink.Send(event);
    }
    while (request.job() == "endless" && !sink.IsGone()) {
      std::this_thread::yield();
    }
    signal.Update([&] { ++watches_ended; });
    return OkStatus();
  }
  StatusOr<std::variant<wire::ModelRelease, v1::Refusal>> FetchModel(
      const crypto::PeerIdentity& /*caller*/, const v1::FetchModelRequest& request) override {
    if (request.round() == 9) {
      v1::Refusal refusal;
      refusal.set_reason(42);
      return refusal;
    }
    wire::ModelRelease release;
    release.bytes = wire::ShareBytes(model);
    const Digest digest = crypto::TreeDigest(request.round() == 8 ? ByteSpan() : ByteSpan(model));
    release.model.set_digest(std::string(AsText(digest.bytes)));
    release.model.set_size_bytes(model.size());
    return release;
  }

  Bytes model = SomeBytes(2'500'000, 3);
  Signal signal;
  int watches_ended = 0;  // through `signal`
};

}  // namespace domicile::test

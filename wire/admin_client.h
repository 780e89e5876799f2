// An operator's side of the admin service.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "base/bytes.h"
#include "base/status.h"
#include "wire/client.h"
#include "wire/proto/admin.pb.h"

namespace domicile::wire {

// Where the bytes of a model go, in order. An error ends the call with it.
using ByteSink = std::function<Status(ByteSpan data)>;

// Thread-safe. Errors are those of the aggregator (kNotFound for a job it does not know,
// kPermissionDenied, ...) and of the connection (kUnavailable, kDeadlineExceeded, kCancelled).
class AdminClient {
 public:
  // As FederationClient::Connect.
  static StatusOr<std::unique_ptr<AdminClient>> Connect(const ClientOptions& options,
                                                        const CallLimits& limits);
  virtual ~AdminClient() = default;

  virtual StatusOr<v1::SubmitJobResponse> SubmitJob(const v1::SubmitJobRequest& request) = 0;
  virtual StatusOr<v1::ListJobsResponse> ListJobs() = 0;
  virtual StatusOr<v1::ShowJobResponse> ShowJob(const std::string& job) = 0;
  virtual Status CancelJob(const std::string& job) = 0;

  // What happened and what happens, until the job ends (OK), `limits` end it, or `on_event` returns
  // false (OK). Called on the caller's thread.
  virtual Status WatchJob(const std::string& job,
                          const std::function<bool(const v1::WatchJobResponse&)>& on_event,
                          const CallLimits& limits) = 0;

  // round 0: the last committed one. The digest is compared after the last byte: only an OK makes
  // the bytes a model. Errors also: kDataLoss (digest), what the sink returned.
  virtual StatusOr<std::variant<v1::BlobRef, v1::Refusal>> FetchModel(const std::string& job,
                                                                      std::uint32_t round,
                                                                      const ByteSink& sink,
                                                                      const CallLimits& limits) = 0;
};

}  // namespace domicile::wire

#include "wire/internal/admin_service.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "wire/closed.h"
#include "wire/settings.h"
#include "wire/status.h"

namespace domicile::wire::internal {
namespace {

class GrpcWatchSink final : public WatchSink {
 public:
  GrpcWatchSink(grpc::ServerContext& context, grpc::ServerWriter<v1::WatchJobResponse>& writer,
                const std::atomic<bool>& stopping)
      : context_(context), writer_(writer), stopping_(stopping) {}

  bool Send(const v1::WatchJobResponse& event) override {
    return !IsGone() && writer_.Write(event);
  }
  bool IsGone() const override { return stopping_ || context_.IsCancelled(); }

 private:
  grpc::ServerContext& context_;
  grpc::ServerWriter<v1::WatchJobResponse>& writer_;
  const std::atomic<bool>& stopping_;
};

template <typename Response>
grpc::Status Reply(StatusOr<Response> answer, Response& response) {
  if (answer.ok()) {
    response = *std::move(answer);
    return grpc::Status::OK;
  }
  return ToPeer(answer.status());
}

}  // namespace

StatusOr<crypto::PeerIdentity> AdminService::CallerOf(const grpc::ServerContext& context,
                                                      const google::protobuf::Message& request) {
  ASSIGN_OR_RETURN(crypto::PeerIdentity caller, verifier_.PeerOf(context, crypto::Role::kOperator));
  RETURN_IF_ERROR(RequireClosed(request));
  return caller;
}

grpc::Status AdminService::SubmitJob(grpc::ServerContext* context,
                                     const v1::SubmitJobRequest* request,
                                     v1::SubmitJobResponse* response) {
  const auto caller = CallerOf(*context, *request);
  return caller.ok() ? Reply(handler_.SubmitJob(*caller, *request), *response)
                     : ToPeer(caller.status());
}

grpc::Status AdminService::ListJobs(grpc::ServerContext* context,
                                    const v1::ListJobsRequest* request,
                                    v1::ListJobsResponse* response) {
  const auto caller = CallerOf(*context, *request);
  return caller.ok() ? Reply(handler_.ListJobs(*caller), *response) : ToPeer(caller.status());
}

grpc::Status AdminService::ShowJob(grpc::ServerContext* context, const v1::ShowJobRequest* request,
                                   v1::ShowJobResponse* response) {
  const auto caller = CallerOf(*context, *request);
  return caller.ok() ? Reply(handler_.ShowJob(*caller, *request), *response)
                     : ToPeer(caller.status());
}

grpc::Status AdminService::CancelJob(grpc::ServerContext* context,
                                     const v1::CancelJobRequest* request,
                                     v1::CancelJobResponse* /*response*/) {
  const auto caller = CallerOf(*context, *request);
  return ToPeer(caller.ok() ? handler_.CancelJob(*caller, *request) : caller.status());
}

grpc::Status AdminService::WatchJob(grpc::ServerContext* context,
                                    const v1::WatchJobRequest* request,
                                    grpc::ServerWriter<v1::WatchJobResponse>* writer) {
  const auto caller = CallerOf(*context, *request);
  if (!caller.ok()) {
    return ToPeer(caller.status());
  }
  GrpcWatchSink sink(*context, *writer, stopping_);
  const Status status = handler_.WatchJob(*caller, *request, sink);
  if (status.ok() && stopping_) {
    return ToPeer(Error(StatusCode::kUnavailable, "the aggregator is stopping"));
  }
  return ToPeer(status);
}

grpc::Status AdminService::FetchModel(grpc::ServerContext* context,
                                      const v1::FetchModelRequest* request,
                                      grpc::ServerWriter<v1::FetchModelResponse>* writer) {
  return ToPeer(SendModel(*context, *request, *writer));
}

Status AdminService::SendModel(grpc::ServerContext& context, const v1::FetchModelRequest& request,
                               grpc::ServerWriter<v1::FetchModelResponse>& writer) {
  ASSIGN_OR_RETURN(const crypto::PeerIdentity caller, CallerOf(context, request));
  // The slot first: a release is decided and logged when it can begin, not while it waits.
  ASSIGN_OR_RETURN(const auto slot, transfers_.Begin(TransferKind::kDownload, {}, context));
  ASSIGN_OR_RETURN(auto answer, handler_.FetchModel(caller, request));
  const Status gone = Error(StatusCode::kCancelled, "the caller has gone");
  v1::FetchModelResponse part;
  slot->Moved();
  if (const auto* refusal = std::get_if<v1::Refusal>(&answer)) {
    *part.mutable_refusal() = *refusal;
    return writer.Write(part) ? OkStatus() : gone;
  }
  const ModelRelease& release = std::get<ModelRelease>(answer);
  *part.mutable_model() = release.model;
  if (!writer.Write(part)) {
    return gone;
  }
  const ByteSpan bytes = release.bytes.bytes;
  for (std::size_t at = 0; at < bytes.size(); at += kChunkBytes) {
    slot->Moved();
    const std::size_t size = std::min(kChunkBytes, bytes.size() - at);
    part.mutable_chunk()->set_offset_bytes(at);
    part.mutable_chunk()->set_data(bytes.data() + at, size);
    if (!writer.Write(part)) {
      return gone;
    }
  }
  return OkStatus();
}

}  // namespace domicile::wire::internal

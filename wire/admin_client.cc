#include "wire/admin_client.h"

#include <utility>

#include "crypto/tree_digest.h"
#include "wire/closed.h"
#include "wire/internal/connection.h"
#include "wire/proto/admin.grpc.pb.h"
#include "wire/settings.h"

namespace domicile::wire {
namespace {

using internal::CallContext;

// A question has an answer, or a reason to look at the aggregator.
constexpr auto kQuestionTimeout = std::chrono::seconds(30);
// The first model of a job is made before the answer.
constexpr auto kSubmitTimeout = std::chrono::minutes(5);

Status Invalid(const std::string& what) { return Error(StatusCode::kInvalidArgument, what); }

// Checks and passes on what FetchModel gets. One thread at a time.
class ModelReceiver {
 public:
  explicit ModelReceiver(const ByteSink& sink) : sink_(sink) {}

  Status Take(const v1::FetchModelResponse& part) {
    RETURN_IF_ERROR(RequireNoUnknownFields(part));
    if (ended_) {
      return Invalid("the aggregator sent more after a refusal");
    }
    switch (part.part_case()) {
      case v1::FetchModelResponse::kModel: {
        if (has_model_) {
          return Invalid("the aggregator named two models");
        }
        RETURN_IF_ERROR(DigestFromBytes(AsBytes(part.model().digest())).status());
        model_ = part.model();
        has_model_ = true;
        return OkStatus();
      }
      case v1::FetchModelResponse::kChunk:
        return TakeChunk(part.chunk());
      case v1::FetchModelResponse::kRefusal:
        refusal_ = part.refusal();
        ended_ = true;
        return OkStatus();
      case v1::FetchModelResponse::PART_NOT_SET:
        break;
    }
    return Invalid("the aggregator sent an empty message");
  }

  StatusOr<std::variant<v1::BlobRef, v1::Refusal>> Finish() {
    if (ended_) {
      return refusal_;
    }
    if (!has_model_ || hasher_.SizeBytes() != model_.size_bytes()) {
      return Invalid("the aggregator ended a model before its end");
    }
    ASSIGN_OR_RETURN(const Digest wanted, DigestFromBytes(AsBytes(model_.digest())));
    if (hasher_.Finish() != wanted) {
      return Error(StatusCode::kDataLoss, "model `" + PrintHex(wanted) + "` has another digest");
    }
    return model_;
  }

 private:
  Status TakeChunk(const v1::Chunk& chunk) {
    const std::string& data = chunk.data();
    const std::uint64_t at = hasher_.SizeBytes();
    if (!has_model_ || chunk.offset_bytes() != at || data.empty() || data.size() > kChunkBytes ||
        data.size() > model_.size_bytes() - at) {
      return Invalid("the aggregator sent a chunk that does not follow the one before");
    }
    hasher_.Update(AsBytes(data));
    return sink_(AsBytes(data));
  }

  const ByteSink& sink_;
  crypto::TreeHasher hasher_;
  v1::BlobRef model_;
  v1::Refusal refusal_;
  bool has_model_ = false;
  bool ended_ = false;
};

// Thread-safe: holds nothing that changes.
class GrpcAdminClient final : public AdminClient {
 public:
  explicit GrpcAdminClient(std::unique_ptr<internal::Connection> connection)
      : connection_(std::move(connection)), stub_(v1::Admin::NewStub(connection_->Channel())) {}

  StatusOr<v1::SubmitJobResponse> SubmitJob(const v1::SubmitJobRequest& request) override {
    return Ask<v1::SubmitJobResponse>(&v1::Admin::Stub::SubmitJob, request, kSubmitTimeout);
  }
  StatusOr<v1::ListJobsResponse> ListJobs() override {
    return Ask<v1::ListJobsResponse>(&v1::Admin::Stub::ListJobs, v1::ListJobsRequest(),
                                     kQuestionTimeout);
  }
  StatusOr<v1::ShowJobResponse> ShowJob(const std::string& job) override {
    v1::ShowJobRequest request;
    request.set_job(job);
    return Ask<v1::ShowJobResponse>(&v1::Admin::Stub::ShowJob, request, kQuestionTimeout);
  }
  Status CancelJob(const std::string& job) override {
    v1::CancelJobRequest request;
    request.set_job(job);
    return Ask<v1::CancelJobResponse>(&v1::Admin::Stub::CancelJob, request, kQuestionTimeout)
        .status();
  }

  Status WatchJob(const std::string& job,
                  const std::function<bool(const v1::WatchJobResponse&)>& on_event,
                  const CallLimits& limits) override {
    v1::WatchJobRequest request;
    request.set_job(job);
    CallContext context(limits);
    const auto reader = stub_->WatchJob(&*context, request);
    v1::WatchJobResponse event;
    while (reader->Read(&event)) {
      const Status valid = RequireNoUnknownFields(event);
      if (!valid.ok() || !on_event(event)) {
        Abandon(context, *reader, event);
        return valid;
      }
    }
    return connection_->Explain(reader->Finish());
  }

  StatusOr<std::variant<v1::BlobRef, v1::Refusal>> FetchModel(const std::string& job,
                                                              std::uint32_t round,
                                                              const ByteSink& sink,
                                                              const CallLimits& limits) override {
    v1::FetchModelRequest request;
    request.set_job(job);
    request.set_round(round);
    CallContext context(limits);
    const auto reader = stub_->FetchModel(&*context, request);
    ModelReceiver receiver(sink);
    v1::FetchModelResponse part;
    while (reader->Read(&part)) {
      if (const Status taken = receiver.Take(part); !taken.ok()) {
        Abandon(context, *reader, part);
        return taken;
      }
    }
    RETURN_IF_ERROR(connection_->Explain(reader->Finish()));
    return receiver.Finish();
  }

 private:
  template <typename Response, typename Request>
  StatusOr<Response> Ask(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*,
                                                                 const Request&, Response*),
                         const Request& request, std::chrono::milliseconds timeout) {
    CallContext context(CallLimits{.timeout = timeout, .stop = {}});
    Response response;
    RETURN_IF_ERROR(connection_->Explain((stub_.get()->*method)(&*context, request, &response)));
    RETURN_IF_ERROR(RequireNoUnknownFields(response));
    return response;
  }

  template <typename Reader, typename Message>
  static void Abandon(CallContext& context, Reader& reader, Message& scratch) {
    context->TryCancel();
    while (reader.Read(&scratch)) {
    }
    reader.Finish();
  }

  const std::unique_ptr<internal::Connection> connection_;
  const std::unique_ptr<v1::Admin::Stub> stub_;
};

}  // namespace

StatusOr<std::unique_ptr<AdminClient>> AdminClient::Connect(const ClientOptions& options,
                                                            const CallLimits& limits) {
  ASSIGN_OR_RETURN(auto connection, internal::Connection::Open(options, limits));
  return std::make_unique<GrpcAdminClient>(std::move(connection));
}

}  // namespace domicile::wire

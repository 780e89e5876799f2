#include "wire/client.h"

#include <utility>

#include "crypto/tree_digest.h"
#include "wire/closed.h"
#include "wire/internal/connection.h"
#include "wire/internal/control_client.h"
#include "wire/internal/raw_calls.h"
#include "wire/proto/federation.grpc.pb.h"

namespace domicile::wire {
namespace {

using internal::CallContext;
using UpdateCall = grpc::ClientReaderWriter<grpc::ByteBuffer, v1::SubmitUpdateResponse>;

Status Invalid(const std::string& what) { return Error(StatusCode::kInvalidArgument, what); }

// Ends a call that is to give no more: cancelled, read to its end, and finished.
template <typename Call, typename Message>
void Abandon(CallContext& context, Call& call, Message& scratch) {
  context->TryCancel();
  while (call.Read(&scratch)) {
  }
  call.Finish();
}

// Thread-safe: holds nothing that changes.
class GrpcFederationClient final : public FederationClient {
 public:
  explicit GrpcFederationClient(std::unique_ptr<internal::Connection> connection)
      : connection_(std::move(connection)),
        stub_(v1::Federation::NewStub(connection_->Channel())) {}

  crypto::PeerIdentity Server() const override { return connection_->Server(); }

  std::unique_ptr<ControlStream> OpenControl(ControlListener& listener) override {
    return internal::OpenControlStream(*connection_, listener);
  }

  Status FetchBlob(const v1::BlobRef& blob, std::span<std::uint8_t> destination,
                   std::uint64_t& have_bytes, const CallLimits& limits) override {
    ASSIGN_OR_RETURN(const Digest wanted, DigestFromBytes(AsBytes(blob.digest())));
    if (destination.size() != blob.size_bytes() || have_bytes > blob.size_bytes()) {
      return Invalid("the destination does not fit the blob");
    }
    crypto::TreeHasher hasher;
    hasher.Update(destination.first(have_bytes));
    if (have_bytes < blob.size_bytes()) {
      RETURN_IF_ERROR(ReceiveBlob(blob, destination, have_bytes, hasher, limits));
    }
    if (hasher.Finish() != wanted) {
      have_bytes = 0;
      return Error(StatusCode::kDataLoss, "blob `" + PrintHex(wanted) + "` has another digest");
    }
    return OkStatus();
  }

  StatusOr<SubmitAnswer> SubmitUpdate(
      const v1::UpdateHeader& header, const SharedBytes& update,
      const std::function<void(std::uint64_t sent_bytes)>& on_progress,
      const CallLimits& limits) override {
    v1::SubmitUpdateRequest first;
    *first.mutable_header() = header;
    RETURN_IF_ERROR(RequireClosed(first));
    if (header.update().size_bytes() != update.bytes.size()) {
      return Invalid("the header of the update states another size");
    }
    CallContext context(limits);
    const auto call = internal::StartSubmitUpdate(connection_->Channel(), *context);
    v1::SubmitUpdateResponse answer;
    if (!call->Write(internal::PrintMessage(first)) || !call->Read(&answer)) {
      return Broken(*call, "the aggregator gave no answer to the header of an update");
    }
    Status valid = RequireClosed(answer);
    if (valid.ok() && answer.has_continue_at_bytes()) {
      valid = SendAndAwait(*call, update, on_progress, answer);
    } else if (valid.ok()) {
      call->WritesDone();
    }
    if (!valid.ok()) {
      Abandon(context, *call, answer);
      return valid;
    }
    if (answer.has_continue_at_bytes()) {  // still the first answer: the call broke off
      return Broken(*call, "the aggregator ended an upload without an answer");
    }
    SubmitAnswer result = answer.has_receipt() ? SubmitAnswer(std::move(*answer.mutable_receipt()))
                                               : SubmitAnswer(std::move(*answer.mutable_refusal()));
    while (call->Read(&answer)) {
    }
    call->Finish();  // the answer stands, whatever became of the connection after it
    return result;
  }

  StatusOr<v1::ProveConsistencyResponse> ProveConsistency(std::uint64_t first_size,
                                                          const CallLimits& limits) override {
    CallContext context(limits);
    v1::ProveConsistencyRequest request;
    request.set_first_size(first_size);
    v1::ProveConsistencyResponse response;
    RETURN_IF_ERROR(connection_->Explain(stub_->ProveConsistency(&*context, request, &response)));
    RETURN_IF_ERROR(RequireClosed(response));
    return response;
  }

 private:
  Status ReceiveBlob(const v1::BlobRef& blob, std::span<std::uint8_t> destination,
                     std::uint64_t& have_bytes, crypto::TreeHasher& hasher,
                     const CallLimits& limits) {
    v1::FetchBlobRequest request;
    request.set_digest(blob.digest());
    request.set_offset_bytes(have_bytes);
    CallContext context(limits);
    const auto call = internal::StartFetchBlob(connection_->Channel(), *context, request);
    grpc::ByteBuffer message;
    while (call->Read(&message)) {
      const auto end = internal::ReadChunk(ChunkForm::kBare, message, have_bytes, destination);
      if (!end.ok()) {
        Abandon(context, *call, message);
        return end.status();
      }
      hasher.Update(destination.subspan(have_bytes, *end - have_bytes));
      have_bytes = *end;
    }
    RETURN_IF_ERROR(connection_->Explain(call->Finish()));
    return have_bytes == blob.size_bytes() ? OkStatus()
                                           : Invalid("the aggregator ended a blob before its end");
  }

  // Sends the bytes from where `answer` says and reads the final answer over it. Leaves `answer` as
  // it was if none comes. Errors: kInvalidArgument, the answer is not in the protocol.
  static Status SendAndAwait(UpdateCall& call, const SharedBytes& update,
                             const std::function<void(std::uint64_t)>& on_progress,
                             v1::SubmitUpdateResponse& answer) {
    const std::uint64_t size = update.bytes.size();
    std::uint64_t at = answer.continue_at_bytes();
    if (at > size) {
      return Invalid("the aggregator wants to go on beyond the end of the update");
    }
    while (at < size) {
      const std::uint64_t end = std::min<std::uint64_t>(size, at + kChunkBytes);
      if (on_progress) {
        on_progress(end);
      }
      if (!call.Write(internal::ChunkMessage(ChunkForm::kSubmitRequest, update, at))) {
        break;  // ended by the other side, which may have said why
      }
      at = end;
    }
    call.WritesDone();
    v1::SubmitUpdateResponse last;
    if (!call.Read(&last)) {
      return OkStatus();
    }
    RETURN_IF_ERROR(RequireClosed(last));
    if (last.has_continue_at_bytes()) {
      return Invalid("the aggregator answered an upload with an offset");
    }
    answer = std::move(last);
    return OkStatus();
  }

  Status Broken(UpdateCall& call, const std::string& what) const {
    const Status status = connection_->Explain(call.Finish());
    return status.ok() ? Error(StatusCode::kUnavailable, what) : status;
  }

  const std::unique_ptr<internal::Connection> connection_;
  const std::unique_ptr<v1::Federation::Stub> stub_;
};

}  // namespace

StatusOr<std::unique_ptr<FederationClient>> FederationClient::Connect(const ClientOptions& options,
                                                                      const CallLimits& limits) {
  ASSIGN_OR_RETURN(auto connection, internal::Connection::Open(options, limits));
  return std::make_unique<GrpcFederationClient>(std::move(connection));
}

}  // namespace domicile::wire

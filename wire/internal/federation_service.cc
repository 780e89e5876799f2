#include "wire/internal/federation_service.h"

#include <string>
#include <utility>
#include <variant>

#include "crypto/tree_digest.h"
#include "wire/closed.h"
#include "wire/status.h"

namespace domicile::wire::internal {
namespace {

Status Invalid(std::string_view what) { return Error(StatusCode::kInvalidArgument, what); }

Status Broken() { return Error(StatusCode::kCancelled, "the connection was lost"); }

v1::SubmitUpdateResponse Answer(std::variant<v1::Receipt, v1::Refusal> answer) {
  v1::SubmitUpdateResponse out;
  if (auto* receipt = std::get_if<v1::Receipt>(&answer)) {
    *out.mutable_receipt() = std::move(*receipt);
  } else {
    *out.mutable_refusal() = std::move(std::get<v1::Refusal>(answer));
  }
  return out;
}

// One upload at a time for this. Names have no slashes.
std::string UploadKey(const crypto::PeerIdentity& peer, const v1::PhaseId& phase) {
  return peer.spiffe.name + "/" + std::to_string(phase.round()) + "/" +
         std::to_string(phase.phase()) + "/" + phase.job();
}

}  // namespace

FederationService::ControlReactor* FederationService::Control(
    grpc::CallbackServerContext& context) {
  auto peer = verifier_.PeerOf(context, crypto::Role::kSite);
  if (!peer.ok()) {
    return ControlStreams::Refuse(peer.status());
  }
  return streams_.Open(context, *std::move(peer));
}

grpc::Status FederationService::FetchBlob(grpc::ServerContext& context,
                                          const v1::FetchBlobRequest& request,
                                          grpc::ServerWriter<grpc::ByteBuffer>& writer) {
  return ToPeer(SendBlob(context, request, writer));
}

Status FederationService::SendBlob(grpc::ServerContext& context,
                                   const v1::FetchBlobRequest& request,
                                   grpc::ServerWriter<grpc::ByteBuffer>& writer) {
  ASSIGN_OR_RETURN(const crypto::PeerIdentity peer, verifier_.PeerOf(context, crypto::Role::kSite));
  RETURN_IF_ERROR(RequireClosed(request));
  ASSIGN_OR_RETURN(const Digest digest, DigestFromBytes(AsBytes(request.digest())));
  ASSIGN_OR_RETURN(const SharedBytes blob, handler_.OpenBlob(peer, digest));
  if (request.offset_bytes() > blob.bytes.size()) {
    return Invalid("the offset lies beyond the blob of " + std::to_string(blob.bytes.size()) +
                   " bytes");
  }
  ASSIGN_OR_RETURN(const auto slot, transfers_.Begin(TransferKind::kDownload, {}, context));
  for (std::uint64_t at = request.offset_bytes(); at < blob.bytes.size(); at += kChunkBytes) {
    slot->Moved();
    if (!writer.Write(ChunkMessage(ChunkForm::kBare, blob, at))) {
      return Broken();
    }
  }
  return OkStatus();
}

grpc::Status FederationService::SubmitUpdate(grpc::ServerContext& context, UpdateStream& stream) {
  const auto answer = TakeUpdate(context, stream);
  if (!answer.ok()) {
    return ToPeer(answer.status());
  }
  if (const Status valid = RequireClosed(*answer); !valid.ok()) {
    return ToPeer(Error(StatusCode::kInternal, Message(valid)));  // the handler's answer, our bug
  }
  return stream.Write(*answer) ? grpc::Status::OK : ToPeer(Broken());
}

StatusOr<v1::SubmitUpdateResponse> FederationService::TakeUpdate(grpc::ServerContext& context,
                                                                 UpdateStream& stream) {
  ASSIGN_OR_RETURN(const crypto::PeerIdentity peer, verifier_.PeerOf(context, crypto::Role::kSite));
  grpc::ByteBuffer bytes;
  if (!stream.Read(&bytes)) {
    return Invalid("an upload without a header");
  }
  v1::SubmitUpdateRequest first;
  RETURN_IF_ERROR(ParseMessage(bytes, first));
  bytes.Clear();
  RETURN_IF_ERROR(RequireClosed(first));
  if (!first.has_header() || !first.header().has_phase() || !first.header().has_update()) {
    return Invalid("an upload begins with a header that names its phase and its update");
  }
  const v1::UpdateHeader& header = first.header();
  ASSIGN_OR_RETURN(const auto slot, transfers_.Begin(TransferKind::kUpload,
                                                     UploadKey(peer, header.phase()), context));
  ASSIGN_OR_RETURN(BeginAnswer begun, handler_.BeginUpdate(peer, header));
  if (auto* receipt = std::get_if<v1::Receipt>(&begun)) {
    return Answer(std::move(*receipt));
  }
  if (auto* refusal = std::get_if<v1::Refusal>(&begun)) {
    return Answer(std::move(*refusal));
  }
  const auto upload = std::move(std::get<std::unique_ptr<UpdateUpload>>(begun));
  return Receive(*upload, header.update().size_bytes(), *slot, stream);
}

StatusOr<v1::SubmitUpdateResponse> FederationService::Receive(UpdateUpload& upload,
                                                              std::uint64_t size_bytes,
                                                              TransferSlot& slot,
                                                              UpdateStream& stream) {
  const std::span<std::uint8_t> destination = upload.Destination();
  std::uint64_t at = upload.StartBytes();
  if (destination.size() != size_bytes || at > size_bytes) {
    return Error(StatusCode::kInternal, "the memory for an update does not fit its header");
  }
  crypto::TreeHasher hasher;
  hasher.Update(destination.first(at));
  v1::SubmitUpdateResponse go_on;
  go_on.set_continue_at_bytes(at);
  slot.Moved();
  if (!stream.Write(go_on)) {
    return Broken();
  }
  grpc::ByteBuffer bytes;
  while (at < size_bytes) {
    slot.Moved();
    if (!stream.Read(&bytes)) {
      return Broken();
    }
    ASSIGN_OR_RETURN(const std::uint64_t end,
                     ReadChunk(ChunkForm::kSubmitRequest, bytes, at, destination));
    bytes.Clear();
    hasher.Update(destination.subspan(at, end - at));
    at = end;
    RETURN_IF_ERROR(upload.Received(at));
  }
  slot.Rest();
  ASSIGN_OR_RETURN(auto answer, upload.Finish(hasher.Finish()));
  return Answer(std::move(answer));
}

grpc::Status FederationService::ProveConsistency(grpc::ServerContext& context,
                                                 const v1::ProveConsistencyRequest& request,
                                                 v1::ProveConsistencyResponse& response) {
  const auto answer = [&]() -> StatusOr<v1::ProveConsistencyResponse> {
    ASSIGN_OR_RETURN(const crypto::PeerIdentity peer,
                     verifier_.PeerOf(context, crypto::Role::kSite));
    RETURN_IF_ERROR(RequireClosed(request));
    return handler_.ProveConsistency(peer, request.first_size());
  }();
  if (answer.ok()) {
    response = *answer;
  }
  return ToPeer(answer.status());
}

}  // namespace domicile::wire::internal

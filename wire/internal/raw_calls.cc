#include "wire/internal/raw_calls.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <grpcpp/impl/codegen/method_handler.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include "wire/proto/federation.grpc.pb.h"

namespace domicile::wire::internal {
namespace {

using grpc::internal::RpcMethod;
using grpc::internal::RpcServiceMethod;

constexpr const char* kControl = "/domicile.v1.Federation/Control";
constexpr const char* kFetchBlob = "/domicile.v1.Federation/FetchBlob";
constexpr const char* kSubmitUpdate = "/domicile.v1.Federation/SubmitUpdate";
constexpr const char* kProveConsistency = "/domicile.v1.Federation/ProveConsistency";

// A slice of memory that is not gRPC's, with a share of its owner.
grpc::Slice Borrow(const SharedBytes& blob, ByteSpan part) {
  using Owner = std::shared_ptr<const void>;
  auto share = std::make_unique<Owner>(blob.owner);
  // gRPC's slices are not const; it does not write to what it sends.
  void* memory = const_cast<std::uint8_t*>(part.data());
  return {
      memory, part.size(),
      [](void* user_data) { const std::unique_ptr<Owner> last(static_cast<Owner*>(user_data)); },
      share.release()};
}

}  // namespace

grpc::ByteBuffer ChunkMessage(ChunkForm form, const SharedBytes& blob, std::uint64_t offset_bytes) {
  const std::size_t size = std::min<std::size_t>(
      kChunkBytes, blob.bytes.size() - static_cast<std::size_t>(offset_bytes));
  const ChunkHeader header = EncodeChunkHeader(form, offset_bytes, size);
  const grpc::Slice slices[2] = {grpc::Slice(header.bytes.data(), header.size),
                                 Borrow(blob, blob.bytes.subspan(offset_bytes, size))};
  return {slices, 2};
}

StatusOr<std::uint64_t> ReadChunk(ChunkForm form, grpc::ByteBuffer& message,
                                  std::uint64_t offset_bytes, std::span<std::uint8_t> blob) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) {
    return Error(StatusCode::kInvalidArgument, "a chunk could not be read");
  }
  std::vector<ByteSpan> pieces;
  pieces.reserve(slices.size());
  for (const grpc::Slice& slice : slices) {
    pieces.emplace_back(slice.begin(), slice.size());
  }
  return DecodeChunk(form, pieces, offset_bytes, blob);
}

Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message) {
  grpc::ProtoBufferReader reader(&bytes);
  if (!reader.status().ok() || !message.ParseFromZeroCopyStream(&reader)) {
    return Error(StatusCode::kInvalidArgument,
                 "a message is not a `" + message.GetTypeName() + "`");
  }
  return OkStatus();
}

grpc::ByteBuffer PrintMessage(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

RawFederationService::RawFederationService() {
  using Self = RawFederationService;
  AddMethod(new RpcServiceMethod(kControl, RpcMethod::BIDI_STREAMING, nullptr));
  MarkMethodCallback(
      0, new grpc::internal::CallbackBidiHandler<v1::SiteMessage, v1::Directive>(
             [this](grpc::CallbackServerContext* context) { return Control(*context); }));
  AddMethod(new RpcServiceMethod(
      kFetchBlob, RpcMethod::SERVER_STREAMING,
      new grpc::internal::ServerStreamingHandler<Self, v1::FetchBlobRequest, grpc::ByteBuffer>(
          [](Self* self, grpc::ServerContext* context, const v1::FetchBlobRequest* request,
             grpc::ServerWriter<grpc::ByteBuffer>* writer) {
            return self->FetchBlob(*context, *request, *writer);
          },
          this)));
  AddMethod(new RpcServiceMethod(
      kSubmitUpdate, RpcMethod::BIDI_STREAMING,
      new grpc::internal::BidiStreamingHandler<Self, grpc::ByteBuffer, v1::SubmitUpdateResponse>(
          [](Self* self, grpc::ServerContext* context, UpdateStream* stream) {
            return self->SubmitUpdate(*context, *stream);
          },
          this)));
  AddMethod(new RpcServiceMethod(
      kProveConsistency, RpcMethod::NORMAL_RPC,
      new grpc::internal::RpcMethodHandler<Self, v1::ProveConsistencyRequest,
                                           v1::ProveConsistencyResponse>(
          [](Self* self, grpc::ServerContext* context, const v1::ProveConsistencyRequest* request,
             v1::ProveConsistencyResponse* response) {
            return self->ProveConsistency(*context, *request, *response);
          },
          this)));
}

std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> StartFetchBlob(
    const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext& context,
    const v1::FetchBlobRequest& request) {
  const RpcMethod method(kFetchBlob, RpcMethod::SERVER_STREAMING, channel);
  return std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>>(
      grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(channel.get(), method, &context,
                                                                    request));
}

std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, v1::SubmitUpdateResponse>>
StartSubmitUpdate(const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext& context) {
  const RpcMethod method(kSubmitUpdate, RpcMethod::BIDI_STREAMING, channel);
  return std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, v1::SubmitUpdateResponse>>(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, v1::SubmitUpdateResponse>::Create(
          channel.get(), method, &context));
}

}  // namespace domicile::wire::internal

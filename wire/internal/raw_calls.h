// Calls whose chunks are raw bytes: the only file with names of grpc::internal (gRPC 1.51).
//
// Registers and starts by hand what generated code would, with grpc::ByteBuffer in the place of the
// messages that carry chunks. On the wire nothing differs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <google/protobuf/message_lite.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/sync_stream.h>

#include "base/status.h"
#include "wire/chunk.h"
#include "wire/proto/federation.pb.h"
#include "wire/shared_bytes.h"

namespace domicile::wire::internal {

// The chunk of `blob` that begins at `offset_bytes`, up to kChunkBytes. Borrows the blob's memory
// and holds a share of it until gRPC has let go.
grpc::ByteBuffer ChunkMessage(ChunkForm form, const SharedBytes& blob, std::uint64_t offset_bytes);

// As DecodeChunk, from a message as it arrived.
StatusOr<std::uint64_t> ReadChunk(ChunkForm form, grpc::ByteBuffer& message,
                                  std::uint64_t offset_bytes, std::span<std::uint8_t> blob);

// Errors: kInvalidArgument if the bytes are not such a message.
Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message);
grpc::ByteBuffer PrintMessage(const google::protobuf::MessageLite& message);

// The federation service, to be derived from. Sync methods come on threads of gRPC and may block.
class RawFederationService : public grpc::Service {
 public:
  using UpdateStream = grpc::ServerReaderWriter<v1::SubmitUpdateResponse, grpc::ByteBuffer>;
  using ControlReactor = grpc::ServerBidiReactor<v1::SiteMessage, v1::Directive>;

  RawFederationService();

  virtual ControlReactor* Control(grpc::CallbackServerContext& context) = 0;
  virtual grpc::Status FetchBlob(grpc::ServerContext& context, const v1::FetchBlobRequest& request,
                                 grpc::ServerWriter<grpc::ByteBuffer>& writer) = 0;
  virtual grpc::Status SubmitUpdate(grpc::ServerContext& context, UpdateStream& stream) = 0;
  virtual grpc::Status ProveConsistency(grpc::ServerContext& context,
                                        const v1::ProveConsistencyRequest& request,
                                        v1::ProveConsistencyResponse& response) = 0;
};

std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> StartFetchBlob(
    const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext& context,
    const v1::FetchBlobRequest& request);

std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, v1::SubmitUpdateResponse>>
StartSubmitUpdate(const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext& context);

}  // namespace domicile::wire::internal

// The federation service: who calls, is it in the protocol, then the handler.
#pragma once

#include "wire/credentials.h"
#include "wire/handlers.h"
#include "wire/internal/control_server.h"
#include "wire/internal/raw_calls.h"
#include "wire/internal/transfers.h"

namespace domicile::wire::internal {

// Thread-safe. Borrows everything.
class FederationService final : public RawFederationService {
 public:
  FederationService(FederationHandler& handler, PeerVerifier& verifier, ControlStreams& streams,
                    Transfers& transfers)
      : handler_(handler), verifier_(verifier), streams_(streams), transfers_(transfers) {}

  ControlReactor* Control(grpc::CallbackServerContext& context) override;
  grpc::Status FetchBlob(grpc::ServerContext& context, const v1::FetchBlobRequest& request,
                         grpc::ServerWriter<grpc::ByteBuffer>& writer) override;
  grpc::Status SubmitUpdate(grpc::ServerContext& context, UpdateStream& stream) override;
  grpc::Status ProveConsistency(grpc::ServerContext& context,
                                const v1::ProveConsistencyRequest& request,
                                v1::ProveConsistencyResponse& response) override;

 private:
  Status SendBlob(grpc::ServerContext& context, const v1::FetchBlobRequest& request,
                  grpc::ServerWriter<grpc::ByteBuffer>& writer);
  StatusOr<v1::SubmitUpdateResponse> TakeUpdate(grpc::ServerContext& context, UpdateStream& stream);
  StatusOr<v1::SubmitUpdateResponse> Receive(UpdateUpload& upload, std::uint64_t size_bytes,
                                             TransferSlot& slot, UpdateStream& stream);

  FederationHandler& handler_;
  PeerVerifier& verifier_;
  ControlStreams& streams_;
  Transfers& transfers_;
};

}  // namespace domicile::wire::internal

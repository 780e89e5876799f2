// The admin service: who calls, is it in the protocol, then the handler.
#pragma once

#include <atomic>

#include "wire/credentials.h"
#include "wire/handlers.h"
#include "wire/internal/transfers.h"
#include "wire/proto/admin.grpc.pb.h"

namespace domicile::wire::internal {

// Thread-safe. Borrows everything.
class AdminService final : public v1::Admin::Service {
 public:
  AdminService(AdminHandler& handler, PeerVerifier& verifier, Transfers& transfers,
               const std::atomic<bool>& stopping)
      : handler_(handler), verifier_(verifier), transfers_(transfers), stopping_(stopping) {}

  grpc::Status SubmitJob(grpc::ServerContext* context, const v1::SubmitJobRequest* request,
                         v1::SubmitJobResponse* response) override;
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status ShowJob(grpc::ServerContext* context, const v1::ShowJobRequest* request,
                       v1::ShowJobResponse* response) override;
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                         v1::CancelJobResponse* response) override;
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::WatchJobResponse>* writer) override;
  grpc::Status FetchModel(grpc::ServerContext* context, const v1::FetchModelRequest* request,
                          grpc::ServerWriter<v1::FetchModelResponse>* writer) override;

 private:
  // The caller of a request that is in the protocol.
  StatusOr<crypto::PeerIdentity> CallerOf(const grpc::ServerContext& context,
                                          const google::protobuf::Message& request);
  Status SendModel(grpc::ServerContext& context, const v1::FetchModelRequest& request,
                   grpc::ServerWriter<v1::FetchModelResponse>& writer);

  AdminHandler& handler_;
  PeerVerifier& verifier_;
  Transfers& transfers_;
  const std::atomic<bool>& stopping_;
};

}  // namespace domicile::wire::internal

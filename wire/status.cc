#include "wire/status.h"

#include <algorithm>
#include <string>

#include <grpcpp/support/status.h>

#include "base/log.h"

namespace domicile::wire {
namespace {

constexpr std::size_t kMaxTextBytes = 1024;
constexpr int kLastCode = 16;  // UNAUTHENTICATED

// The codes of absl are those of gRPC, number by number.
static_assert(static_cast<int>(StatusCode::kOk) == grpc::StatusCode::OK);
static_assert(static_cast<int>(StatusCode::kCancelled) == grpc::StatusCode::CANCELLED);
static_assert(static_cast<int>(StatusCode::kUnknown) == grpc::StatusCode::UNKNOWN);
static_assert(static_cast<int>(StatusCode::kPermissionDenied) ==
              grpc::StatusCode::PERMISSION_DENIED);
static_assert(static_cast<int>(StatusCode::kDataLoss) == grpc::StatusCode::DATA_LOSS);
static_assert(static_cast<int>(StatusCode::kUnauthenticated) == grpc::StatusCode::UNAUTHENTICATED &&
              grpc::StatusCode::UNAUTHENTICATED == kLastCode);

}  // namespace

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) {
    return grpc::Status::OK;
  }
  return {static_cast<grpc::StatusCode>(status.code()),
          std::string(Message(status).substr(0, kMaxTextBytes))};
}

Status FromGrpc(const grpc::Status& status) {
  const int code = status.error_code();
  if (code == grpc::StatusCode::OK) {
    return OkStatus();
  }
  const bool known = code > 0 && code <= kLastCode;
  return Error(known ? static_cast<StatusCode>(code) : StatusCode::kUnknown,
               status.error_message().substr(0, kMaxTextBytes));
}

grpc::Status ToPeer(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInternal:
    case StatusCode::kDataLoss:
    case StatusCode::kUnknown:
      LogError(Message(status));
      return {static_cast<grpc::StatusCode>(status.code()),
              "a fault of the aggregator; its own log says what happened"};
    default:
      return ToGrpc(status);
  }
}

}  // namespace domicile::wire

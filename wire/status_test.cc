#include "wire/status.h"

#include <string>

#include <doctest/doctest.h>
#include <grpcpp/support/status.h>

namespace domicile::wire {
namespace {

TEST_CASE("Status: every code and its text go to gRPC and come back") {
  for (int code = 1; code <= 16; ++code) {
    CAPTURE(code);
    const Status status = Error(static_cast<StatusCode>(code), "site `a` is not in the roster");

    const grpc::Status sent = ToGrpc(status);

    CHECK(sent.error_code() == code);
    CHECK(FromGrpc(sent) == status);
  }
}

TEST_CASE("Status: OK stays OK, and an unknown code of a peer is kUnknown") {
  CHECK(ToGrpc(OkStatus()).ok());
  CHECK(FromGrpc(grpc::Status::OK).ok());
  CHECK(FromGrpc(grpc::Status(static_cast<grpc::StatusCode>(30), "?")).code() ==
        StatusCode::kUnknown);
  CHECK(FromGrpc(grpc::Status(grpc::StatusCode::DO_NOT_USE, "?")).code() == StatusCode::kUnknown);
}

TEST_CASE("Status: a peer is not told the text of our own faults") {
  const std::string text = "/srv/domicile/state.db: row 17";
  for (const StatusCode code :
       {StatusCode::kInternal, StatusCode::kDataLoss, StatusCode::kUnknown}) {
    const grpc::Status told = ToPeer(Error(code, text));

    CHECK(FromGrpc(told).code() == code);
    CHECK(told.error_message().find("state.db") == std::string::npos);
  }
  CHECK(ToPeer(Error(StatusCode::kNotFound, "no job `x`")).error_message() == "no job `x`");
}

TEST_CASE("Status: a long text is cut on its way out and on its way in") {
  const std::string text(5000, 'x');

  CHECK(ToGrpc(Error(StatusCode::kNotFound, text)).error_message().size() == 1024);
  CHECK(Message(FromGrpc(grpc::Status(grpc::StatusCode::NOT_FOUND, text))).size() == 1024);
}

}  // namespace
}  // namespace domicile::wire

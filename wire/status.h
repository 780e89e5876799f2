// Status <-> grpc::Status, one mapping for the whole project: the codes are the same, the text goes
// along.
#pragma once

#include "base/status.h"

namespace grpc {
class Status;
}  // namespace grpc

namespace domicile::wire {

// Text after 1024 bytes is cut.
grpc::Status ToGrpc(const Status& status);
// An unknown code becomes kUnknown, and an OK stays OK.
Status FromGrpc(const grpc::Status& status);

// What a server tells a peer. As ToGrpc, but the text of kInternal, kDataLoss and kUnknown stays at
// home, in the operator's log: it may name files and rows that are nobody else's business.
grpc::Status ToPeer(const Status& status);

}  // namespace domicile::wire

// The sockets of a cluster worker, opened before the trainer's walls go up; afterwards none can be.
#pragma once

#include <cstddef>
#include <vector>

#include <sys/socket.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "site_agent/cluster/description.h"

namespace domicile::site_agent {

struct ClusterSockets {
  FileHandle listener;                  // for higher ranks; closed at the highest
  std::vector<FileHandle> lower;        // connected, by rank
  std::vector<sockaddr_storage> hosts;  // of all ranks, as resolved; who may connect
};

// Resolves names, binds the own address on the named interface, and connects to every lower rank,
// trying again until `description.rendezvous` is over. Errors: kInvalidArgument (a name that is not
// known), kFailedPrecondition (no such interface, or the address is not on it), kUnavailable (a
// worker that does not listen, named).
StatusOr<ClusterSockets> OpenClusterSockets(const ClusterDescription& description,
                                            const Clock& clock);

// The next connection from one of the hosts of `ranks`; others are closed at once. Waits up to
// `timeout` on the listener. An empty handle if none came.
StatusOr<FileHandle> AcceptWorker(const ClusterSockets& sockets, std::size_t first_rank,
                                  int timeout_ms);

}  // namespace domicile::site_agent

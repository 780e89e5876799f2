// Heads of frames of the cluster link (docs/formats/cluster.md).
#pragma once

#include <cstdint>

#include "base/status.h"
#include "site_agent/cluster/group.h"

namespace domicile::site_agent::internal {

struct ParsedHead {
  ClusterFrame kind = ClusterFrame::kNone;
  std::uint64_t bytes = 0;
};

FrameHead PrintHead(ClusterFrame kind, std::uint64_t bytes);
// Errors: kInvalidArgument (no such kind).
StatusOr<ParsedHead> ParseHead(const FrameHead& head);

}  // namespace domicile::site_agent::internal

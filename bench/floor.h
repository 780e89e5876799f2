// The floor under a round: what the bytes of a round cost on this machine if nothing else did.
//
// Counted: AES-256-GCM sealing and opening and one loopback TCP copy of every byte on the wire, and
// SHA-256 over the model down (site) and the update up (site and aggregator), all perfectly packed
// on the cores; then the model file written and synced, for which everybody waits. Not counted: any
// other copy, framing, protocol, parsing, folding, policy, log.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace domicile::bench {

// CPU seconds for each byte; of the TCP copy, of both ends together.
struct ByteCosts {
  double seal = 0;
  double open = 0;
  double tcp = 0;
  double sha256 = 0;
};

// Takes about two seconds: the cheapest of several runs of each, so that a busy machine makes the
// floor lower, never higher. Errors: kUnavailable (sockets), kInternal (the cipher).
StatusOr<ByteCosts> MeasureByteCosts();

// Seconds to write a file of that size durably into `folder`; the quickest of three. Errors: of
// files.
StatusOr<double> MeasureFileWrite(const std::string& folder, std::uint64_t bytes);

struct Floor {
  double seconds = 0;
  double cpu_seconds = 0;
  double file_seconds = 0;  // contained in `seconds`
  std::uint64_t wire_bytes = 0;
};

// `parameters` float32 each way between the aggregator and each of `sites`, on `cores` cores.
Floor FloorOfRound(const ByteCosts& costs, double file_seconds, std::uint64_t parameters,
                   std::uint32_t sites, unsigned cores);

}  // namespace domicile::bench

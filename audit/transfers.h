// What crossed which border, by one party's log: one line for each pair of places and kind of
// payload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "audit/event.h"
#include "audit/records.h"
#include "base/json.h"
#include "base/status.h"

namespace domicile::audit {

struct TransferRow {
  PartyPlace from;
  PartyPlace to;
  std::string kinds;                   // joined with `+`, as in one payload
  std::uint64_t count = 0;             // payloads that were sent or received whole
  std::uint64_t bytes = 0;             // theirs
  std::uint64_t unfinished = 0;        // attempts that broke off or were not ended
  std::uint64_t unfinished_bytes = 0;  // at most: of an attempt without an end, the whole payload
  std::uint64_t refused = 0;           // denied at the border, nothing sent
  std::uint64_t capacity_bits = 0;  // of the payloads, each digest once however often it was sent
  std::vector<std::string> rules;   // ids of the rules that allowed them, sorted

  bool CrossesBorder() const { return from.jurisdiction != to.jurisdiction; }
};

// The leaves of a site's or an aggregator's log, in order. Pure. Rows by from, to, kinds. Errors:
// kInvalidArgument: the log does not say whose it is.
StatusOr<std::vector<TransferRow>> Transfers(const std::vector<Leaf>& log);

// The same from a file. Errors: also those of ForEachLeaf.
StatusOr<std::vector<TransferRow>> TransfersOfFile(const std::string& log);

// A table at most 100 columns wide; rules follow below the rows they belong to.
std::string PrintTransfers(const std::vector<TransferRow>& rows);
Json TransfersJson(const std::vector<TransferRow>& rows);

}  // namespace domicile::audit

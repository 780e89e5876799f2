// The rule by which asynchronous workers keep within a staleness bound.
//
// Updates are numbered as they are let through: `granted` counts them. A worker has read the
// parameters when `version` updates had been done; the staleness of its own update is the number of
// updates let through in between that it has not seen. A worker may be overtaken, but never so
// often that it, or any other that has read, could no longer stay within the bound.
#pragma once

#include <cstdint>
#include <vector>

namespace domicile::models {

// Whether all workers with these versions can still be let through, in some order, each with a
// staleness of at most `bound`. O(n log n).
bool CanAllKeepBound(std::vector<std::uint64_t> versions, std::uint64_t granted,
                     std::uint64_t bound);

// Whether another worker may read version `version` now, beside those that have read.
bool MayRead(const std::vector<std::uint64_t>& versions, std::uint64_t version,
             std::uint64_t granted, std::uint64_t bound);

// Whether the worker at `index` may be let through now. INVARIANT: if all can keep the bound, the
// one with the smallest version may, so that waiting always ends.
bool MayUpdate(const std::vector<std::uint64_t>& versions, std::size_t index, std::uint64_t granted,
               std::uint64_t bound);

}  // namespace domicile::models

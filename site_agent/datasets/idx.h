// IDX files, as MNIST and its kin come: a magic number, big-endian dimensions, bytes. Plain or
// gzip.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace domicile::site_agent {

struct IdxArray {
  std::vector<std::uint32_t> shape;  // 1 to 4 dimensions
  Bytes values;                      // unsigned bytes, row-major
};

// Errors: kInvalidArgument: another magic number or type than unsigned bytes, a shape that does not
// agree with the number of bytes.
StatusOr<IdxArray> ParseIdx(Bytes file);

// The contents of a gzip file of one or more members, or of one that is not gzip, the bytes
// themselves. Errors: kInvalidArgument: damaged, cut off, or of more than `max_bytes`.
StatusOr<Bytes> Gunzip(ByteSpan file, std::uint64_t max_bytes);

}  // namespace domicile::site_agent

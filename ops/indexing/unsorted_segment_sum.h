#pragma once

#include <cstdint>

#include "runtime/graph/tensor.h"

namespace mox {

// The sums of the slices of `x` that share a segment; the reverse of gather. For axis 0:
// result[s, :] = sum of x[i..., :] over all i with segments[i...] == s, zeros for a segment that no slice
// names.
//
//   x: float32, int32 or int64; segments: int32 or int64; `axis` in [0, rank of x - rank of segments]: from
//   there, x's shape contains the whole shape of segments, which the result replaces by one axis of extent
//   segment_count >= 0.
// The slices of a segment are added in their order, whatever the number of threads.
// Throws InvalidArgument from its shape rule, and while a plan runs for a segment outside [0, segment_count).
// Gradient: for x, gather; none for segments.
Tensor unsorted_segment_sum(const Tensor& x, const Tensor& segments, int64_t segment_count, int64_t axis = 0,
                            SourceLocation where = SourceLocation::current());

}  // namespace mox

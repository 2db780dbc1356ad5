// What take_along_last_axis and scatter_along_last_axis share: data and indices that agree on all axes but
// the last.
#pragma once

#include "runtime/graph/op.h"

namespace mox::internal {

struct RowExtents {
  int64_t rows;    // product of all axes but the last
  int64_t taken;   // last axis of the indices
  int64_t length;  // of the rows that the indices address
};

RowExtents row_extents(const Shape& indices, int64_t length);

// Fails the call unless input 0 is float32, int32 or int64, input 1 is int32 or int64, both have one rank >=
// 1 and agree on all axes but the last.
void require_row_indices(const OpCall& call);

}  // namespace mox::internal

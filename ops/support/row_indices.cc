#include "ops/support/row_indices.h"

#include "ops/support/shape_rules.h"

namespace mox::internal {

RowExtents row_extents(const Shape& indices, int64_t length) {
  RowExtents extents{1, indices[indices.rank() - 1], length};
  for (int i = 0; i + 1 < indices.rank(); ++i) extents.rows *= indices[i];
  return extents;
}

void require_row_indices(const OpCall& call) {
  call.require(
      call.dtype(0) == DType::kFloat32 || call.dtype(0) == DType::kInt32 || call.dtype(0) == DType::kInt64,
      "data of dtype float32, int32 or int64");
  require_indices(call, 1, "indices");
  const Shape& data = call.shape(0);
  const Shape& indices = call.shape(1);
  bool agree = data.rank() >= 1 && data.rank() == indices.rank();
  for (int i = 0; agree && i + 1 < data.rank(); ++i) agree = data[i] == indices[i];
  call.require(agree, "data and indices of one rank >= 1 whose shapes differ on the last axis alone");
}

}  // namespace mox::internal

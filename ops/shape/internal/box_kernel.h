// The kernel of an operator that copies one box of elements from its input into its result: slice and pad.
#pragma once

#include <optional>
#include <vector>

#include "ops/shape/internal/fill_value.h"
#include "runtime/graph/op.h"

namespace mox::internal {

// Which box: `extents` elements along each axis, from `source_begin` of the first input to `target_begin` of
// the first output. It lies inside of both.
struct Box {
  std::vector<int64_t> extents, source_begin, target_begin;
};

// Fills the output with `fill`, if there is one, and copies the box. An image keeps its layout if channels
// lie last, or in blocks (nChw16c) that it and the result fill, though the box may begin within a block;
// everything else becomes plain. (What lies beside channels that do not fill their blocks would have to
// become zero.)
Kernel box_kernel(const KernelRequest& request, const Box& box, std::optional<FillValue> fill = {});

}  // namespace mox::internal

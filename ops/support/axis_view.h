// A row-major tensor seen around one axis: [outer, extent, inner].
#pragma once

#include "runtime/tensor/shape.h"

namespace mox::internal {

struct AxisView {
  int64_t outer = 1;   // product of the extents before the axis
  int64_t extent = 1;  // of the axis
  int64_t inner = 1;   // product of the extents after it
};

inline AxisView axis_view(const Shape& shape, int axis) {
  AxisView view;
  for (int i = 0; i < axis; ++i) view.outer *= shape[i];
  view.extent = shape[axis];
  for (int i = axis + 1; i < shape.rank(); ++i) view.inner *= shape[i];
  return view;
}

}  // namespace mox::internal

#include "ops/support/internal/reduction_walk.h"

namespace mox {

void AxisWalk::add(int64_t extent, int64_t stride) {
  extents_.push_back(extent);
  strides_.push_back(stride);
  count_ *= extent;
}

int64_t AxisWalk::offset(int64_t index) const {
  int64_t offset = 0;
  for (size_t d = extents_.size(); d-- > 0; index /= extents_[d]) offset += index % extents_[d] * strides_[d];
  return offset;
}

ReductionWalk walk_reduction(const Shape& shape, const std::vector<bool>& reduced) {
  struct Axis {
    int64_t extent, stride;
    bool reduced;
  };
  ReductionWalk walk;
  std::vector<Axis> axes;
  const std::vector<int64_t> strides = shape.strides();
  for (int a = 0; a < shape.rank(); ++a) {
    const size_t i = a;
    (reduced[i] ? walk.reduced_elements : walk.results) *= shape[a];
    if (shape[a] == 1) continue;
    if (!axes.empty() && axes.back().reduced == reduced[i]) {
      axes.back().extent *= shape[a];
      axes.back().stride = strides[i];
    } else {
      axes.push_back({shape[a], strides[i], reduced[i]});
    }
  }
  if (axes.empty()) return walk;
  walk.length = axes.back().extent;
  walk.length_is_reduced = axes.back().reduced;
  axes.pop_back();
  for (const Axis& axis : axes) (axis.reduced ? walk.reduced : walk.kept).add(axis.extent, axis.stride);
  return walk;
}

}  // namespace mox

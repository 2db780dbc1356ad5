#include "ops/shape/shape.h"
#include "ops/support/shape_rules.h"

namespace mox {

std::vector<Tensor> unstack(const Tensor& x, int64_t axis, SourceLocation where) {
  internal::require_defined(x, "unstack", where);
  const int rank = x.shape().rank();
  const bool axis_exists = axis >= -rank && axis < rank;
  // For an axis that does not exist, split says so.
  const int64_t parts = axis_exists ? x.shape()[x.shape().normalized_axis(axis)] : 1;
  std::vector<Tensor> slices = split(x, parts, axis, where);
  for (Tensor& slice : slices) slice = squeeze(slice, {axis}, where);
  return slices;
}

}  // namespace mox

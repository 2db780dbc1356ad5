#include <fmt/format.h>

#include "ops/arithmetic/arithmetic.h"
#include "ops/losses/losses.h"
#include "ops/support/shape_rules.h"
#include "runtime/base/error.h"

namespace mox {

Tensor smooth_labels(const Tensor& labels, double smoothing, SourceLocation where) {
  internal::require_defined(labels, "smooth_labels", where);
  const Shape& shape = labels.shape();
  const bool has_classes = shape.rank() >= 1 && shape[shape.rank() - 1] >= 1;
  if (!has_classes || labels.dtype() != DType::kFloat32 || !(smoothing >= 0 && smoothing < 1))
    throw InvalidArgument(
        fmt::format("smooth_labels at {}: expected float32 labels [..., classes] with at least one class and "
                    "smoothing in [0, 1); given {} and {}",
                    to_string(where), to_string(labels), smoothing));
  const double classes = shape[shape.rank() - 1];
  return add(mul(labels, 1 - smoothing, where), smoothing / classes, where);
}

}  // namespace mox

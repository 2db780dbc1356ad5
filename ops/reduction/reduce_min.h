// The smallest elements over axes.
#pragma once

#include "ops/reduction/reduce_options.h"
#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// The smallest element of x over `axes`; NaN if there is one among them. float32, int32 or int64. Throws
// InvalidArgument for an axis that x does not have, that is named twice, or that is empty. Gradient: g,
// shared equally by all elements that are as small as the result (as in TensorFlow).
Tensor reduce_min(const Tensor& x, const ReduceOptions& options = {},
                  SourceLocation where = SourceLocation::current());

}  // namespace mox

// Means over axes.
#pragma once

#include "ops/reduction/reduce_options.h"
#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// The mean of x over `axes`: the sum, collected in float64, divided by the number of elements. float32; the
// mean of nothing is NaN (as in NumPy). Throws InvalidArgument for an axis that x does not have or that is
// named twice. Gradient: g / n for every element, n the number of elements that go into one mean.
Tensor reduce_mean(const Tensor& x, const ReduceOptions& options = {},
                   SourceLocation where = SourceLocation::current());

}  // namespace mox

// Sums over axes.
#pragma once

#include "ops/reduction/reduce_options.h"
#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// The sum of x over `axes`. float32, int32 or int64 (integers wrap around); the sum of nothing is 0. float32
// sums are collected in float64. Throws InvalidArgument for an axis that x does not have or that is named
// twice. Gradient: g for every element.
Tensor reduce_sum(const Tensor& x, const ReduceOptions& options = {},
                  SourceLocation where = SourceLocation::current());

}  // namespace mox

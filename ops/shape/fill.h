#pragma once

#include <vector>

#include "runtime/graph/tensor.h"

namespace mox {

// A tensor of which every element is `value`.
//
//   shape: extents >= 0; dtype: any; value: must be a value of an integer dtype or bool exactly, is rounded
//   to a floating one.
// Throws InvalidArgument otherwise, FailedPrecondition outside of a model function.
Tensor fill(std::vector<int64_t> shape, double value, DType dtype = DType::kFloat32,
            SourceLocation where = SourceLocation::current());

// Zeros and ones of the type of x. They do not depend on x's values: no gradient.
Tensor zeros_like(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor ones_like(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox

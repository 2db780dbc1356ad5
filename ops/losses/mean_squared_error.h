// The loss of least squares.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// The mean over all elements of (predictions - labels)^2, a scalar. float32, of one shape (InvalidArgument
// otherwise: a [n, 1] against an [n] would broadcast to n^2 differences without a word). Gradients pass to
// both.
Tensor mean_squared_error(const Tensor& predictions, const Tensor& labels,
                          SourceLocation where = SourceLocation::current());

}  // namespace mox

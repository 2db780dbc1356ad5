// The gradient of bias_add with respect to the bias, and that sum's own gradient.
#pragma once

#include "runtime/graph/op.h"

namespace mox {

// The sum of dy over every axis but that of the channels (see bias_add): [channels]. Summed in pieces whose
// borders depend on the shape alone. dy: float32 of rank 2 or more. Gradient: bias_broadcast.
Tensor bias_add_gradient(const Tensor& dy, SourceLocation where = SourceLocation::current());

// bias [channels] repeated along every other axis of `shape`. Gradient: bias_add_gradient. Throws
// InvalidArgument if the bias does not have the channels of `shape`.
Tensor bias_broadcast(const Tensor& bias, const Shape& shape,
                      SourceLocation where = SourceLocation::current());

}  // namespace mox

// Adding one number a channel.
#pragma once

#include "runtime/graph/op.h"

namespace mox {

// y = x + bias, where bias has one element a channel of x: axis 1 of an image [batch, channels, height,
// width], the last axis of anything else. x: float32 of rank 2 or more; bias: float32 [channels]. Gradient:
// dx = dy; dbias = bias_add_gradient(dy). Throws InvalidArgument where the types do not fit.
Tensor bias_add(const Tensor& x, const Tensor& bias, SourceLocation where = SourceLocation::current());

}  // namespace mox

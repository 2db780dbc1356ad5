#pragma once

#include "runtime/graph/tensor.h"

namespace mox {

// x where the mask of a dropout node keeps, divided by the probability to be kept, and 0 elsewhere: the
// gradient of dropout.
//
//   x: float32, of the shape that the mask was drawn for; mask: the dropout node's second output, uint8 with
//   one bit an element (its order is the node's own business); rate: that of the node, in [0, 1); the result
//   has x's type.
// Throws InvalidArgument otherwise. Gradient: for x, g with the same mask; none for the mask.
Tensor apply_dropout_mask(const Tensor& x, const Tensor& mask, double rate,
                          SourceLocation where = SourceLocation::current());

}  // namespace mox

#pragma once

#include "runtime/graph/tensor.h"

namespace mox {

// While training, sets each element to 0 with probability `rate` and divides the others by the probability to
// be kept, so that the expected value stays x. Otherwise it is x itself: no node is made.
//
//   x: float32, any shape; rate in [0, 1); the result has x's type.
// 16 random bits decide for an element: the rate is rounded to a multiple of 2^-16 (but neither to 0, unless
// it is 0, nor to 1), and the division is by the rounded probability. The bits are a pure function of (seed
// of the run, name of the node, global step, position of the element): see random_options.h. Throws
// InvalidArgument otherwise. Gradient: g, masked and divided likewise (apply_dropout_mask). Srivastava et
// al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting" (JMLR 15, 2014).
Tensor dropout(const Tensor& x, double rate, bool training, SourceLocation where = SourceLocation::current());

}  // namespace mox

// Random numbers, and dropout. What is drawn depends on the seed, the step and the op, never on
// threads or placement.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/tensor.h"

namespace mox {

struct RandomNormalOptions {
  double mean = 0.0;
  double stddev = 1.0;  // >= 0
};

struct RandomUniformOptions {
  double low = 0.0;
  double high = 1.0;  // > low
};

// Independent values, uniform in [low, high), new at every step.
//
//   shape: extents >= 0; result: float32.
// Throws InvalidArgument unless low < high (as float32 too) and both are finite, FailedPrecondition outside
// of a model function.
Tensor random_uniform(std::vector<int64_t> shape, const RandomUniformOptions& options = {},
                      SourceLocation where = SourceLocation::current());

// Independent normal values, new at every step.
//
//   shape: extents >= 0; result: float32.
// Throws InvalidArgument for a negative or infinite stddev or mean, FailedPrecondition outside
// of a model function.
Tensor random_normal(std::vector<int64_t> shape, const RandomNormalOptions& options = {},
                     SourceLocation where = SourceLocation::current());

// Independent normal values of which none is farther than two standard deviations from the mean (others are
// drawn anew), new at every step. Their own standard deviation is 0.8796 times `stddev`.
//
//   shape: extents >= 0; result: float32.
// Throws InvalidArgument for a negative or infinite stddev or mean, FailedPrecondition outside
// of a model function.
Tensor random_truncated_normal(std::vector<int64_t> shape, const RandomNormalOptions& options = {},
                               SourceLocation where = SourceLocation::current());

// While training, sets each element to 0 with probability `rate` and divides the others by the probability to
// be kept, so that the expected value stays x. Otherwise it is x itself: no node is made.
//
//   x: float32, any shape; rate in [0, 1); the result has x's type.
// 16 random bits decide for an element: the rate is rounded to a multiple of 2^-16 (but neither to 0, unless
// it is 0, nor to 1), and the division is by the rounded probability. The bits are a pure function of (seed
// of the run, name of the node, global step, position of the element). Throws InvalidArgument otherwise.
// Gradient: g, masked and divided likewise (apply_dropout_mask). Srivastava et al., "Dropout: A Simple Way to
// Prevent Neural Networks from Overfitting" (JMLR 15, 2014).
Tensor dropout(const Tensor& x, double rate, bool training, SourceLocation where = SourceLocation::current());

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

// The softmax of the last axis, its logarithm, and their gradients.
#pragma once

#include <cstdint>

#include "runtime/graph/tensor.h"

namespace mox {

// exp(x) / sum(exp(x)) along `axis`: positive numbers whose sum is 1. Computed as exp((x - m) - log(sum(exp(x
// - m)))) with m the maximum, so that it neither overflows nor loses digits.
//
//   x: float32, rank >= 1, any shape; axis in [-rank, rank); the result has x's type.
// A logit of -infinity counts as absent; NaN or +infinity makes its whole slice NaN.
// Throws InvalidArgument otherwise. Gradient: softmax_gradient(y, g).
Tensor softmax(const Tensor& x, int64_t axis = -1, SourceLocation where = SourceLocation::current());

// x - log(sum(exp(x))) along `axis`: the logarithm of softmax, computed without taking a logarithm of a
// rounded softmax.
//
//   x: float32, rank >= 1, any shape; axis in [-rank, rank); the result has x's type.
// A logit of -infinity counts as absent; NaN or +infinity makes its whole slice NaN.
// Throws InvalidArgument otherwise. Gradient: log_softmax_gradient(y, g).
Tensor log_softmax(const Tensor& x, int64_t axis = -1, SourceLocation where = SourceLocation::current());

// The gradient of y = softmax(x) for x: y * (dy - sum(y * dy)), summed along `axis`.
//
//   y, dy: float32, one shape, rank >= 1; axis in [-rank, rank); the result has their type.
// Throws InvalidArgument otherwise. Gradients: for both, in ops of the public vocabulary.
Tensor softmax_gradient(const Tensor& y, const Tensor& dy, int64_t axis = -1,
                        SourceLocation where = SourceLocation::current());

// The gradient of y = log_softmax(x) for x: dy - exp(y) * sum(dy), summed along `axis`.
//
//   y, dy: float32, one shape, rank >= 1; axis in [-rank, rank); the result has their type.
// Throws InvalidArgument otherwise. Gradients: for both, in ops of the public vocabulary.
Tensor log_softmax_gradient(const Tensor& y, const Tensor& dy, int64_t axis = -1,
                            SourceLocation where = SourceLocation::current());

}  // namespace mox

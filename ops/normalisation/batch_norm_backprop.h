// The gradient of batch_norm.
#pragma once

#include "ops/normalisation/batch_norm.h"

namespace mox {

struct BatchNormGradients {
  Tensor x, scale, offset;
};

// The gradients of x, scale and offset for y = batch_norm(x, scale, offset), given dy; `mean` and `variance`
// are the batch's, as batch_norm returned them. With n = (x - mean) / sqrt(variance + epsilon): doffset =
// sum(dy), dscale = sum(dy * n), dx = scale / sqrt(variance + epsilon) * (dy - mean(dy) - n * mean(dy * n)).
// Has no gradient of its own.
BatchNormGradients batch_norm_backprop(const Tensor& x, const Tensor& scale, const Tensor& mean,
                                       const Tensor& variance, const Tensor& dy,
                                       const BatchNormOptions& options,
                                       SourceLocation where = SourceLocation::current());

}  // namespace mox

// Batch normalisation.
#pragma once

#include "runtime/graph/op.h"

namespace mox {

struct BatchNormOptions {
  double epsilon = 1e-3;  // added to the variance
};

struct BatchNormResult {
  Tensor y;     // of x's type
  Tensor mean;  // [channels]: over batch and pixels
  // [channels]: the biased one (divided by the number of values), which y was normalised with
  Tensor variance;
};

// Training: y = (x - mean) / sqrt(variance + epsilon) * scale + offset, with mean and variance of this batch,
// per channel. Keeping moving averages of them is the caller's business.
//
// x: float32 [batch, channels, height, width] or [batch, channels]; scale, offset: float32 [channels].
// The sums over a batch of images do not depend on the team's size; those over a matrix are oneDNN's, which
// cuts them by the number of threads: teams of different sizes agree within rounding. An empty batch has mean
// and variance 0. Gradient: batch_norm_backprop, through mean and variance included. Throws InvalidArgument
// where types do not fit. Ioffe & Szegedy, "Batch Normalization" (2015).
BatchNormResult batch_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                           const BatchNormOptions& options = {},
                           SourceLocation where = SourceLocation::current());

// Inference: the same formula with a given mean and variance [channels].
Tensor batch_norm_inference(const Tensor& x, const Tensor& scale, const Tensor& offset, const Tensor& mean,
                            const Tensor& variance, const BatchNormOptions& options = {},
                            SourceLocation where = SourceLocation::current());

}  // namespace mox

// Normalisation over batches, and what is added to whole channels.
#pragma once

#include "runtime/graph/op.h"
#include "runtime/graph/tensor.h"

namespace mox {

struct NormalisationOptions {
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
// x: float32 [batch, channels, ...]; scale, offset: float32 [channels]. The sums over a batch do not depend
// on the team's size. An empty batch has mean and variance 0. Gradient: batch_norm_gradient, through mean and
// variance included. Throws InvalidArgument where types do not fit.
// Ioffe & Szegedy, "Batch Normalization" (2015).
BatchNormResult batch_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                           const NormalisationOptions& options = {},
                           SourceLocation where = SourceLocation::current());

// Inference: the same formula with a given mean and variance [channels].
Tensor batch_norm_inference(const Tensor& x, const Tensor& scale, const Tensor& offset, const Tensor& mean,
                            const Tensor& variance, const NormalisationOptions& options = {},
                            SourceLocation where = SourceLocation::current());

struct BatchNormGradients {
  Tensor x, scale, offset;
};

// The gradients of x, scale and offset for y = batch_norm(x, scale, offset), given dy; `mean` and `variance`
// are the batch's, as batch_norm returned them. With n = (x - mean) / sqrt(variance + epsilon): doffset =
// sum(dy), dscale = sum(dy * n), dx = scale / sqrt(variance + epsilon) * (dy - mean(dy) - n * mean(dy * n)).
// Has no gradient of its own.
BatchNormGradients batch_norm_gradient(const Tensor& x, const Tensor& scale, const Tensor& mean,
                                       const Tensor& variance, const Tensor& dy,
                                       const NormalisationOptions& options,
                                       SourceLocation where = SourceLocation::current());

struct SyncBatchNormResult {
  Tensor y;         // of x's type
  Tensor mean;      // [channels]: over the batches of all replicas, and pixels
  Tensor variance;  // [channels]: the biased one
  Tensor values;    // [1]: how many values of a channel there are in all replicas
};

// batch_norm, as if the batches of all replicas were one: two exchanges forward (replica_sum of the sums,
// then of the distances from their mean and of the squared ones, so nothing is lost where the mean is large)
// and one backward, each of up to 2 [channels] numbers. Where there is one replica the result is that of
// batch_norm, within rounding.
//
// It is made of elementwise ops and reductions, whose sums do not depend on the team's size, and takes longer
// than batch_norm. x: float32 [batch, channels, ...]; scale, offset: float32 [channels]. Throws
// InvalidArgument where types do not fit. Gradient: that of the formula, through the
// statistics of all replicas.
SyncBatchNormResult sync_batch_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                                    const NormalisationOptions& options = {},
                                    SourceLocation where = SourceLocation::current());

// The sum of x over the logical replicas that compute a step together, on all devices and ranks: the same
// bits for all of them, wherever they are. x itself where there is one replica, and in a plan that is no
// training step. A replica whose batch is missing at the end of the data counts nothing.
//
//   x: float32 of any shape. Throws InvalidArgument for another type.
// Gradient: the sum over the replicas of g, each weighed as its replica is in the loss. All replicas must be
// computed at the same time, which `sync_batch_norm: true` arranges; the step ends with
// FailedPrecondition otherwise.
Tensor replica_sum(const Tensor& x, SourceLocation where = SourceLocation::current());

// y = x + bias, where bias has one element a channel of x: axis 1 of an image [batch, channels, height,
// width], the last axis of anything else. x: float32 of rank 2 or more; bias: float32 [channels]. Gradient:
// dx = dy; dbias = bias_add_gradient(dy). Throws InvalidArgument where the types do not fit.
Tensor bias_add(const Tensor& x, const Tensor& bias, SourceLocation where = SourceLocation::current());

// The sum of dy over every axis but that of the channels (see bias_add): [channels]. Summed in pieces whose
// borders depend on the shape alone. dy: float32 of rank 2 or more. Gradient: bias_broadcast.
Tensor bias_add_gradient(const Tensor& dy, SourceLocation where = SourceLocation::current());

// bias [channels] repeated along every other axis of `shape`. Gradient: bias_add_gradient. Throws
// InvalidArgument if the bias does not have the channels of `shape`.
Tensor bias_broadcast(const Tensor& bias, const Shape& shape,
                      SourceLocation where = SourceLocation::current());

}  // namespace mox

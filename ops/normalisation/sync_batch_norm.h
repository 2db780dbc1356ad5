// Batch normalisation with the statistics of all replicas of a training step.
#pragma once

#include "ops/normalisation/batch_norm.h"

namespace mox {

struct SyncBatchNormResult {
  Tensor y;         // of x's type
  Tensor mean;      // [channels]: over the batches of all replicas, and pixels
  Tensor variance;  // [channels]: the biased one
  Tensor values;    // [1]: how many values of a channel there are in all replicas
};

// batch_norm (batch_norm.h), as if the batches of all replicas were one: two exchanges forward (replica_sum
// of the sums, then of the squared distances from the common mean, so nothing is lost where the mean is
// large) and two backward, each of about [channels] numbers. Where there is one replica the result is that of
// batch_norm, within rounding.
//
// It is made of elementwise ops and reductions, whose sums do not depend on the team's size, and takes longer
// than batch_norm. x: float32 [batch, channels, height, width] or [batch, channels]; scale, offset: float32
// [channels]. Throws InvalidArgument where types do not fit. Gradient: that of the formula, through the
// statistics of all replicas.
SyncBatchNormResult sync_batch_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                                    const BatchNormOptions& options = {},
                                    SourceLocation where = SourceLocation::current());

}  // namespace mox

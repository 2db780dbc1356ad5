// The sum over all replicas of a training step.
#pragma once

#include "runtime/graph/tensor.h"

namespace mox {

// The sum of x over the logical replicas that compute a step together, on all devices and ranks: the same
// bits for all of them, wherever they are. x itself where there is one replica, and in a plan that is no
// training step. A replica whose batch is missing at the end of the data counts nothing.
//
//   x: float32 of any shape. Throws InvalidArgument for another type.
// Gradient: the sum over the replicas of g, each weighed as its replica is in the loss. All replicas must be
// computed at the same time, which `sync_batch_norm: true` arranges; the step ends with FailedPrecondition
// otherwise.
Tensor replica_sum(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox

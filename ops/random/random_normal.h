#pragma once

#include <cstdint>
#include <vector>

#include "ops/random/random_options.h"
#include "runtime/graph/tensor.h"

namespace mox {

// Independent normal values, new at every step (see random_options.h).
//
//   shape: extents >= 0; result: float32.
// Throws InvalidArgument for a negative or infinite stddev or mean, FailedPrecondition outside of a model
// function.
Tensor random_normal(std::vector<int64_t> shape, const RandomNormalOptions& options = {},
                     SourceLocation where = SourceLocation::current());

}  // namespace mox

#pragma once

#include <cstdint>
#include <vector>

#include "ops/random/random_options.h"
#include "runtime/graph/tensor.h"

namespace mox {

// Independent values, uniform in [low, high), new at every step (see random_options.h).
//
//   shape: extents >= 0; result: float32.
// Throws InvalidArgument unless low < high (as float32 too) and both are finite, FailedPrecondition outside
// of a model function.
Tensor random_uniform(std::vector<int64_t> shape, const RandomUniformOptions& options = {},
                      SourceLocation where = SourceLocation::current());

}  // namespace mox

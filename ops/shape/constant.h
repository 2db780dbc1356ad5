#pragma once

#include "runtime/graph/tensor.h"

namespace mox {

// A value that is part of the graph: the array as it is when the function is called.
// Throws InvalidArgument for an undefined array, FailedPrecondition outside of a model function. No gradient.
Tensor constant(const Array& value, SourceLocation where = SourceLocation::current());

// A float32 scalar.
Tensor constant(float value, SourceLocation where = SourceLocation::current());

}  // namespace mox

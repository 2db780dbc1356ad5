// Half the squared Euclidean norm.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// sum(x^2) / 2, a scalar. float32. Gradient: g x.
Tensor l2_loss(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox

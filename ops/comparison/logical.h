// Logic on bool tensors, element by element.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// bool inputs that broadcast as in NumPy; the result is bool. No gradient passes.
Tensor logical_and(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor logical_or(const Tensor& a, const Tensor& b, SourceLocation where = SourceLocation::current());
Tensor logical_not(const Tensor& a, SourceLocation where = SourceLocation::current());

}  // namespace mox

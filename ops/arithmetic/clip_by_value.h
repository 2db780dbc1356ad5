// Values held between two bounds.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// min(max(x, low), high), element by element. float32; low <= high (InvalidArgument otherwise). NaN stays
// NaN. Gradient: g where low <= x <= high, 0 elsewhere.
Tensor clip_by_value(const Tensor& x, double low, double high,
                     SourceLocation where = SourceLocation::current());

}  // namespace mox

// A smooth rectifier.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// ln(1 + e^x), element by element, computed as max(x, 0) + ln(1 + e^-|x|), which does not overflow. float32.
// Gradient: g sigmoid(x).
Tensor softplus(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox

// The rectified linear unit.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// max(x, 0), element by element. float32. NaN stays NaN. Gradient: g where the result is positive, 0
// elsewhere. Nair & Hinton, "Rectified Linear Units Improve Restricted Boltzmann Machines" (ICML 2010).
Tensor relu(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox

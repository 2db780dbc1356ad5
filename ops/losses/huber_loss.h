// A loss that is quadratic for small errors and linear for large ones.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

struct HuberLossOptions {
  double delta = 1.0;  // the error at which the loss becomes linear; > 0
};

// The mean over all elements of e^2 / 2 where |e| <= delta, and delta (|e| - delta / 2) elsewhere, for the
// error e = predictions - labels; a scalar. float32, of one shape (InvalidArgument otherwise). Gradients pass
// to both. Huber, "Robust Estimation of a Location Parameter" (1964).
Tensor huber_loss(const Tensor& predictions, const Tensor& labels, HuberLossOptions options = {},
                  SourceLocation where = SourceLocation::current());

}  // namespace mox

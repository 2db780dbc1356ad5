// A rectifier that lets some of the negative side through.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

struct LeakyReluOptions {
  double slope = 0.2;  // of the negative side
};

// x where x >= 0, slope * x below, element by element. float32. Gradient: g where x >= 0, slope * g below.
// Maas, Hannun & Ng, "Rectifier Nonlinearities Improve Neural Network Acoustic Models" (2013).
Tensor leaky_relu(const Tensor& x, LeakyReluOptions options = {},
                  SourceLocation where = SourceLocation::current());

}  // namespace mox

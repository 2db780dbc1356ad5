// Activation functions, element by element.
#pragma once

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// max(x, 0), element by element. float32. NaN stays NaN. Gradient: g where the result is positive, 0
// elsewhere. Nair & Hinton, "Rectified Linear Units Improve Restricted Boltzmann Machines" (ICML 2010).
Tensor relu(const Tensor& x, SourceLocation where = SourceLocation::current());

struct LeakyReluOptions {
  double slope = 0.2;  // of the negative side
};

// x where x >= 0, slope * x below, element by element. float32. Gradient: g where x >= 0, slope * g below.
// Maas, Hannun & Ng, "Rectifier Nonlinearities Improve Neural Network Acoustic Models" (2013).
Tensor leaky_relu(const Tensor& x, LeakyReluOptions options = {},
                  SourceLocation where = SourceLocation::current());

// 1 / (1 + e^-x), element by element. float32. Gradient: g y (1 - y), y the result.
Tensor sigmoid(const Tensor& x, SourceLocation where = SourceLocation::current());

// tanh(x), element by element. float32. Gradient: g (1 - y^2), y the result.
Tensor tanh(const Tensor& x, SourceLocation where = SourceLocation::current());

// ln(1 + e^x), element by element, computed as max(x, 0) + ln(1 + e^-|x|), which does not overflow. float32.
// Gradient: g sigmoid(x).
Tensor softplus(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox

// The kernels of a step by what they do.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/step_profile.h"

namespace bench {

// Seconds a step by category, in this order: convolution_forward, convolution_data, convolution_weights,
// convolution_gradients (both in one kernel, with that of the normalisation behind the convolution),
// matrix_product, normalisation, pooling, elementwise (all other ops), reorders, optimizer, overhead. They
// sum up to the step.
std::vector<std::pair<std::string, double>> categories(const StepProfile& profile);

}  // namespace bench

// The kernel of the ops that reduce axes.
//
// Sums add at most 128 numbers one after another in float32 and, of elements side by side, 32 such sums in
// pairs: 4,096 elements. What comes of that is added in float64 (integers: modulo 2^64), so their error does
// not grow with the number of elements. All cuts follow from the shape: the bits of a result are the same for
// any number of threads.
#pragma once

#include <vector>

#include "runtime/graph/kernel.h"

namespace mox {

enum class Reduction { kSum, kMean, kMax, kMin };

// Reduces the axes of input 0 for which `reduced` is true. The output has the remaining elements in their
// order, under whatever shape. float32, int32 or int64; kMean: float32.
Kernel reduction_kernel(const Node& node, Reduction reduction, const std::vector<bool>& reduced);

}  // namespace mox

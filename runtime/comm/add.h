// The addition of which every sum of gradients is made.
#pragma once

#include <cstdint>

namespace mox {

// left[i] += right[i]; the arrays do not overlap. As fast as memory gives the numbers.
void add_to(float* __restrict left, const float* __restrict right, int64_t elements);

}  // namespace mox

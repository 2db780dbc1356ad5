#include "runtime/comm/add.h"

namespace mox {

void add_to(float* __restrict left, const float* __restrict right, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) left[i] += right[i];
}

}  // namespace mox

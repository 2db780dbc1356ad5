// Compiled with AVX-512 switched on; called only where the processor has it.
#include "ops/convolution/lanes/pointwise_filter.h"

namespace mox::pointwise_filter {

void run_tasks_avx512(const Problem& problem, const float* x, const float* dy, std::span<const Task> tasks,
                      float* dw, float* scratch) {
  run_tasks<Singles>(problem, x, dy, tasks, dw, scratch);
}

}  // namespace mox::pointwise_filter

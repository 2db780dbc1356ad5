// Compiled with AVX-512 switched on; called only where the processor has it.
#include "ops/convolution/internal/pointwise_filter_loops.h"

namespace mox::pointwise_filter {
namespace {

struct Singles {
  using Element = float;
  static constexpr int64_t kPositions = 1;
  static Vector add_product(Vector sum, Vector a, Vector b) { return _mm512_fmadd_ps(a, b, sum); }
  static void pack(const float* line, const float*, float* to) { _mm512_store_ps(to, _mm512_loadu_ps(line)); }
};

}  // namespace

void run_tasks_avx512(const Problem& problem, const float* x, const float* dy, std::span<const Task> tasks,
                      float* dw, float* scratch) {
  run_tasks<Singles>(problem, x, dy, tasks, dw, scratch);
}

}  // namespace mox::pointwise_filter

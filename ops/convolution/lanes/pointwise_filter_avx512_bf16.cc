// Compiled with AVX-512 and its instructions for bfloat16 switched on; called only where the
// processor has them.
#include "ops/convolution/lanes/pointwise_filter.h"

namespace mox::pointwise_filter {
namespace {

// Two bfloat16 numbers in the place of one number of float32, the first in its lower half, whose products are
// added up in float32.
struct Pairs {
  using Element = BFloat16;
  static constexpr int64_t kPositions = 2;
  static Vector add_product(Vector sum, Vector a, Vector b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
  static void pack(const BFloat16* first, const BFloat16* second, float* to) {
    const __m512i interleaved = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,
                                                 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i lower = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(first)));
    const __m256i upper = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second));
    const __m512i both = _mm512_maskz_inserti64x4(0xff, lower, upper, 1);
    _mm512_store_si512(to, _mm512_permutexvar_epi16(interleaved, both));
  }
};

}  // namespace

void run_tasks_avx512_bf16(const Problem& problem, const BFloat16* x, const BFloat16* dy,
                           std::span<const Task> tasks, float* dw, float* scratch) {
  run_tasks<Pairs>(problem, x, dy, tasks, dw, scratch);
}

}  // namespace mox::pointwise_filter

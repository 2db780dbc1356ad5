// Compiled with AVX-512 switched on; called only where the processor has it.
#include "ops/matmul/internal/narrow_matmul_tiles.h"

namespace mox {
namespace {

struct Avx512 {
  using Vector = __m512;
  static constexpr int kLanes = 16;
  // Twenty sums in thirty-two registers.
  static constexpr int kDotRows = 4, kDotColumns = 5;
  static constexpr int kOuterColumns = 10;
  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  static Vector broadcast(const float& value) { return _mm512_set1_ps(value); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static float sum(Vector v) {
    alignas(64) float lanes[kLanes];
    _mm512_store_ps(lanes, v);
    const __m256 eight = _mm256_add_ps(_mm256_load_ps(lanes), _mm256_load_ps(lanes + 8));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
};

}  // namespace

const NarrowMatmulKernels kNarrowMatmulAvx512{NarrowTiles<Avx512>::multiply,
                                              NarrowTiles<Avx512>::multiply_transposed};

}  // namespace mox

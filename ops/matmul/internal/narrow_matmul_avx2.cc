#include "ops/matmul/internal/narrow_matmul_tiles.h"

namespace mox {
namespace {

struct Avx2 {
  using Vector = __m256;
  static constexpr int kLanes = 8;
  // Ten sums in sixteen registers.
  static constexpr int kDotRows = 2, kDotColumns = 5;
  static constexpr int kOuterColumns = 5;
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  static Vector broadcast(const float& value) { return _mm256_broadcast_ss(&value); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static float sum(Vector v) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
};

}  // namespace

const NarrowMatmulKernels kNarrowMatmulAvx2{NarrowTiles<Avx2>::multiply,
                                            NarrowTiles<Avx2>::multiply_transposed};

}  // namespace mox

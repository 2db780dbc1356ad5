#include "ops/internal/batch_norm_planes.h"

namespace mox::normalisation {
namespace {

struct Avx2 {
  using Vector = __m256;
  static constexpr int kLanes = 8;
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector broadcast(float value) { return _mm256_set1_ps(value); }
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static Vector load(const BFloat16* p) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  // Rounds to nearest even; NaN stays NaN.
  static void store(BFloat16* p, Vector v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256 is_nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(is_nan));
    const __m256i upper = _mm256_srli_epi32(chosen, 16);
    const __m128i halves =
        _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), halves);
  }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector subtract(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
  static Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  // Of a number and a value: NaN in the value stays.
  static Vector maximum(Vector number, Vector value) { return _mm256_max_ps(number, value); }
  static Vector minimum(Vector number, Vector value) { return _mm256_min_ps(number, value); }
  // `taken` where low < value <= high (low <= value <= high), else 0.
  static Vector where_above(Vector value, Vector low, Vector high, Vector taken) {
    return _mm256_and_ps(
        taken, _mm256_and_ps(_mm256_cmp_ps(value, low, _CMP_GT_OQ), _mm256_cmp_ps(value, high, _CMP_LE_OQ)));
  }
  static Vector where_within(Vector value, Vector low, Vector high, Vector taken) {
    return _mm256_and_ps(
        taken, _mm256_and_ps(_mm256_cmp_ps(value, low, _CMP_GE_OQ), _mm256_cmp_ps(value, high, _CMP_LE_OQ)));
  }
};

}  // namespace

const Loops<float> kFloatAvx2[2] = {make_loops<Avx2, float, 1>(), make_loops<Avx2, float, 2>()};
const Loops<BFloat16> kBFloat16Avx2[2] = {make_loops<Avx2, BFloat16, 1>(), make_loops<Avx2, BFloat16, 2>()};

}  // namespace mox::normalisation

// Eight numbers of float32 or bfloat16 in memory as a vector of float32, with AVX2.
#pragma once

#include <immintrin.h>

#include "runtime/tensor/dtype.h"

namespace mox {

inline __m256 load_lanes(const float* p) { return _mm256_loadu_ps(p); }
inline __m256 load_lanes(const BFloat16* p) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

inline void store_lanes(float* p, __m256 v) { _mm256_storeu_ps(p, v); }
// Rounds to nearest even; NaN stays NaN.
inline void store_lanes(BFloat16* p, __m256 v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 is_nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
  const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(is_nan));
  const __m256i upper = _mm256_srli_epi32(chosen, 16);
  const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), halves);
}

}  // namespace mox

// lanes.h with AVX-512 F and BW: 32 registers of 16 numbers.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "runtime/tensor/dtype.h"

#ifdef __AVX512BF16__
#define MOX_LANES avx512_bf16
#else
#define MOX_LANES avx512
#endif

namespace mox::lanes {
inline namespace MOX_LANES {

using Vector = __m512;
using Mask = __mmask16;
inline constexpr int64_t kLanes = 16;
inline constexpr int kRegisters = 32;

// GCC 12 takes the unmasked forms of some instructions for uses of uninitialised values.
inline constexpr Mask kAllLanes = 0xffff;
inline constexpr __mmask8 kAllPairs = 0xff;

inline Vector zero() { return _mm512_setzero_ps(); }
inline Vector splat(float value) { return _mm512_set1_ps(value); }
inline Vector load(const float* from) { return _mm512_loadu_ps(from); }
inline Vector load(const BFloat16* from) {
  const __m256i upper_halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(kAllLanes, _mm512_maskz_cvtepu16_epi32(kAllLanes, upper_halves), 16));
}
inline void store(float* to, Vector value) { _mm512_storeu_ps(to, value); }
inline void stream(float* to, Vector value) { _mm512_stream_ps(to, value); }

inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
inline Vector subtract_product(Vector a, Vector b, Vector c) { return _mm512_fnmadd_ps(a, b, c); }
inline Vector maximum(Vector number, Vector value) { return _mm512_maskz_max_ps(kAllLanes, number, value); }
inline Vector where_positive(Vector given, Vector value) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(given, _mm512_setzero_ps(), _CMP_GT_OQ), value);
}

inline constexpr Mask kEverywhere = kAllLanes, kNowhere = 0;
inline Mask both(Mask a, Mask b) { return static_cast<Mask>(a & b); }
inline Vector load_where(Mask mask, const float* from) { return _mm512_maskz_loadu_ps(mask, from); }
inline Vector load_where(Mask mask, const BFloat16* from) {
  const __m256i upper_halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(mask, _mm512_maskz_cvtepu16_epi32(mask, upper_halves), 16));
}
template <int kCount>
inline Vector load_first(const float* from) {
  return _mm512_maskz_loadu_ps((1 << kCount) - 1, from);
}
template <int kCount>
inline void store_first(float* to, Vector value) {
  _mm512_mask_storeu_ps(to, (1 << kCount) - 1, value);
}

inline void transpose(const Vector* rows, Vector* columns) {
  Vector pairs[kLanes], fours[kLanes], eights[kLanes];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_maskz_unpacklo_ps(kAllLanes, rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_maskz_unpackhi_ps(kAllLanes, rows[i], rows[i + 1]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const __m512d a = _mm512_castps_pd(pairs[i + j]), b = _mm512_castps_pd(pairs[i + 2 + j]);
      fours[i + 2 * j] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(kAllPairs, a, b));
      fours[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(kAllPairs, a, b));
    }
    // fours[4 * g + c]: of rows 4 * g to 4 * g + 3 the values c, c + 4, c + 8 and c + 12, in a quarter of the
    // vector each.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    eights[c] = _mm512_maskz_shuffle_f32x4(kAllLanes, fours[c], fours[4 + c], 0x88);
    eights[4 + c] = _mm512_maskz_shuffle_f32x4(kAllLanes, fours[c], fours[4 + c], 0xdd);
    eights[8 + c] = _mm512_maskz_shuffle_f32x4(kAllLanes, fours[8 + c], fours[12 + c], 0x88);
    eights[12 + c] = _mm512_maskz_shuffle_f32x4(kAllLanes, fours[8 + c], fours[12 + c], 0xdd);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    columns[c] = _mm512_maskz_shuffle_f32x4(kAllLanes, eights[c], eights[8 + c], 0x88);
    columns[8 + c] = _mm512_maskz_shuffle_f32x4(kAllLanes, eights[c], eights[8 + c], 0xdd);
    columns[4 + c] = _mm512_maskz_shuffle_f32x4(kAllLanes, eights[4 + c], eights[12 + c], 0x88);
    columns[12 + c] = _mm512_maskz_shuffle_f32x4(kAllLanes, eights[4 + c], eights[12 + c], 0xdd);
  }
}

}  // namespace MOX_LANES
}  // namespace mox::lanes

// lanes.h with AVX2 and FMA: 16 registers of 8 numbers.
#pragma once

#include <immintrin.h>

#include <cstdint>

#define MOX_LANES avx2

namespace mox::lanes {
inline namespace MOX_LANES {

using Vector = __m256;
struct Mask {
  int bits;  // of a lane
};
inline constexpr int64_t kLanes = 8;
inline constexpr int kRegisters = 16;

inline Vector zero() { return _mm256_setzero_ps(); }
inline Vector splat(float value) { return _mm256_set1_ps(value); }
inline Vector load(const float* from) { return _mm256_loadu_ps(from); }
inline void store(float* to, Vector value) { _mm256_storeu_ps(to, value); }
inline void stream(float* to, Vector value) { _mm256_stream_ps(to, value); }

inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
inline Vector subtract_product(Vector a, Vector b, Vector c) { return _mm256_fnmadd_ps(a, b, c); }
inline Vector maximum(Vector number, Vector value) { return _mm256_max_ps(number, value); }
inline Vector where_positive(Vector given, Vector value) {
  return _mm256_and_ps(_mm256_cmp_ps(given, _mm256_setzero_ps(), _CMP_GT_OQ), value);
}

inline constexpr Mask kEverywhere{-1}, kNowhere{0};
inline Mask both(Mask a, Mask b) { return {a.bits & b.bits}; }
inline Vector load_where(Mask mask, const float* from) {
  return _mm256_maskload_ps(from, _mm256_set1_epi32(mask.bits));
}

// -1 for the first `kCount` lanes.
template <int kCount>
inline __m256i first_lanes() {
  return _mm256_setr_epi32(-(kCount > 0), -(kCount > 1), -(kCount > 2), -(kCount > 3), -(kCount > 4),
                           -(kCount > 5), -(kCount > 6), -(kCount > 7));
}
template <int kCount>
inline Vector load_first(const float* from) {
  if constexpr (kCount == kLanes) return load(from);
  return _mm256_maskload_ps(from, first_lanes<kCount>());
}
template <int kCount>
inline void store_first(float* to, Vector value) {
  if constexpr (kCount == kLanes) return store(to, value);
  _mm256_maskstore_ps(to, first_lanes<kCount>(), value);
}

inline void transpose(const Vector* rows, Vector* columns) {
  Vector fours[kLanes];
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    const Vector a = _mm256_unpacklo_ps(rows[i], rows[i + 1]), b = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    const Vector c = _mm256_unpacklo_ps(rows[i + 2], rows[i + 3]),
                 d = _mm256_unpackhi_ps(rows[i + 2], rows[i + 3]);
    // Of rows i to i + 3 the values c and c + 4, in a half of the vector each.
    fours[i] = _mm256_shuffle_ps(a, c, 0x44);
    fours[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
    fours[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
    fours[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    columns[c] = _mm256_permute2f128_ps(fours[c], fours[4 + c], 0x20);
    columns[4 + c] = _mm256_permute2f128_ps(fours[c], fours[4 + c], 0x31);
  }
}

}  // namespace MOX_LANES
}  // namespace mox::lanes

// The vector type of batch_norm_planes.h with AVX-512, for files that are compiled with it switched on.
#pragma once

#include <immintrin.h>

#include "runtime/tensor/dtype.h"

namespace mox::normalisation {
namespace {

// GCC 12 warns of an uninitialised operand in its own header where an instruction has no mask.
constexpr __mmask16 kAll = 0xffff;

struct Avx512 {
  using Vector = __m512;
  static constexpr int kLanes = 16;
  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector broadcast(float value) { return _mm512_set1_ps(value); }
  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static Vector load(const BFloat16* p) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, halves), 16));
  }
  static void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  // Rounds to nearest even; NaN stays NaN.
  static void store(BFloat16* p, Vector v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_maskz_srli_epi32(kAll, bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i chosen = _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_maskz_cvtepi32_epi16(kAll, _mm512_maskz_srli_epi32(kAll, chosen, 16)));
  }
  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector subtract(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
  static Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  // Of a number and a value: NaN in the value stays.
  static Vector maximum(Vector number, Vector value) { return _mm512_maskz_max_ps(kAll, number, value); }
  static Vector minimum(Vector number, Vector value) { return _mm512_maskz_min_ps(kAll, number, value); }
  // `taken` where low < value <= high (low <= value <= high), else 0.
  static Vector where_above(Vector value, Vector low, Vector high, Vector taken) {
    const __mmask16 above = _mm512_cmp_ps_mask(value, low, _CMP_GT_OQ);
    return _mm512_maskz_mov_ps(_mm512_mask_cmp_ps_mask(above, value, high, _CMP_LE_OQ), taken);
  }
  static Vector where_within(Vector value, Vector low, Vector high, Vector taken) {
    const __mmask16 above = _mm512_cmp_ps_mask(value, low, _CMP_GE_OQ);
    return _mm512_maskz_mov_ps(_mm512_mask_cmp_ps_mask(above, value, high, _CMP_LE_OQ), taken);
  }
};

}  // namespace
}  // namespace mox::normalisation

#include <cmath>

#include "ops/normalisation/internal/batch_norm_channels_last.h"
#include "ops/normalisation/internal/batch_norm_planes.h"
#include "ops/processor/bfloat16_lanes.h"

namespace mox::normalisation {
namespace {

struct Avx2 {
  using Vector = __m256;
  static constexpr int kLanes = 8;
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector broadcast(float value) { return _mm256_set1_ps(value); }
  template <typename Element>
  static Vector load(const Element* p) {
    return load_lanes(p);
  }
  template <typename Element>
  static void store(Element* p, Vector v) {
    store_lanes(p, v);
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

// One number, for channels that are no multiple of a vector.
struct OneNumber {
  using Vector = float;
  static constexpr int kLanes = 1;
  static Vector zero() { return 0; }
  static Vector broadcast(float value) { return value; }
  template <typename Element>
  static Vector load(const Element* p) {
    return static_cast<float>(*p);
  }
  template <typename Element>
  static void store(Element* p, Vector v) {
    *p = Element(v);
  }
  static Vector add(Vector a, Vector b) { return a + b; }
  static Vector subtract(Vector a, Vector b) { return a - b; }
  static Vector multiply(Vector a, Vector b) { return a * b; }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return std::fma(a, b, c); }
  static Vector maximum(Vector number, Vector value) { return number > value ? number : value; }
  static Vector minimum(Vector number, Vector value) { return number < value ? number : value; }
  static Vector where_above(Vector value, Vector low, Vector high, Vector taken) {
    return value > low && value <= high ? taken : 0;
  }
  static Vector where_within(Vector value, Vector low, Vector high, Vector taken) {
    return value >= low && value <= high ? taken : 0;
  }
};

}  // namespace

const Loops<float> kFloatAvx2[4] = {loops_over_blocks<Avx2, float, 1>(), loops_over_blocks<Avx2, float, 2>(),
                                    loops_over_pixels<Avx2, float>(), loops_over_pixels<OneNumber, float>()};
const Loops<BFloat16> kBFloat16Avx2[4] = {
    loops_over_blocks<Avx2, BFloat16, 1>(), loops_over_blocks<Avx2, BFloat16, 2>(),
    loops_over_pixels<Avx2, BFloat16>(), loops_over_pixels<OneNumber, BFloat16>()};

}  // namespace mox::normalisation

// Functions of eight float32 numbers at a time, within 0.51 units in the last place of the exact result over
// all of float32 (tests/ops/elementwise), with the special values of IEEE 754-2019, 9.2.1.
//
// They are computed in double, whose 29 further bits leave little for the last rounding to get wrong, and
// whose range has neither float32's denormal numbers nor its overflow: both come with that rounding.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <limits>

namespace mox::elementwise::float_functions {

using Floats = float __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(32)));
using Longs = int64_t __attribute__((vector_size(32)));

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

inline Doubles all(double value) { return Doubles{} + value; }
inline Longs bits_of(const Doubles& x) { return reinterpret_cast<Longs>(x); }
inline Doubles of_bits(const Longs& x) { return reinterpret_cast<Doubles>(x); }
inline Doubles choose(const Longs& mask, const Doubles& yes, const Doubles& no) {
  return of_bits((bits_of(yes) & mask) | (bits_of(no) & ~mask));
}
inline Doubles magnitude(const Doubles& x) {
  return of_bits(bits_of(x) & std::numeric_limits<int64_t>::max());
}
inline Doubles rounded(const Doubles& x) {
  return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline Doubles rounded_down(const Doubles& x) { return _mm256_floor_pd(x); }

// sum of coefficients[i] * x^i
template <int kCount>
inline Doubles polynomial(const Doubles& x, const double (&coefficients)[kCount]) {
  Doubles sum = all(coefficients[kCount - 1]);
  for (int i = kCount - 2; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

// e^x for |x| < 700; beyond that 2^1000 or 2^-1000 and something, which are infinite and 0 in float32. NaN
// stays NaN. x = n * log(2) + r, and e^r by its series.
inline Doubles exponential(const Doubles& x) {
  constexpr double kFactors[] = {1.0,       1.0,       1.0 / 2,    1.0 / 6,    1.0 / 24,
                                 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320};
  constexpr double kMost = 700, kLog2E = 1.4426950408889634, kLog2High = 0.693147180369123816490,
                   kLog2Low = 1.90821492927058770002e-10;
  const Doubles within = x > all(kMost) ? all(kMost) : (x < all(-kMost) ? all(-kMost) : x);
  const Doubles n = rounded(within * kLog2E);
  const Doubles r = (within - n * kLog2High) - n * kLog2Low;
  // 2^n: n + 1.5 * 2^52 has n in its lowest bits.
  constexpr double kShift = 6755399441055744.0;
  const Longs exponent = (bits_of(n + kShift) << 52) + (int64_t{1023} << 52);
  return polynomial(r, kFactors) * of_bits(exponent);
}

// 2 * atanh(s) for |s| <= 1/3: the series of log((1 + s) / (1 - s)).
template <int kTerms>
inline Doubles twice_atanh(const Doubles& s) {
  const Doubles square = s * s;
  Doubles sum = all(2.0 / (2 * kTerms + 1));
  for (int k = kTerms - 1; k > 0; --k) sum = sum * square + 2.0 / (2 * k + 1);
  return (sum * square) * s + 2.0 * s;
}

// log(x) of what float32 holds: x = 2^n * m with m in [sqrt(1/2), sqrt(2)). 5 terms leave 5e-11 of it, 8 no
// more than double has.
template <int kTerms = 5>
inline Doubles logarithm(const Doubles& x) {
  constexpr int64_t kSqrtHalf = 0x3fe6a09e667f3bcd, kMantissa = (int64_t{1} << 52) - 1;
  const Longs scaled = bits_of(x) - kSqrtHalf;
  const Longs mantissa = (scaled & kMantissa) + kSqrtHalf;
  // The exponent as a number, by way of the lowest bits of 1.5 * 2^52.
  constexpr double kShift = 6755399441055744.0;
  const Longs exponent = (scaled >> 52) + bits_of(all(kShift));
  const Doubles n = of_bits(exponent) - kShift, m = of_bits(mantissa);
  const Doubles result = n * 0.6931471805599453 + twice_atanh<kTerms>((m - 1.0) / (m + 1.0));
  const Doubles zero{};
  const Doubles of_special =
      choose(x == zero, all(-kInfinite), choose(x == all(kInfinite), x, all(0) / zero));
  return choose((x > zero) & (x < all(kInfinite)), result, choose(x != x, x, of_special));
}

// log(1 + t) for t in [0, 1]
inline Doubles logarithm_of_1_and(const Doubles& t) { return twice_atanh<9>(t / (t + 2.0)); }

inline Doubles sigmoid(const Doubles& x) { return 1.0 / (1.0 + exponential(-x)); }

// max(x, 0) + log(1 + e^-|x|)
inline Doubles softplus(const Doubles& x) {
  const Doubles more = logarithm_of_1_and(exponential(-magnitude(x)));
  return (x > Doubles{} ? x : (x == x ? Doubles{} : x)) + more;
}

inline Doubles hyperbolic_tangent(const Doubles& x) {
  const Doubles a = magnitude(x);
  const Doubles large = 1.0 - 2.0 / (exponential(2.0 * a) + 1.0);
  const Doubles result = a < all(1.0 / 4096) ? a - a * a * a / 3.0 : large;
  return of_bits(bits_of(result) | (bits_of(x) & std::numeric_limits<int64_t>::min()));
}

// x^y
inline Doubles power(const Doubles& x, const Doubles& y) {
  const Doubles zero{}, one = all(1), a = magnitude(x);
  const Longs is_whole = (rounded_down(y) == y) | (magnitude(y) == all(kInfinite)),
              is_odd = is_whole & (rounded_down(y * 0.5) * 2.0 != y) & (magnitude(y) < all(kInfinite));
  Doubles result = exponential(y * logarithm<8>(a));
  // Where float32 has long been 0 or infinite, y * log(a) may be infinite.
  result = choose((y == zero) | (a == one) | (x == one), one, result);
  const Longs is_negative = bits_of(x) >> 63;
  result = choose(is_negative & is_odd, -result, result);
  const Longs has_no_result = (x < zero) & (a < all(kInfinite)) & ~is_whole & (y == y);
  result = choose(has_no_result, all(std::numeric_limits<double>::quiet_NaN()), result);
  const Longs is_nan = ((x != x) | (y != y)) & (y != zero) & (x != one);
  return choose(is_nan, x + y, result);
}

// f of each half in double.
template <typename Function, typename... Operands>
inline Floats in_double(Function f, const Operands&... operands) {
  const __m128 low = _mm256_cvtpd_ps(f(Doubles(_mm256_cvtps_pd(_mm256_castps256_ps128(operands)))...));
  const __m128 high = _mm256_cvtpd_ps(f(Doubles(_mm256_cvtps_pd(_mm256_extractf128_ps(operands, 1)))...));
  return _mm256_set_m128(high, low);
}

inline Floats square_root(const Floats& x) { return _mm256_sqrt_ps(x); }
inline Floats rounded(const Floats& x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline Floats rounded_down(const Floats& x) { return _mm256_floor_ps(x); }
inline Floats magnitude(const Floats& x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }

}  // namespace mox::elementwise::float_functions

// How far the functions of float32 are from the exact results, and from IEEE 754's special values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/elementwise/internal/functions.h"

namespace mox::test {

// Of `actual` from `exact` in units of float32's last place there; infinity where one is NaN or infinite (by
// more than half a unit beyond the largest number) and the other is not, or where a zero has the wrong sign.
inline double units_apart(float actual, double exact) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (std::isnan(exact) || std::isnan(actual)) return std::isnan(exact) && std::isnan(actual) ? 0 : kNever;
  if (exact == 0 && actual == 0) return std::signbit(exact) == std::signbit(actual) ? 0 : kNever;
  constexpr double kOverflow = 0x1.ffffffp127;  // half a unit beyond the largest number
  if (std::abs(exact) >= kOverflow) return actual == std::copysign(kNever, exact) ? 0 : kNever;
  int exponent = 0;
  std::frexp(exact, &exponent);
  const double unit = std::ldexp(1.0, std::clamp(exponent, -125, 128) - 24);
  const double value = std::isinf(actual) ? std::copysign(std::ldexp(1.0, 128), actual) : actual;
  return std::abs(value - exact) / unit;
}

struct UnaryFunction {
  const char* name;
  elementwise::Opcode opcode;
  double (*exact)(double);
  double most_units;
  int direction;  // 1: never falls, -1: never rises, 0: neither
};

inline double exact_softplus(double x) {
  return std::isnan(x) ? x : std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

// Halves to the even neighbour, as IEEE 754's roundToIntegralTiesToEven and NumPy's round.
inline double exact_round(double x) { return std::nearbyint(x); }

inline double exact_sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }

inline const std::array<UnaryFunction, 15>& unary_functions() {
  using elementwise::Opcode;
  static const std::array<UnaryFunction, 15> functions = {{
      {"exp", Opcode::kExp, [](double x) { return std::exp(x); }, 0.51, 1},
      {"log", Opcode::kLog, [](double x) { return std::log(x); }, 0.51, 1},
      {"sigmoid", Opcode::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 0.51, 1},
      {"tanh", Opcode::kTanh, [](double x) { return std::tanh(x); }, 0.51, 1},
      {"softplus", Opcode::kSoftplus, exact_softplus, 0.51, 1},
      {"sqrt", Opcode::kSqrt, [](double x) { return std::sqrt(x); }, 0.5, 1},
      {"rsqrt", Opcode::kRsqrt, [](double x) { return 1 / std::sqrt(x); }, 1.5, 0},
      {"reciprocal", Opcode::kReciprocal, [](double x) { return 1 / x; }, 0.5, 0},
      {"square", Opcode::kSquare, [](double x) { return x * x; }, 0.5, 0},
      {"abs", Opcode::kAbs, [](double x) { return std::abs(x); }, 0, 0},
      {"neg", Opcode::kNeg, [](double x) { return -x; }, 0, -1},
      {"sign", Opcode::kSign, exact_sign, 0, 1},
      {"relu", Opcode::kRelu, [](double x) { return x < 0 ? 0 : x; }, 0, 1},
      {"floor", Opcode::kFloor, [](double x) { return std::floor(x); }, 0, 1},
      {"round", Opcode::kRound, exact_round, 0, 1},
  }};
  return functions;
}

// Of every `step`th float32 in the order of their bits from `first` to before `last`, which begins with the
// positive ones, ascending, then the negative ones, descending.
inline void expect_exact(const UnaryFunction& function, uint64_t first, uint64_t last, uint64_t step) {
  constexpr int kBlock = 1024;
  const auto run = elementwise::block_function<float>(function.opcode);
  alignas(64) float inputs[kBlock], results[kBlock];
  double worst = 0;
  float at = 0;
  float before = std::numeric_limits<float>::quiet_NaN();
  for (uint64_t bits = first; bits < last; bits += step * kBlock) {
    for (uint64_t i = 0; i < kBlock; ++i)
      inputs[i] = std::bit_cast<float>(static_cast<uint32_t>(std::min(bits + i * step, last - 1)));
    run(results, inputs, nullptr, nullptr, kBlock);
    for (int i = 0; i < kBlock; ++i) {
      const double units = units_apart(results[i], function.exact(inputs[i]));
      if (units > worst) worst = units, at = inputs[i];
      const int direction = std::signbit(inputs[i]) ? -function.direction : function.direction;
      const bool falls = results[i]<before, rises = results[i]> before;
      const bool turns = std::bit_cast<uint32_t>(inputs[i]) << 1 == 0;  // the first of a sign
      ASSERT_FALSE(!turns && ((direction > 0 && falls) || (direction < 0 && rises)))
          << function.name << " is not monotone at " << inputs[i];
      before = results[i];
    }
  }
  EXPECT_LE(worst, function.most_units) << function.name << " at " << at;
}

}  // namespace mox::test

// How far the functions of float32 are from the exact results, and from IEEE 754's special values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
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
  int exponent = -125;  // the unit of zero is that of the smallest numbers
  if (exact != 0) std::frexp(exact, &exponent);
  const double unit = std::ldexp(1.0, std::clamp(exponent, -125, 128) - 24);
  const double value = std::isinf(actual) ? std::copysign(std::ldexp(1.0, 128), actual) : actual;
  return std::abs(value - exact) / unit;
}

// The same or more: half a unit for every result that is the nearest number, as nearly all are. What is left
// for units_apart takes several times as long, and there are 2^32 of them.
inline double most_units_apart(float actual, double exact) {
  if (std::bit_cast<uint32_t>(static_cast<float>(exact)) != std::bit_cast<uint32_t>(actual))
    return units_apart(actual, exact);
  return actual == exact || std::isnan(exact) ? 0 : 0.5;
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

constexpr int kBlock = 1024;

// The exact results of kBlock numbers.
using ExactBlock = std::function<void(const float* inputs, double* exact)>;

inline ExactBlock one_by_one(const UnaryFunction& function) {
  return [exact = function.exact](const float* inputs, double* results) {
    std::transform(inputs, inputs + kBlock, results, exact);
  };
}

// What a loop without branches sees of a block of results: whether there is anything to be looked at one by
// one, which takes several times as long.
struct BlockLook {
  bool all_nearest = true;  // every result is the number of float32 that is nearest to the exact one
  bool all_exact = true;    // and is the exact one itself
  bool falls = false, rises = false;  // from one to the next, the one before the block included

  BlockLook(const double* exact, const float* results, float before) {
    uint32_t others = 0, inexact = 0, falling = results[0]<before, rising = results[0]> before;
    for (int i = 0; i < kBlock; ++i) {
      const float nearest = static_cast<float>(exact[i]);
      others |= std::bit_cast<uint32_t>(nearest) ^ std::bit_cast<uint32_t>(results[i]);
      inexact |= static_cast<uint32_t>(nearest < exact[i]) | static_cast<uint32_t>(nearest > exact[i]);
    }
    for (int i = 1; i < kBlock; ++i) {
      falling |= static_cast<uint32_t>(results[i] < results[i - 1]);
      rising |= static_cast<uint32_t>(results[i] > results[i - 1]);
    }
    all_nearest = others == 0;
    all_exact = all_nearest && inexact == 0;
    falls = falling != 0;
    rises = rising != 0;
  }
};

// Of every `step`th float32 in the order of their bits from `first` to before `last`, which begins with the
// positive ones, ascending, then the negative ones, descending.
inline void expect_exact(const UnaryFunction& function, const ExactBlock& exact_results, uint64_t first,
                         uint64_t last, uint64_t step) {
  const auto run = elementwise::block_function<float>(function.opcode);
  alignas(64) float inputs[kBlock], results[kBlock];
  double exact[kBlock];
  double worst = 0;
  float at = 0;
  float before = std::numeric_limits<float>::quiet_NaN();
  for (uint64_t bits = first; bits < last; bits += step * kBlock) {
    for (uint64_t i = 0; i < kBlock; ++i)
      inputs[i] = std::bit_cast<float>(static_cast<uint32_t>(std::min(bits + i * step, last - 1)));
    run(results, inputs, nullptr, nullptr, kBlock);
    exact_results(inputs, exact);
    const BlockLook look(exact, results, before);
    if (look.all_nearest && !look.all_exact && worst < 0.5) worst = 0.5, at = inputs[0];
    for (int i = 0; !look.all_nearest && i < kBlock; ++i) {
      const double units = most_units_apart(results[i], exact[i]);
      if (units > worst) worst = units, at = inputs[i];
    }
    const bool has_turn = std::signbit(inputs[0]) != std::signbit(inputs[kBlock - 1]);
    const bool turns_back = std::signbit(inputs[0]) == (function.direction > 0) ? look.rises : look.falls;
    for (int i = 0; function.direction != 0 && (has_turn || turns_back) && i < kBlock; ++i) {
      const int direction = std::signbit(inputs[i]) ? -function.direction : function.direction;
      const float earlier = i == 0 ? before : results[i - 1];
      const bool falls = results[i]<earlier, rises = results[i]> earlier;
      const bool turns = std::bit_cast<uint32_t>(inputs[i]) << 1 == 0;  // the first of a sign
      ASSERT_FALSE(!turns && ((direction > 0 && falls) || (direction < 0 && rises)))
          << function.name << " is not monotone at " << inputs[i];
    }
    before = results[kBlock - 1];
  }
  EXPECT_LE(worst, function.most_units) << function.name << " at " << at;
}

}  // namespace mox::test

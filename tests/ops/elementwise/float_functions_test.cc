// Functions of float32 against their results in double. (tests/ops/elementwise/slow goes
// through all numbers.)
#include <vector>

#include "tests/ops/elementwise/float_functions_testing.h"

namespace mox::test {
namespace {

constexpr uint64_t kAll = uint64_t{1} << 32;

// What all of these tests measure with.
TEST(UnitsApart, OfZeroAreOfTheSmallestNumbers) {
  EXPECT_EQ(units_apart(0x1p-149f, 0), 1);
  EXPECT_GT(units_apart(1e-10f, 0), 1e30);
  EXPECT_EQ(units_apart(0, 0x1p-150), 0.5);
  EXPECT_EQ(units_apart(1 + 0x1p-23f, 1), 1);
}

TEST(FloatFunctions, OfNumbersOfEveryMagnitude) {
  for (const UnaryFunction& function : unary_functions())
    expect_exact(function, one_by_one(function), 0, kAll, 4001);
}

// The smallest numbers, one, and the borders of what has a result.
TEST(FloatFunctions, AroundSpecialValues) {
  for (const UnaryFunction& function : unary_functions())
    for (const float value : {0.0f, std::numeric_limits<float>::min(), 1.0f, 17.0f, 88.7f, 103.9f,
                              std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity()})
      for (const float sign : {1.0f, -1.0f}) {
        const uint64_t bits = std::bit_cast<uint32_t>(sign * value);
        expect_exact(function, one_by_one(function), bits > 4096 ? bits - 4096 : 0,
                     std::min(bits + 4096, kAll), 1);
      }
}

float of_two(elementwise::Opcode opcode, float a, float b) {
  alignas(64) float as[elementwise::kLane], bs[elementwise::kLane], results[elementwise::kLane];
  std::fill_n(as, elementwise::kLane, a);
  std::fill_n(bs, elementwise::kLane, b);
  elementwise::block_function<float>(opcode)(results, as, bs, nullptr, elementwise::kLane);
  return results[0];
}

std::vector<float> interesting() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {std::numeric_limits<float>::quiet_NaN()};
  for (const float value : {0.0f, 1e-45f, 1e-38f, 0.3f, 0.5f, 0.99999994f, 1.0f, 1.0000001f, 1.5f, 2.0f,
                            2.75f, 3.0f, 7.0f, 31.5f, 127.0f, 1e7f, 16777217.0f, 3e38f, kInfinity}) {
    values.push_back(value);
    values.push_back(-value);
  }
  return values;
}

TEST(FloatFunctions, PowersOfSpecialValuesAndOthers) {
  for (const float x : interesting())
    for (const float y : interesting())
      EXPECT_LE(units_apart(of_two(elementwise::Opcode::kPow, x, y), std::pow(double{x}, double{y})), 0.51)
          << x << " ^ " << y;
  uint64_t state = 88172645463325252u;
  const auto next = [&] {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<uint32_t>(state >> 16);
  };
  for (int i = 0; i < 200000; ++i) {
    // Bases about 1 have results of every magnitude.
    const float x = i % 2 == 0 ? std::bit_cast<float>(next()) : static_cast<float>(next() % 100000) / 10000,
                y = i % 4 < 2 ? static_cast<float>(next() % 20000) / 500 - 20 : std::bit_cast<float>(next());
    ASSERT_LE(units_apart(of_two(elementwise::Opcode::kPow, x, y), std::pow(double{x}, double{y})), 0.51)
        << x << " ^ " << y;
  }
}

TEST(FloatFunctions, QuotientsAreRoundedOnce) {
  for (const float x : interesting())
    for (const float y : interesting())
      EXPECT_LE(units_apart(of_two(elementwise::Opcode::kDiv, x, y), double{x} / double{y}), 0.5)
          << x << " / " << y;
}

}  // namespace
}  // namespace mox::test

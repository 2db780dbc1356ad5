#include "runtime/tensor/round_to_bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace mox {
namespace {

// Every upper half, with the lower halves at which rounding changes: the nearer neighbour, the even one
// of a tie.
TEST(RoundToBFloat16, RoundsManyNumbersAsOne) {
  std::vector<float> numbers;
  for (uint32_t upper = 0; upper < 1u << 16; ++upper)
    for (const uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      numbers.push_back(std::bit_cast<float>(upper << 16 | lower));
  std::vector<BFloat16> rounded(numbers.size());
  round_to_bfloat16(numbers, rounded.data());
  for (size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(rounded[i].bits, BFloat16(numbers[i]).bits) << numbers[i];
    if (!std::isfinite(numbers[i])) continue;
    const uint32_t bits = std::bit_cast<uint32_t>(numbers[i]), down = bits >> 16, rest = bits & 0xffff;
    const bool up = rest > 0x8000 || (rest == 0x8000 && down % 2 == 1);
    ASSERT_EQ(rounded[i].bits, down + (up ? 1 : 0)) << numbers[i];
  }
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::infinity()).bits, 0x7f80);
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x7f800001u)).bits,
            0x7fc0);  // a NaN whose upper half is that of infinity
}

}  // namespace
}  // namespace mox

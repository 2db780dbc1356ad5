#include "runtime/base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace mox {
namespace {

// Known answers of the reference implementation (Random123, kat_vectors, philox4x32 10 rounds).
TEST(Philox, MatchesThePublishedKnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(RandomStream, AValueDependsOnItsPositionAlone) {
  RandomStream stream(7, 42);
  std::vector<float> whole(37), part(11);
  stream.fill_uniform(whole, 0, -1, 1);
  stream.fill_uniform(part, 13, -1, 1);
  for (size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], whole[13 + i]);
  stream.fill_truncated_normal(whole, 0, 0, 1);
  stream.fill_truncated_normal(part, 13, 0, 1);
  for (size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], whole[13 + i]);
}

TEST(RandomStream, UniformStaysInRangeAndHasItsMean) {
  std::vector<float> values(100000);
  RandomStream(1, 2).fill_uniform(values, 0, 2, 3);
  double sum = 0;
  for (float v : values) {
    ASSERT_GE(v, 2);
    ASSERT_LT(v, 3);
    sum += v;
  }
  EXPECT_NEAR(sum / 100000, 2.5, 0.005);
}

TEST(RandomStream, NormalHasItsMomentsAndTruncatedNormalItsBounds) {
  std::vector<float> values(100000);
  RandomStream(1, 2).fill_normal(values, 0, 1, 2);
  double sum = 0, squares = 0;
  for (float v : values) sum += v, squares += v * v;
  EXPECT_NEAR(sum / 100000, 1, 0.03);
  EXPECT_NEAR(squares / 100000, 5, 0.1);
  RandomStream(1, 2).fill_truncated_normal(values, 0, 1, 2);
  for (float v : values) {
    ASSERT_GE(v, -3);
    ASSERT_LE(v, 5);
  }
}

TEST(Permutation, IsOneToOneForEverySize) {
  for (uint64_t size : {1, 2, 3, 5, 16, 17, 1000}) {
    Permutation permutation(size, 3, 4);
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < size; ++i) seen.insert(permutation(i));
    EXPECT_EQ(seen.size(), size);
    EXPECT_LT(*seen.rbegin(), size);
  }
}

TEST(Permutation, DiffersByKey) {
  Permutation a(1000, 3, 4), b(1000, 3, 5);
  int equal = 0;
  for (uint64_t i = 0; i < 1000; ++i) equal += a(i) == b(i);
  EXPECT_LT(equal, 20);
}

}  // namespace
}  // namespace mox

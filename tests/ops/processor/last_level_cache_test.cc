#include "ops/processor/last_level_cache.h"

#include <gtest/gtest.h>

namespace mox::test {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(LastLevelCache, IsWhatTheProcessorReports) {
  EXPECT_EQ(last_level_cache_of({.reported = 480 * kMiB}), 480 * kMiB);
  EXPECT_EQ(last_level_cache_of({.reported = 8 * kMiB}), 8 * kMiB);
}

TEST(LastLevelCache, IsThatOfOneComplexWhereCoresShareNoMore) {
  EXPECT_EQ(last_level_cache_of({.is_amd = true, .reported = 508 * kMiB, .of_a_complex = 96 * kMiB}),
            96 * kMiB);
  EXPECT_EQ(last_level_cache_of({.is_amd = true, .reported = 508 * kMiB, .of_a_complex = 16 * kMiB}),
            16 * kMiB);
  EXPECT_EQ(last_level_cache_of({.is_amd = true, .reported = 508 * kMiB}), 32 * kMiB)
      << "the sum of all complexes, in a virtual machine that hides how it is cut";
  EXPECT_EQ(last_level_cache_of({.is_amd = true, .reported = 16 * kMiB}), 16 * kMiB);
}

TEST(LastLevelCache, IsAUsualOneWhereNobodyKnows) {
  EXPECT_EQ(last_level_cache_of({.reported = 0}), 32 * kMiB);
  EXPECT_EQ(last_level_cache_of({.reported = -1}), 32 * kMiB);
  EXPECT_EQ(last_level_cache_of({.is_amd = true, .reported = 0}), 32 * kMiB);
}

TEST(LastLevelCache, OfThisProcessorIsOne) {
  const int64_t bytes = last_level_cache_of(cache_report());
  EXPECT_GE(bytes, kMiB / 4);
  EXPECT_LE(bytes, 4096 * kMiB);
}

}  // namespace
}  // namespace mox::test

// What the tests compare with must be able to fail.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "tests/ops/kernel_testing.h"
#include "tests/support/evaluate.h"
#include "tests/support/larger.h"

namespace mox::test {
namespace {

TEST(ExpectClose, TellsNumbersFromInfinitiesAndNaN) {
  const auto close = [](float actual, float expected) {
    expect_close(Array::from<float>({1}, {actual}), Array::from<float>({1}, {expected}));
  };
  close(kInfinity, kInfinity);
  close(kNaN, kNaN);
  close(1 + 1e-6F, 1);
  for (const auto& [actual, expected] : {std::pair{5.0F, kInfinity},
                                         {-kInfinity, kInfinity},
                                         {kInfinity, 5.0F},
                                         {kNaN, 5.0F},
                                         {5.0F, kNaN},
                                         {kNaN, kInfinity},
                                         {5.001F, 5.0F}})
    EXPECT_NONFATAL_FAILURE(close(actual, expected), "1 of 1 elements");
}

TEST(ExpectNear, IsNotLooserBesideAnInfinity) {
  const auto near = [](float actual, float of_infinity) {
    expect_near(Array::from<float>({2}, {of_infinity, actual}), Array::from<float>({2}, {kInfinity, 5}),
                1e-5);
  };
  near(5, kInfinity);
  EXPECT_NONFATAL_FAILURE(near(6, kInfinity), "6 instead of 5");
  EXPECT_NONFATAL_FAILURE(near(5, 7), "7 instead of inf");
}

TEST(Larger, KeepsWhatIsNoNumber) {
  EXPECT_EQ(larger(1, 2), 2);
  EXPECT_EQ(larger(2, 1), 2);
  EXPECT_TRUE(std::isnan(larger(1, kNaN)));
  EXPECT_TRUE(std::isnan(larger(kNaN, 1)));
}

}  // namespace
}  // namespace mox::test

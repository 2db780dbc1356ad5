#include "runtime/base/nearest_name.h"

#include <gtest/gtest.h>

namespace mox::internal {
namespace {

using NearestNames = std::vector<std::string>;

TEST(NearestName, OneInOtherLettersGoesBeforeAll) {
  EXPECT_EQ(nearest_name("y", NearestNames{"A", "B", "Y"}), "Y");
  EXPECT_EQ(nearest_name("EVAL", NearestNames{"avail", "eval"}), "eval");
}

TEST(NearestName, NamesWithNothingInCommonAreNoSlips) {
  EXPECT_EQ(nearest_name("y", NearestNames{"1", "2"}), "");
  EXPECT_EQ(nearest_name("ab", NearestNames{"x", "cd"}), "");
  EXPECT_EQ(nearest_name("ab", NearestNames{"cd", "ac"}), "ac");
  EXPECT_EQ(nearest_name("adma", NearestNames{"adadelta", "adam"}), "adam");
  EXPECT_EQ(nearest_name("", NearestNames{"a"}), "");
}

}  // namespace
}  // namespace mox::internal

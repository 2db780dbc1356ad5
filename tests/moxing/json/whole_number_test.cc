#include "moxing/json/whole_number.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace mox {
namespace {

nlohmann::json json(const char* text) { return nlohmann::json::parse(text); }

TEST(WholeNumber, TakesAllThatFit) {
  EXPECT_EQ(whole_number<int>(json("2147483647")), 2147483647);
  EXPECT_EQ(whole_number<int>(json("-3"), -3, 3), -3);
  EXPECT_EQ(whole_number<uint64_t>(json("18446744073709551615")), 18446744073709551615u);
  EXPECT_EQ(count_in(json("2305843009213693952")), kLargestCount);
}

// The library would make 0, 1, -1, the smallest number, or what the processor happens to make of them.
TEST(WholeNumber, RefusesWhatBecomesAnotherNumber) {
  for (const char* text : {"4294967296", "4294967297", "2147483648", "-1", "1.0", "0.5", "1e30", "-1e300",
                           "\"1\"", "null", "true", "[1]"})
    EXPECT_THROW(whole_number<int>(json(text)), DataError) << text;
  for (const char* text : {"18446744073709551615", "9223372036854775807", "-1"})
    EXPECT_THROW(count_in(json(text)), DataError) << text;
  EXPECT_THROW(whole_number<uint64_t>(json("-1")), DataError);
}

}  // namespace
}  // namespace mox

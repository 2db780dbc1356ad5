#include "moxing/json/list_elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace mox {
namespace {

std::vector<std::string> elements(const char* list) {
  std::vector<std::string> all;
  const size_t count = for_each_element(list, [&](std::string_view element) { all.emplace_back(element); });
  EXPECT_EQ(count, all.size());
  return all;
}

TEST(ListElements, AreCutWhereTheListIsAndNoDeeper) {
  using ::testing::ElementsAre;
  EXPECT_THAT(elements("[]"), ElementsAre());
  EXPECT_THAT(elements(" [1] \n"), ElementsAre("1"));
  EXPECT_THAT(elements(R"([[1,2],{"a":[3,4],"b":5},"6,]\",7",8])"),
              ElementsAre("[1,2]", R"({"a":[3,4],"b":5})", R"("6,]\",7")", "8"));
  EXPECT_THAT(elements("[1,]"), ElementsAre("1", ""));
  for (const char* text : {"", "[", "]", "{}", "1", "\"[]\""})
    EXPECT_THROW(elements(text), DataError) << text;
}

}  // namespace
}  // namespace mox

#include "moxing/json/number_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace mox {
namespace {

using ::testing::ElementsAre;

TEST(NumberLists, AreWhatWasWritten) {
  const nlohmann::json written = {{"basis", "a \\ \"b\""},
                                  {"b", {1, -2, 0.1, 1e-320}},
                                  {"none", std::vector<double>()},
                                  {"steps", uint64_t{1} << 60},
                                  {"rho", nullptr}};
  std::string text = written.dump();
  for (size_t at = 0; (at = text.find(' ', at)) != text.npos;) text.replace(at, 1, "\\u0020");
  const NumberLists read(text, "state");
  EXPECT_EQ(read.value("basis"), "a \\ \"b\"");
  EXPECT_EQ(read.value("steps"), uint64_t{1} << 60);
  EXPECT_TRUE(read.value("rho").is_null());
  EXPECT_THAT(read.list("b"), ElementsAre(1, -2, 0.1, 1e-320));
  EXPECT_THAT(read.list("none"), ElementsAre());
  EXPECT_THROW(read.value("b"), DataError);
  EXPECT_THROW(read.list("steps"), DataError);
  EXPECT_THROW(read.list("other"), DataError);
}

TEST(NumberLists, OtherTextsAreRefused) {
  for (const char* text :
       {"", "1", "[1]", "null", "{", "{}1", R"({"a":{}})", R"({"a":[[1]]})", R"({"a":[null]})",
        R"({"a":["b"]})", R"({"a":true})", R"({"a":1,"a":2})", R"({"a":[1],"a":[2]})", R"({"a":1,"a":[2]})",
        R"({"a":1e999})", R"({"a": 1})", R"({"a":[1})", R"({"a":[1],})"})
    EXPECT_THROW(NumberLists(text, "state"), DataError) << text;
  nlohmann::json many;
  for (int i = 0; i < 33; ++i) many[std::to_string(i)] = i;
  EXPECT_THROW(NumberLists(many.dump(), "state"), DataError);
  many.erase("32");
  EXPECT_EQ(NumberLists(many.dump(), "state").value("31"), 31);
}

}  // namespace
}  // namespace mox

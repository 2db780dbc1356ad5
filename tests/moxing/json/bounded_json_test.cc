#include "moxing/json/bounded_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace mox {
namespace {

std::string repeated(const std::string& item, int times) {
  std::string text = "[" + item;
  for (int i = 1; i < times; ++i) text += "," + item;
  return text + "]";
}

TEST(BoundedJson, TakesWhatProgramsWrite) {
  require_bounded_json(R"({"step": 12, "files": {"model": {"bytes": 1}}, "rates": [0.1, 0.2]})", "a.json");
  require_bounded_json(repeated("0.12345678901234567", 50'000), "a.json");
  require_bounded_json(repeated(R"({"rank_id": "12", "device_id": "3", "device_ip": "10.0.0.1"})", 20'000),
                       "a.json");
  require_bounded_json('"' + std::string(10 << 20, 'a') + '"', "a.json");
}

// The library writes and copies values by recursion.
TEST(BoundedJson, RefusesWhatIsNestedTooDeep) {
  const auto nested = [](int depth) {
    return std::string(depth, '[') + std::string(depth, ']') + std::string(100'000, ' ');
  };
  require_bounded_json(nested(1000), "a.json");
  for (const int depth : {1001, 100'000}) {
    try {
      require_bounded_json(nested(depth), "a.json");
      ADD_FAILURE() << depth << " lists in each other were taken";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("'a.json' is not read")) << depth;
    }
  }
}

TEST(BoundedJson, RefusesWhatGrowsWithoutBound) {
  for (const char* item : {"[]", "{}", "1", R"({"":1})", "\"\""}) {
    SCOPED_TRACE(item);
    require_bounded_json(repeated(item, 1000), "small.json");
    try {
      require_bounded_json(repeated(item, 200'000), "large.json");
      ADD_FAILURE() << "was taken";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("'large.json' is not read"));
    }
  }
}

TEST(BoundedJson, LeavesWhatIsNoJsonToTheParser) {
  for (const char* text : {"", "{", "[1,", "\"\\x\"", "nul"}) require_bounded_json(text, "a.json");
}

// The parser's own message would show each end of a line in eight characters.
TEST(BoundedJson, RefusesWhatIsNoJsonButThousandsOfBlanks) {
  const std::string lines(10'000, '\n'), many = [] {
    std::string text = "[true";
    for (int i = 0; i < 5000; ++i) text += ",\n  true";
    return text;
  }();
  for (const std::string& text : {lines, "[" + lines, many, "{\"a\": 1," + lines + "]"}) {
    try {
      require_bounded_json(text, "a.json");
      ADD_FAILURE() << "was taken";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("'a.json' is no JSON"));
    }
  }
  for (const auto& [text, place] : std::vector<std::pair<std::string, std::string>>{
           {"{\"a\":[true," + lines + "tru e]}", "line 10001, column 4,"},
           {"[null, " + lines + "1  2]", "line 10001, column 4,"},
           {"[1," + lines + "\"a\": 1]", "line 10001, column 4,"},
           {"[" + lines + "true", "its end"}}) {
    SCOPED_TRACE(place);
    try {
      require_bounded_json(text, "a.json");
      ADD_FAILURE() << "was taken";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("at " + place));
    }
  }
  require_bounded_json("[" + lines + "1]", "a.json");
  require_bounded_json(many + "]", "a.json");
  require_bounded_json("[\"" + std::string(10'000, ' ') + "\\\"\n", "a.json");
}

}  // namespace
}  // namespace mox

#include "moxing/json/parse_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <limits>
#include <string>

#include "tests/support/locale_asking_thread.h"

namespace mox {
namespace {

using Ordered = nlohmann::ordered_json;

TEST(ParseJson, GivesWhatTheLibraryGives) {
  for (const char* text :
       {"null", "true", "0", "-7", "18446744073709551615", "-9223372036854775808", "18446744073709551616",
        "\"a\\u00e9\"", "[]", "{}", "[[], [1, [2, {\"a\": [3]}]], {}]",
        R"({"b": 1, "a": {"c": [null, false], "d": "x"}, "b": [2]})",
        R"({"c": {"x": 1, "x": 2}, "a": 1, "c": 3, "b": [4], "a": {"y": 5}, "c": {"z": 6, "": 7}})",
        R"([{"a": 1}, {"a": [{"b": {}}]}, "z"])", "  [1 ,2]\n"}) {
    EXPECT_EQ(parse_json(text), nlohmann::json::parse(text)) << text;
    EXPECT_EQ(parse_json<Ordered>(text).dump(), Ordered::parse(text).dump()) << text;
    EXPECT_EQ(parse_json_or_discard(text), nlohmann::json::parse(text)) << text;
  }
}

TEST(ParseJson, ReadsFractions) {
  EXPECT_EQ(parse_json("0.25").get<double>(), 0.25);
  EXPECT_EQ(parse_json("-1.5e3").get<double>(), -1500);
  EXPECT_EQ(parse_json("2E-2").get<double>(), 0.02);
  EXPECT_EQ(parse_json("0.1").get<double>(), 0.1);
  EXPECT_EQ(parse_json("1.7976931348623157e+308").get<double>(), std::numeric_limits<double>::max());
  EXPECT_EQ(parse_json("4.9e-324").get<double>(), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(parse_json("1e-999").get<double>(), 0);
  EXPECT_TRUE(std::signbit(parse_json("-0.0").get<double>()));
}

TEST(ParseJson, RefusesWhatTheLibraryRefuses) {
  for (const char* text :
       {"", "[", "[1,]", "{\"a\"}", "nul", "1 2", "\"\xff\"", "01", "1.", "1e999", "[-1.5e400]"}) {
    std::string expected, found;
    try {
      const auto json = nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception& error) {
      expected = error.what();
    }
    try {
      parse_json(text);
    } catch (const nlohmann::json::exception& error) {
      found = error.what();
    }
    EXPECT_NE(found, "") << text;
    EXPECT_EQ(found, expected) << text;
    EXPECT_TRUE(parse_json_or_discard(text).is_discarded()) << text;
  }
}

// Of this process: whatever others do on the machine meanwhile.
template <typename Function>
double seconds_of(Function&& function) {
  const std::clock_t begin = std::clock();
  function();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// The library's ordered objects look for each key among all others: minutes.
TEST(ParseJson, ReadsManyKeysInOrderSoon) {
  const size_t keys = 100'000;
  std::string text = "{";
  for (size_t i = 0; i < keys; ++i) text += "\"a key of a long name, " + std::to_string(keys - i) + "\":1,";
  Ordered json;
  EXPECT_LT(seconds_of([&] {
              json = parse_json<Ordered>(text + "\"last\":{}}");
              EXPECT_THROW(parse_json<Ordered>(text),
                           Ordered::exception);  // is looked at again, for the reason
            }),
            15);
  ASSERT_EQ(json.size(), keys + 1);
  EXPECT_EQ(json.begin().key(), "a key of a long name, 100000");
  EXPECT_EQ((--json.end()).key(), "last");
}

// A text in a text, of which the bound of the outer one says nothing.
TEST(ParseJson, RefusesWhatWouldTakeFarMoreMemoryThanTheText) {
  std::string lists = "[";
  for (int i = 0; i < 100'000; ++i) lists += "[],";
  lists += "[]]";
  EXPECT_THROW(parse_json(lists), DataError);
  EXPECT_THROW(parse_json_or_discard(lists), DataError);
}

TEST(ParseJson, NamesTheFileOfATextInATextThatIsRefused) {
  std::string lists = "[";
  for (int i = 0; i < 100'000; ++i) lists += "[],";
  const std::string text = nlohmann::json({{"inner", lists + "[]]"}}).dump();
  const std::string inner = parse_json(text, "runs/state.json").at("inner").get<std::string>();
  const auto refusal = [](const auto& read) -> std::string {
    try {
      read();
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  const testing::Matcher<std::string> names_it = testing::HasSubstr("'runs/state.json'");
  EXPECT_THAT(refusal([&] { parse_json(inner, "runs/state.json"); }), names_it);
  EXPECT_THAT(refusal([&] { parse_json_or_discard(inner, "runs/state.json"); }), names_it);
}

TEST(JsonNumber, ReadsAnyDecimalSign) {
  EXPECT_EQ(json_number("0.25"), 0.25);
  EXPECT_EQ(json_number("-0,25"), -0.25);
  EXPECT_EQ(json_number("1\xd9"
                        "5e+2"),
            150);  // the first byte of a sign of two
  EXPECT_TRUE(std::isinf(json_number("1e999")));
}

// As another thread does that writes numbers in the locale "C", or in the program's, while this one reads:
// under a locale with a decimal comma (tests/locale) the library's own parse gives 0, or 0.25, by chance.
TEST(ParseJson, DoesNotDependOnOtherThreadsLocales) {
  const LocaleAskingThread other;
  int wrong = 0;
  for (int i = 0; i < 20'000; ++i) wrong += parse_json("[0.25]")[0].get<double>() != 0.25;
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace mox

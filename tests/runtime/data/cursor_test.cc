#include "runtime/data/internal/cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "runtime/base/error.h"
#include "tests/support/message_of.h"

namespace mox::data::internal {
namespace {

using testing::HasSubstr;

const Cursor kCursor{.stages = {"from_arrays(9)", "batch(2)"},
                     .seed = ~uint64_t{0},
                     .batches = 3,
                     .samples = 6,
                     .state = {0, 1, ~uint64_t{0}},
                     .contents = {"sample 0: 1234"}};

std::string refusal(const std::string& text) {
  return message_of<DataError>([&] { cursor_from_json(text); });
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

TEST(CursorText, IsReadAsItWasWritten) {
  const std::string text = to_json(kCursor);
  EXPECT_EQ(to_json(cursor_from_json(text)), text);
  EXPECT_EQ(to_json(cursor_from_json(replaced(text, "\"seed\"", "\"other\":[{\"seed\":[1]}],\"seed\""))),
            text);
}

// Of a chain of many operations, each in a few letters.
TEST(CursorText, OfManyShortStagesIsReadAsItWasWritten) {
  Cursor cursor = kCursor;
  cursor.stages.assign(20'000, "map");
  const std::string text = to_json(cursor);
  EXPECT_EQ(to_json(cursor_from_json(text)), text);
}

TEST(CursorText, SaysWhatIsWrong) {
  const std::string text = to_json(kCursor);
  EXPECT_THAT(refusal("[]"), HasSubstr("it is no object"));
  EXPECT_THAT(refusal("7"), HasSubstr("it is no object"));
  EXPECT_THAT(refusal(text.substr(0, 30)), HasSubstr("it is no JSON at byte"));
  EXPECT_THAT(refusal(text + "x"), HasSubstr("it is no JSON"));
  EXPECT_THAT(refusal(replaced(text, "\"version\":1", "\"version\":2")), HasSubstr("of version 2"));
  EXPECT_THAT(refusal(replaced(text, "\"samples\":6", "\"samples\":6.5")),
              HasSubstr("6.5 is no such number"));
  EXPECT_THAT(refusal(replaced(text, "\"samples\":6", "\"samples\":[6]")),
              HasSubstr("'samples' is not what"));
  EXPECT_THAT(refusal(replaced(text, "\"samples\"", "\"sample\"")), HasSubstr("has no 'samples'"));
  EXPECT_THAT(refusal(replaced(text, "\"dataset\":[", "\"dataset\":[[],")),
              HasSubstr("'dataset' is not what"));
  EXPECT_THAT(refusal(replaced(text, "\"dataset\":[", "\"dataset\":[1,")),
              HasSubstr("'dataset' is not what"));
  EXPECT_THAT(refusal(replaced(text, "\"position\":[", "\"position\":[-1,")),
              HasSubstr("-1 is no such number"));
  EXPECT_THAT(refusal(replaced(text, "\"position\"", "\"positions\"")), HasSubstr("has no 'position'"));
  EXPECT_THAT(refusal(replaced(text, "\"samples\":6", "\"samples\":7")),
              HasSubstr("checksum does not match"));
  std::string texts;
  for (int i = 0; i < 10'000; ++i) texts += "\"\",";
  EXPECT_THAT(refusal(replaced(text, "\"dataset\":[", "\"dataset\":[" + texts)), HasSubstr("texts"));
}

// What is no member of a cursor takes no memory, and no time that grows with its square.
TEST(CursorText, WithManyKeysIsReadSoon) {
  std::string keys;
  for (int i = 0; i < 500'000; ++i) keys += "\"" + std::to_string(i) + "\":[[],{}],";
  const std::clock_t begin = std::clock();  // of this process alone
  const std::string text = to_json(kCursor);
  EXPECT_EQ(to_json(cursor_from_json("{" + keys + text.substr(1))), text);
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace mox::data::internal

// Texts in one block, with ends of four bytes and of eight.
#include "moxing/formats/text_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace mox::data {
namespace {

using testing::ElementsAre;

TEST(TextList, GivesBackWhatWasAdded) {
  TextList list;
  for (const char* text : {"b", "", "dd", "f"}) list.add(text);
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[1], "");
  EXPECT_EQ(list[2], "dd");
  EXPECT_THAT(TextRange(list, 1, 3), ElementsAre("", "dd", "f"));
  EXPECT_TRUE(TextRange().empty());
}

TEST(TextList, EndsBeyondFourGigabytesAreTheSame) {
  const TextList small("abbccc", std::vector<uint32_t>{1, 3, 6});
  TextList large("abbccc", std::vector<uint64_t>{1, 3, 6});
  EXPECT_EQ(TextRange(small, 0, 3), TextRange(large, 0, 3));
  large.add("d");
  EXPECT_THAT(TextRange(large, 0, 4), ElementsAre("a", "bb", "ccc", "d"));
}

TEST(TextList, RangesAreSearchedAndCompared) {
  const TextList list("abbccc", std::vector<uint32_t>{1, 3, 6});
  const TextRange range(list, 0, 3);
  const auto found = std::lower_bound(range.begin(), range.end(), "bb");
  ASSERT_NE(found, range.end());
  EXPECT_EQ(found - range.begin(), 1);
  EXPECT_NE(TextRange(list, 0, 2), range);
  EXPECT_NE(TextRange(list, 0, 2), TextRange(list, 1, 2));
  EXPECT_THAT(range.strings(), ElementsAre("a", "bb", "ccc"));
}

}  // namespace
}  // namespace mox::data
